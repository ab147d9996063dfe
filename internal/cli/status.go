package cli

import (
	"context"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/spf13/cobra"
)

func (a *app) newStatusCommand() *cobra.Command {
	q := new(asking)
	cmd := &cobra.Command{
		Use:   "status --group NAME",
		Short: "Show who leads, which machines take part, and how the jobs do",
		Long: `Shows who leads the group, which replicas take part, and for each job when it runs next, how its last run ended, and
what is wrong with it. Exit code 3 says that nobody leads.`,
		Example: `  singleton status --group billing
  singleton status --group billing --json | jq '.jobs[] | select(.last.outcome == "failed")'`,
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
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
				err = (&statusPage{Status: st, now: a.now(), zone: q.zone(a), footer: a.terminal}).print(a.stdout)
			}
			if err == nil && st.Leader.Replica == "" {
				return &failure{code: exitNoLeader}
			}
			return err
		},
	}
	q.register(cmd, "a JSON object")
	return cmd
}
