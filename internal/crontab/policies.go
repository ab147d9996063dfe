package crontab

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Policies say how the ticks and runs of a job are treated. Zero values leave it to the scheduler's defaults.
type Policies struct {
	Overlap     string // "skip", "queue", "replace" or "allow"
	CatchUp     string // "none", "latest" or "all"
	CatchUpMax  int    // 1 to 10000; counts with CatchUp "all"
	Window      time.Duration
	OnInterrupt string // "record" or "rerun"
	Timeout     time.Duration
	Retry       int // how many attempts may fail, 1 to 100
	RetryDelay  time.Duration
	Jitter      time.Duration
}

// The values of the policies that have words for values.
var (
	overlaps   = []string{"skip", "queue", "replace", "allow"}
	catchUps   = []string{"none", "latest", "all"}
	interrupts = []string{"record", "rerun"}
)

const (
	maxCatchUpMax = 10_000
	maxRetry      = 100
)

// check reports everything that is wrong with the policies for a whole file.
func (p *Policies) check() error {
	var errs []error
	for _, w := range []struct{ key, value string }{
		{"overlap", p.Overlap}, {"catch-up", p.CatchUp}, {"on-interrupt", p.OnInterrupt},
	} {
		if w.value == "" {
			continue
		}
		if reason := new(Policies).set(w.key, w.value); reason != "" {
			errs = append(errs, fmt.Errorf("crontab: %s: %s", w.key, reason))
		}
	}
	if p.CatchUpMax < 0 || p.CatchUpMax > maxCatchUpMax {
		errs = append(errs, fmt.Errorf("crontab: catch-up-max: %d is out of range 1-%d", p.CatchUpMax, maxCatchUpMax))
	}
	if p.Window < 0 {
		errs = append(errs, fmt.Errorf("crontab: window: %v is negative", p.Window))
	}
	if p.Timeout < 0 {
		errs = append(errs, fmt.Errorf("crontab: timeout: %v is negative", p.Timeout))
	}
	if p.Retry < 0 || p.Retry > maxRetry {
		errs = append(errs, fmt.Errorf("crontab: retry: %d is out of range 1-%d", p.Retry, maxRetry))
	}
	if p.RetryDelay < 0 {
		errs = append(errs, fmt.Errorf("crontab: retry-delay: %v is negative", p.RetryDelay))
	}
	if p.Jitter < 0 {
		errs = append(errs, fmt.Errorf("crontab: jitter: %v is negative", p.Jitter))
	}
	if p.drops() {
		errs = append(errs, fmt.Errorf("crontab: catch-up: "+dropsTicks, p.Overlap))
	}
	return errors.Join(errs...)
}

// drops reports whether all ticks are to be made up, and yet some of them to be dropped.
func (p *Policies) drops() bool {
	return p.CatchUp == "all" && (p.Overlap == "skip" || p.Overlap == "replace")
}

const dropsTicks = "all does not go with overlap=%s: the ticks to make up wait for one another; say overlap=queue or allow"

// set gives one policy the value that is written, or says what is wrong with it; ok keys only.
func (p *Policies) set(key, value string) (reason string) {
	switch key {
	case "overlap":
		return choose(&p.Overlap, value, overlaps)
	case "catch-up":
		return choose(&p.CatchUp, value, catchUps)
	case "on-interrupt":
		return choose(&p.OnInterrupt, value, interrupts)
	case "catch-up-max":
		return counting(&p.CatchUpMax, value, maxCatchUpMax)
	case "window":
		return lasting(&p.Window, value)
	case "timeout":
		return lasting(&p.Timeout, value)
	case "retry":
		return counting(&p.Retry, value, maxRetry)
	case "retry-delay":
		return lasting(&p.RetryDelay, value)
	case "jitter":
		return lasting(&p.Jitter, value)
	}
	return ""
}

func choose(field *string, value string, all []string) (reason string) {
	if !slices.Contains(all, value) {
		return fmt.Sprintf("unknown policy %q; one of %s", value, strings.Join(all, ", "))
	}
	*field = value
	return ""
}

func counting(field *int, value string, most int) (reason string) {
	n, err := strconv.Atoi(value)
	if err != nil {
		return fmt.Sprintf("%q is not a whole number", value)
	}
	if n < 1 || n > most {
		return fmt.Sprintf("%d is out of range 1-%d", n, most)
	}
	*field = n
	return ""
}

func lasting(field *time.Duration, value string) (reason string) {
	d, err := time.ParseDuration(value)
	if err != nil {
		return fmt.Sprintf("%q is not a duration such as 90s or 1h30m", value)
	}
	if d <= 0 {
		return fmt.Sprintf("%q is too short: it must be more than 0", value)
	}
	*field = d
	return ""
}
