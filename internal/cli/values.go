package cli

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-singleton/singleton/schedule"
	"github.com/spf13/pflag"
)

// The values of flags. Their errors name the value and say what is wanted, as those of a crontab do.

// choice is a flag with few values.
type choice struct {
	value   *string
	choices []string
}

func (c choice) String() string { return *c.value }
func (c choice) Type() string   { return strings.Join(c.choices, "|") }
func (c choice) Set(text string) error {
	if !slices.Contains(c.choices, text) {
		return fmt.Errorf("unknown value %.40q; one of %s", text, strings.Join(c.choices, ", "))
	}
	*c.value = text
	return nil
}

// zone is a flag that names a time zone.
type zone struct{ value **time.Location }

func (z zone) String() string {
	if z.value == nil || *z.value == nil {
		return "UTC"
	}
	return (*z.value).String()
}
func (z zone) Type() string { return "zone" }
func (z zone) Set(text string) error {
	// The same names as in an expression: "Local" would be another zone on each machine.
	expr, err := schedule.Parse("CRON_TZ="+text+" @daily", schedule.Options{})
	if err != nil {
		return fmt.Errorf("unknown time zone %.40q; want an IANA name such as Europe/Berlin", text)
	}
	*z.value = expr.Zone()
	return nil
}

// span is a flag that is a duration.
type span struct{ value *time.Duration }

func (s span) String() string { return compact(*s.value) }
func (s span) Type() string   { return "duration" }
func (s span) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("%.40q is not a duration such as 90s or 1h30m", text)
	}
	*s.value = d
	return nil
}

// number is a flag that is a whole number.
type number struct{ value *int }

func (n number) String() string { return strconv.Itoa(*n.value) }
func (n number) Type() string   { return "number" }
func (n number) Set(text string) error {
	i, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("%.40q is not a whole number", text)
	}
	*n.value = i
	return nil
}

// toggle is a flag that is on where it is given.
type toggle struct{ value *bool }

func (s toggle) String() string { return strconv.FormatBool(*s.value) }
func (s toggle) Type() string   { return "bool" } // so that the help shows no value
func (s toggle) Set(text string) error {
	b, err := strconv.ParseBool(text)
	if err != nil {
		return fmt.Errorf("%.40q is neither true nor false", text)
	}
	*s.value = b
	return nil
}

// register adds a flag that is off.
func (s toggle) register(flags *pflag.FlagSet, name, usage string) {
	flags.VarPF(s, name, "", usage).NoOptDefVal = "true"
}

// compact is a duration as people write it: "24h" rather than "24h0m0s".
func compact(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// badFlag names the flag whose value is bad, in our words where the value has given some.
func badFlag(err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usagef("--%s: %w", bad.GetFlag().Name, bad.Unwrap())
	}
	return usage(err)
}
