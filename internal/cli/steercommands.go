package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/spf13/cobra"
)

// exitCodes ends the help of the commands that ask the leader for something.
const exitCodes = `

Exit codes: 0 done, 3 nobody leads (for as long as a lease lasts), 5 the leader refuses and says why, 124 no answer in time.`

func (a *app) newTriggerCommand() *cobra.Command {
	s, w, at := new(steering), wish{}, ""
	cmd := &cobra.Command{
		Use:   "trigger --group NAME JOB",
		Short: "Run a job now, or as if at an earlier tick",
		Long: `Asks the leader to run a job now, beside its schedule, which goes on as if nothing had been. While a run of the job
is open its overlap policy decides: skip refuses, queue lets it wait, replace ends that run first, allow starts it. A paused
job can be triggered. The run has the ID job@tick+request.

With --wait it waits for the end of the run, of its last attempt where it is repeated, and exits with 6 unless it has
succeeded.` + exitCodes,
		Example: `  singleton trigger --group billing report
  singleton trigger --group billing report --wait && echo done
  singleton trigger --group billing invoice --at 2026-11-28T03:00:00Z`,
		Args: arguments(1, 1, "JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := jobName(args[0])
			if err != nil {
				return err
			}
			tick := time.Time{}
			if at != "" {
				if tick, err = parseTime(at, a.local); err != nil {
					return usagef("--at: %w", err)
				}
				if !tick.After(time.Unix(0, 0)) {
					return usagef("--at: %.40q lies before 1970", at)
				}
			}
			if w.most != 0 && (!w.wait || w.most < 0) {
				return usagef("--wait-timeout %s: it is the limit of --wait, and more than 0", compact(w.most))
			}
			w.ask = func(ctx context.Context, i *scheduler.Inspector) (*scheduler.Request, error) {
				return i.Trigger(ctx, job, tick)
			}
			return a.steer(cmd.Context(), s, w)
		},
		ValidArgsFunction: a.completeJobs,
	}
	s.register(cmd)
	flags := cmd.Flags()
	toggle{&w.wait}.register(flags, "wait", "wait for the end of the run")
	flags.Var(span{&w.most}, "wait-timeout", "give up --wait after so long; 0 is never")
	flags.StringVar(&at, "at", "", "`TIME` of the tick, in the past: 2026-12-24T18:00:00Z, or without an offset in the time "+
		"zone of this machine (default now)")
	return cmd
}

// scope is what a pause or a resume is about: one job or all.
type scope struct{ all bool }

func (c *scope) job(args []string) (string, error) {
	switch {
	case c.all && len(args) > 0:
		return "", usagef("both JOB and --all are given")
	case !c.all && len(args) == 0:
		return "", usagef("JOB is missing; --all means all jobs of the group")
	case c.all:
		return "", nil
	}
	return jobName(args[0])
}

func (c *scope) said(job string) string {
	if c.all {
		return "all jobs"
	}
	return job
}

func (a *app) newPauseCommand() *cobra.Command {
	s, c := new(steering), new(scope)
	why, until, length := "", "", time.Duration(0)
	cmd := &cobra.Command{
		Use:   "pause --group NAME JOB|--all",
		Short: "Stop the ticks of a job, or of all jobs",
		Long: `Asks the leader to start nothing of a job any more until it is resumed: ticks that fall due meanwhile are skipped,
and stand in the history as one row. Runs that are open go on, with their further attempts; singleton cancel ends them. With
--all it is about all jobs of the group, also those that come later. A second pause takes the place of the first.` + exitCodes,
		Example: `  singleton pause --group billing report --why "db upgrade"
  singleton pause --group billing --all --until 18:00
  singleton pause --group billing --all --for 2h`,
		Args: arguments(0, 1, "JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := c.job(args)
			if err != nil {
				return err
			}
			end, err := a.instant("until", until)
			switch {
			case err != nil:
				return err
			case length < 0:
				return usagef("--for %s is negative", compact(length))
			case length > 0 && until != "":
				return usagef("both --for and --until are given")
			case length > 0:
				end = a.now().Add(length)
			case until != "" && !end.After(a.now()):
				return usagef("--until %s has passed", until)
			}
			said := c.said(job) + ": paused"
			if !end.IsZero() {
				end = end.Truncate(time.Second)
				said += " until " + end.In(a.local).Format("2006-01-02 15:04:05 MST")
			}
			return a.steer(cmd.Context(), s, wish{
				ask: func(ctx context.Context, i *scheduler.Inspector) (*scheduler.Request, error) {
					return i.Pause(ctx, job, scheduler.Pause{Reason: why, Until: end})
				},
				done: said,
			})
		},
		ValidArgsFunction: a.completeJobs,
	}
	s.register(cmd)
	flags := cmd.Flags()
	toggle{&c.all}.register(flags, "all", "pause all jobs of the group")
	flags.StringVar(&why, "why", "", "`TEXT` for those who wonder, shown by status")
	flags.StringVar(&until, "until", "", "`TIME` when it ends by itself: 18:00, 2026-12-24T18:00, or with an offset")
	flags.Var(span{&length}, "for", "end by itself after so long; 0 is never")
	return cmd
}

func (a *app) newResumeCommand() *cobra.Command {
	s, c := new(steering), new(scope)
	cmd := &cobra.Command{
		Use:   "resume --group NAME JOB|--all",
		Short: "End a pause; the job goes on from now",
		Long: `Ends the pause of a job, or with --all that of all jobs: they go on with the next tick, and nothing of what fell due
meanwhile runs. Jobs that were paused by name stay so at a resume of all.` + exitCodes,
		Example: `  singleton resume --group billing report
  singleton resume --group billing --all`,
		Args: arguments(0, 1, "JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			job, err := c.job(args)
			if err != nil {
				return err
			}
			return a.steer(cmd.Context(), s, wish{
				ask: func(ctx context.Context, i *scheduler.Inspector) (*scheduler.Request, error) {
					return i.Resume(ctx, job)
				},
				done: c.said(job) + ": resumed",
			})
		},
		ValidArgsFunction: a.completeJobs,
	}
	s.register(cmd)
	toggle{&c.all}.register(cmd.Flags(), "all", "end the pause of all jobs")
	return cmd
}

func (a *app) newCancelCommand() *cobra.Command {
	s := new(steering)
	cmd := &cobra.Command{
		Use:   "cancel --group NAME RUN|JOB",
		Short: "End a run, wherever it goes on",
		Long: `Asks the leader to end an open run, on whatever machine it goes on: its command gets SIGTERM, and SIGKILL when that
is not enough. No further attempt follows. RUN is the ID of the run, as status --json and the log show it; the name of a job
stands for its only open run. The answer comes when the run has been told to end.` + exitCodes,
		Example: `  singleton cancel --group billing report@2026-11-29T03:00:00Z
  singleton cancel --group billing report`,
		Args: arguments(1, 1, "RUN"),
		RunE: func(cmd *cobra.Command, args []string) error {
			run := args[0]
			job, tick, isRun := strings.Cut(run, "@")
			if _, err := jobName(job); err != nil {
				return err
			}
			tick, _, _ = strings.Cut(tick, "+")
			if _, err := time.Parse(time.RFC3339, tick); isRun && err != nil {
				return usagef("%.200q is no run ID such as report@2026-11-29T03:00:00Z", run)
			}
			return a.steer(cmd.Context(), s, wish{
				ask: func(ctx context.Context, i *scheduler.Inspector) (*scheduler.Request, error) {
					id, err := openRun(ctx, i, run)
					if err != nil {
						return nil, err
					}
					return i.Cancel(ctx, id)
				},
				done: run + ": told to end",
			})
		},
		ValidArgsFunction: a.completeRuns,
	}
	s.register(cmd)
	return cmd
}

// openRun returns the ID of the run that an argument names by its ID or, where it is the only one, by its job.
func openRun(ctx context.Context, i *scheduler.Inspector, arg string) (string, error) {
	if strings.Contains(arg, "@") {
		return arg, nil
	}
	st, err := i.Status(ctx)
	if err != nil {
		return "", err
	}
	var ids []string
	for _, e := range st.Running {
		if e.Job == arg {
			ids = append(ids, e.RunID)
		}
	}
	switch len(ids) {
	case 1:
		return ids[0], nil
	case 0:
		return "", &failure{code: exitRefused, err: fmt.Errorf("no run of %s is open", arg)}
	}
	slices.Sort(ids)
	return "", usagef("%d runs of %s are open; say which: %s", len(ids), arg, enumerate(ids))
}

// enumerate names the first of a sorted list, which may have thousands.
func enumerate(ids []string) string {
	const most = 5
	if len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s, and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
}

func (a *app) newResignCommand() *cobra.Command {
	s := new(steering)
	cmd := &cobra.Command{
		Use:   "resign --group NAME",
		Short: "Have the leader step down",
		Long: `Asks the leader to hand leadership to another machine. Running jobs go on where they are; the command of a singleton
run ends first. Where there is no other machine, the same one leads again after a second.` + exitCodes,
		Example: `  singleton resign --group billing`,
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.steer(cmd.Context(), s, wish{
				ask:  func(ctx context.Context, i *scheduler.Inspector) (*scheduler.Request, error) { return i.Resign(ctx) },
				done: s.group + ": the leader steps down",
			})
		},
	}
	s.register(cmd)
	return cmd
}

func (a *app) newForgetCommand() *cobra.Command {
	s := new(steering)
	cmd := &cobra.Command{
		Use:   "forget --group NAME JOB",
		Short: "Drop a job that no crontab has any more",
		Long: `Drops what the store knows of a job, with its history. A job that the leader's crontab has is refused: take it out
there first. Without this command a job that no crontab has is dropped after a week.` + exitCodes,
		Example: `  singleton forget --group billing old-report`,
		Args:    arguments(1, 1, "JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steerJob(cmd.Context(), s, args[0], "forgotten", (*scheduler.Inspector).Forget)
		},
		ValidArgsFunction: a.completeJobs,
	}
	s.register(cmd)
	return cmd
}

func (a *app) newResetCommand() *cobra.Command {
	s := new(steering)
	cmd := &cobra.Command{
		Use:   "reset --group NAME JOB",
		Short: "Let a job start from now: nothing is made up",
		Long: `Skips what has fallen due of a job and was not started: it goes on with its next tick. The runs that are open go
on.` + exitCodes,
		Example: `  singleton reset --group billing report`,
		Args:    arguments(1, 1, "JOB"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steerJob(cmd.Context(), s, args[0], "starts from now", (*scheduler.Inspector).Reset)
		},
		ValidArgsFunction: a.completeJobs,
	}
	s.register(cmd)
	return cmd
}

// steerJob asks the leader for something about one job.
func (a *app) steerJob(ctx context.Context, s *steering, arg, done string,
	ask func(*scheduler.Inspector, context.Context, string) (*scheduler.Request, error)) error {
	job, err := jobName(arg)
	if err != nil {
		return err
	}
	return a.steer(ctx, s, wish{
		ask:  func(ctx context.Context, i *scheduler.Inspector) (*scheduler.Request, error) { return ask(i, ctx, job) },
		done: job + ": " + done,
	})
}
