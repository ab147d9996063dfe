package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/schedule"
	"github.com/go-singleton/singleton/store"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// environmentName returns the variable that stands for a flag.
func environmentName(flag string) string {
	return "SINGLETON_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// applyEnvironment sets the flags of cmd that the command line does not give from the environment. An empty variable is
// none.
func (a *app) applyEnvironment(cmd *cobra.Command) error {
	var problem error
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if f.Changed || f.Name == "help" || problem != nil {
			return
		}
		name := environmentName(f.Name)
		text, ok := a.lookup(name)
		if !ok || text == "" {
			return
		}
		if err := cmd.Flags().Set(f.Name, text); err != nil {
			problem = usagef("environment variable %s: %w", name, cause(err))
		}
		if p, ok := f.Value.(*place); ok {
			p.from = name
		}
	})
	return problem
}

// cause returns what a flag's value has said, without the flag's name around it.
func cause(err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return fmt.Errorf("%q is no valid value: %w", bad.GetValue(), bad.Unwrap())
	}
	return err
}

// choice is a flag with few values.
type choice struct {
	value   *string
	choices []string
}

func (c choice) String() string { return *c.value }
func (c choice) Type() string   { return strings.Join(c.choices, "|") }
func (c choice) Set(text string) error {
	if !slices.Contains(c.choices, text) {
		return fmt.Errorf("want one of %s", strings.Join(c.choices, ", "))
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
		return errors.New("want an IANA time zone such as Europe/Berlin")
	}
	*z.value = expr.Zone()
	return nil
}

// target is the store and group that a command is about.
type target struct {
	store place
	group string
}

func (t *target) register(flags *pflag.FlagSet) {
	flags.Var(&t.store, "store", "`URL` of the store: redis://, rediss://, unix:// or memory:; "+
		"else REDIS_URL, else "+defaultStore)
	flags.StringVar(&t.group, "group", "", "`NAME` under which the machines compete; required")
}

// check returns an error where the group is missing or is no name.
func (t *target) check() error {
	if t.group == "" {
		return usagef("--group is missing: give the name under which the machines compete")
	}
	if store.CheckName("group", t.group) != nil {
		return usagef("--group %.140q: use 1 to 128 letters, digits, '.', '_' and '-', starting with a letter or digit", t.group)
	}
	return nil
}
