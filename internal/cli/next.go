package cli

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-singleton/singleton/schedule"
	"github.com/spf13/cobra"
)

// maxNext bounds what one call prints.
const maxNext = 10_000

func (a *app) newNextCommand() *cobra.Command {
	var (
		opts  schedule.Options
		from  string
		count int
	)
	cmd := &cobra.Command{
		Use:   "next SPEC",
		Short: "Print when a cron expression fires",
		Long: `Prints the next times at which a cron expression fires, one a line, in the expression's time zone. Quote the expression,
or the shell takes its stars for file names.`,
		Example: `  singleton next '30 2 * * MON-FRI'
  singleton next --tz Europe/Berlin -n 3 @daily
  singleton next --seconds --from 2026-12-24T18:00:00Z '*/10 * * * * *'`,
		Args: func(_ *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usagef("SPEC is missing")
			case len(args) > 1:
				return usagef("takes one SPEC, %d arguments are given; put quotes around the whole expression", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			if count < 1 || count > maxNext {
				return usagef("--count %d is out of range 1-%d", count, maxNext)
			}
			expr, err := schedule.Parse(args[0], opts)
			if err != nil {
				return usage(specError(err))
			}
			t := a.now()
			if from != "" {
				if t, err = parseTime(from, expr.Zone()); err != nil {
					return usagef("--from: %w", err)
				}
				t = t.Add(-1) // Next looks after an instant; this one counts
			}
			for range count {
				if t = expr.Next(t); t.IsZero() {
					break
				}
				if _, err := fmt.Fprintln(a.stdout, t.Format(time.RFC3339)); err != nil {
					return err
				}
			}
			return nil
		},
	}
	flags := cmd.Flags()
	toggle{&opts.Seconds}.register(flags, "seconds", "SPEC has six fields, seconds first")
	flags.Var(zone{&opts.Zone}, "tz", "time `ZONE` of the expression, where it has no CRON_TZ=")
	flags.StringVar(&from, "from", "", "first `TIME` that counts, as 2026-12-24T18:00:00Z, or without an offset in the "+
		"expression's zone (default now)")
	count = 5
	flags.VarP(number{&count}, "count", "n", "how many times to print")
	return cmd
}

// specError says what is wrong with an expression that stands on the command line, and where.
func specError(err error) error {
	bad, ok := errors.AsType[*schedule.SyntaxError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, schedule.ErrSixFields):
		return errors.New("six fields, which has two readings: seconds first (say --seconds), or year last (not supported)")
	case bad.Field == "":
		return fmt.Errorf("column %d: %s", bad.Offset+1, bad.Reason)
	default:
		return fmt.Errorf("column %d: %s: %s", bad.Offset+1, bad.Field, bad.Reason)
	}
}

// parseTime reads an instant; one without an offset is meant in loc.
func parseTime(text string, loc *time.Location) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, text, loc); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("%.40q is no time such as 2026-12-24T18:00:00Z or 2026-12-24", text)
}
