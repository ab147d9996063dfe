package cli

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/redis/go-redis/v9"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completeLimit is how long a shell that completes a word waits for the store.
const completeLimit = time.Second

func (a *app) newCompletionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "completion bash|zsh|fish",
		Short: "Print a script that has your shell complete commands, flags, groups and jobs",
		Long: `Prints a script for your shell. Names of groups, jobs and runs are completed from the store, as --store, --group and the
environment say; where it does not answer within a second, nothing is completed.`,
		Example: `  source <(singleton completion bash)
  singleton completion zsh > "${fpath[1]}/_singleton"
  singleton completion fish > ~/.config/fish/completions/singleton.fish`,
		Args:      arguments(1, 1, "SHELL"),
		ValidArgs: []string{"bash", "zsh", "fish"},
		RunE: func(cmd *cobra.Command, args []string) error {
			switch root := cmd.Root(); args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.stdout, true)
			case "zsh":
				return root.GenZshCompletion(a.stdout)
			case "fish":
				return root.GenFishCompletion(a.stdout, true)
			}
			return usagef("unknown shell; one of bash, zsh, fish")
		},
	}
}

// completeJobs offers the names of the group's jobs.
func (a *app) completeJobs(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(cmd, func(st scheduler.Status) (names []string) {
		for _, j := range st.Jobs {
			names = append(names, j.Name)
		}
		return names
	})
}

// completeRuns offers the IDs of the open runs.
func (a *app) completeRuns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return a.complete(cmd, func(st scheduler.Status) (ids []string) {
		for _, e := range st.Running {
			ids = append(ids, e.RunID)
		}
		return ids
	})
}

// complete offers words of a status. Faults are not for a shell that completes a word: nothing is offered then.
func (a *app) complete(cmd *cobra.Command, words func(scheduler.Status) []string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeLimit)
	defer cancel()
	if a.applyEnvironment(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	t := target{group: cmd.Flag("group").Value.String(), store: *cmd.Flag("store").Value.(*place)}
	st, inspector, err := a.inspect(ctx, &t, "")
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer st.leave()
	status, err := inspector.Status(ctx)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return harmless(words(status)), cobra.ShellCompDirectiveNoFileComp
}

// harmless leaves out words that a shell or a terminal could take for something else: a store's data may come from anywhere.
func harmless(words []string) []string {
	return slices.DeleteFunc(words, func(w string) bool {
		return strings.ContainsFunc(w, func(r rune) bool {
			return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-@:+", r))
		})
	})
}

// completeGroups offers the groups that have a ledger.
func (a *app) completeGroups(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(cmd.Context(), completeLimit)
	defer cancel()
	if a.applyEnvironment(cmd) != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	st, err := a.open(a.choose(*cmd.Flag("store").Value.(*place)), 0, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer st.leave()
	return harmless(st.groups(ctx)), cobra.ShellCompDirectiveNoFileComp
}

// groups looks for groups as long as ctx lives.
func (o *opened) groups(ctx context.Context) (names []string) {
	const before, after = "singleton:{", "}:r:ledger"
	var mu sync.Mutex // the nodes of a cluster are asked at once
	look := func(ctx context.Context, client *redis.Client) error {
		keys := client.Scan(ctx, 0, before+"*"+after, 1000).Iterator()
		for keys.Next(ctx) {
			mu.Lock()
			names = append(names, strings.TrimSuffix(strings.TrimPrefix(keys.Val(), before), after))
			mu.Unlock()
		}
		return keys.Err()
	}
	// An error means fewer words to choose from.
	switch client := o.client.(type) {
	case *redis.Client:
		_ = look(ctx, client)
	case *redis.ClusterClient:
		_ = client.ForEachMaster(ctx, look)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// completeChoices offers the values of the flags that have few.
func completeChoices(cmd *cobra.Command) {
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if c, ok := f.Value.(choice); ok {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(c.choices, cobra.ShellCompDirectiveNoFileComp))
		}
	})
}
