package cli

import (
	"context"
	"slices"
	"time"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/spf13/cobra"
)

func (a *app) newStatusCommand() *cobra.Command {
	q := new(asking)
	check, watch, every := false, false, 2*time.Second
	cmd := &cobra.Command{
		Use:   "status --group NAME",
		Short: "Show who leads, which machines take part, and how the jobs do",
		Long: `Shows who leads the group, which replicas take part, and for each job when it runs next, how its last run ended, and
what is wrong with it. Exit code 3 says that nobody leads; with --check exit code 4 that somebody does, and a job needs
attention.

With --watch it goes on until it gets a signal: on a terminal in place, else with a line, or with --json an object, for each
change.`,
		Example: `  singleton status --group billing
  singleton status --group billing --watch
  singleton status --group billing --check >/dev/null || echo "look at billing"
  singleton status --group billing --json | jq '.jobs[] | select(.last.outcome == "failed")'`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch {
			case watch && check:
				return usagef("--watch and --check are given, which exclude each other")
			case every < 100*time.Millisecond:
				return usagef("--every %s is shorter than 100ms", compact(every))
			case watch:
				return a.watch(cmd.Context(), q, every)
			}
			var st scheduler.Status
			err := a.ask(cmd.Context(), q, func(ctx context.Context, i *scheduler.Inspector) (err error) {
				st, err = i.Status(ctx)
				return err
			})
			if err != nil {
				return err
			}
			if q.json {
				err = a.printJSON(viewStatus(st, a.now()))
			} else {
				err = (&statusPage{Status: st, now: a.now(), zone: q.zone(a), whole: q.whole(a), footer: a.terminal}).print(a.stdout)
			}
			switch {
			case err != nil:
				return err
			case st.Leader.Replica == "" && !leaderless(st):
				return &failure{code: exitNoLeader}
			case check && slices.ContainsFunc(st.Jobs, func(j scheduler.JobStatus) bool { return needsAttention(st, j) }):
				return &failure{code: exitAttention}
			}
			return nil
		},
	}
	q.register(cmd, "a JSON object")
	flags := cmd.Flags()
	toggle{&check}.register(flags, "check", "exit with code 4 when a job needs attention")
	toggle{&watch}.register(flags, "watch", "go on, and show what changes")
	flags.Var(span{&every}, "every", "how often --watch looks")
	return cmd
}
