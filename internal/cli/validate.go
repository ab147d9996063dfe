package cli

import (
	"cmp"
	"fmt"
	"io"
	"time"

	"github.com/go-singleton/singleton/internal/crontab"
	"github.com/spf13/cobra"
)

// jobView is what `validate --json` prints for each job.
type jobView struct {
	Name        string    `json:"name"`
	Line        int       `json:"line"`
	Spec        string    `json:"spec"`
	Zone        string    `json:"zone"`
	Description string    `json:"description"`
	Next        time.Time `json:"next,omitzero"`
	Command     string    `json:"command"`
	Shell       string    `json:"shell"`
	Overlap     string    `json:"overlap"`
	CatchUp     string    `json:"catch_up"`
	CatchUpMax  int       `json:"catch_up_max"`
	Window      float64   `json:"window_seconds"`
	OnInterrupt string    `json:"on_interrupt"`
	Timeout     float64   `json:"timeout_seconds"`     // 0 is none
	Retry       int       `json:"retry"`               // 1 is none
	RetryDelay  float64   `json:"retry_delay_seconds"` // of the second attempt
	Jitter      float64   `json:"jitter_seconds"`
}

func (a *app) newValidateCommand() *cobra.Command {
	var (
		r      reading
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "validate FILE",
		Short: "Check a crontab and say what it means",
		Long: `Reads a crontab as cron does and prints what each job's schedule means and when it fires next; or everything that is
wrong with the file, with line and column, and exit code 2. Give it the flags that cron gets. "-" is standard input.`,
		Example: `  singleton validate jobs.cron
  singleton validate --seconds --tz Europe/Berlin jobs.cron
  crontab -l | singleton validate -
  singleton validate --json jobs.cron`,
		Args: arguments(1, 1, "FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := r.check(); err != nil {
				return err
			}
			name := args[0]
			var file *crontab.File
			var writable bool
			var err error
			if name == "-" {
				name = "stdin"
				file, err = r.parse(name, a.stdin)
			} else {
				file, writable, err = r.readCrontab(name)
			}
			if err != nil {
				return err
			}
			notices := file.Notices
			if writable {
				notices = append(notices, name+": everybody on this machine may write to it, and so run commands; chmod o-w it")
			}
			if asJSON {
				return a.validated(file, notices)
			}
			return a.printJobs(name, file, notices)
		},
	}
	r.register(cmd.Flags())
	toggle{&asJSON}.register(cmd.Flags(), "json", "print one JSON object a line, for each job")
	return cmd
}

func (a *app) printJobs(name string, file *crontab.File, notices []string) error {
	var t table
	t.add("JOB", "SCHEDULE", "NEXT")
	for _, j := range file.Jobs {
		t.add(j.Name, j.Expr.Describe(), j.Expr.Next(a.now()).Format("2006-01-02 15:04:05 MST"))
	}
	if len(file.Jobs) > 0 {
		if err := t.print(a.stdout); err != nil {
			return err
		}
	}
	if err := say(a.stdout, notices); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.stdout, "%s: %s fine\n", line(name), many(len(file.Jobs), "job is", "jobs are"))
	return err
}

func (a *app) validated(file *crontab.File, notices []string) error {
	for _, j := range file.Jobs {
		v := jobView{
			Name: j.Name, Line: j.Line, Spec: j.Spec, Zone: j.Expr.Zone().String(), Description: j.Expr.Describe(),
			Next: j.Expr.Next(a.now()).UTC(), Command: j.Command, Shell: j.Shell,
			Overlap: j.Overlap, CatchUp: j.CatchUp, CatchUpMax: j.CatchUpMax, Window: seconds(j.Window),
			OnInterrupt: j.OnInterrupt, Timeout: seconds(j.Timeout),
			Retry: max(1, j.Retry), RetryDelay: seconds(retryDelay(j)), Jitter: seconds(j.Jitter),
		}
		if v.Overlap == "" {
			v.Overlap = "skip"
			if v.CatchUp == "all" {
				v.Overlap = "queue"
			}
		}
		if err := a.printJSON(v); err != nil {
			return err
		}
	}
	return say(a.stderr, notices)
}

// retryDelay is what a job's second attempt waits for; 0 where there is none.
func retryDelay(j crontab.Job) time.Duration {
	if j.Retry <= 1 {
		return 0
	}
	return cmp.Or(j.RetryDelay, time.Second)
}

func say(w io.Writer, notices []string) error {
	for _, n := range notices {
		if _, err := fmt.Fprintln(w, line(n)); err != nil {
			return err
		}
	}
	return nil
}
