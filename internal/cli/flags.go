package cli

import (
	"errors"
	"slices"
	"strings"
	"time"

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
		if f.Changed || f.Name == "help" || f.Name == "version" || problem != nil {
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

// forCommands are the variables that the commands of a crontab get: a `singleton cron` among them has them too.
var forCommands = []string{"GROUP", "REPLICA", "JOB", "TICK", "TICK_UNIX", "RUN_ID", "ATTEMPT", "REASON", "TOKEN", "GUARD"}

// strangers returns the variables of the environment that look like ours and mean nothing.
func (a *app) strangers(root *cobra.Command) []string {
	known := make(map[string]bool)
	for _, name := range forCommands {
		known["SINGLETON_"+name] = true
	}
	for _, cmd := range root.Commands() {
		cmd.Flags().VisitAll(func(f *pflag.Flag) { known[environmentName(f.Name)] = true })
	}
	var names []string
	for _, variable := range a.environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "SINGLETON_") && !known[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// cause returns what a flag's value has said, without the flag's name around it.
func cause(err error) error {
	if bad, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return bad.Unwrap()
	}
	return err
}

// target is the store and group that a command is about.
type target struct {
	store place
	group string
}

func (t *target) register(flags *pflag.FlagSet) {
	flags.Var(&t.store, "store", "`URL` of the store: redis://, redis+sentinel://, redis+cluster://, rediss… for TLS, unix://, redlock://, zk:// or memory:; "+
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

// shortestLease is the shortest that an elector takes.
const shortestLease = 500 * time.Millisecond

// checkReplica checks how a replica calls itself and how long its lease is, in the words of the flags.
func checkReplica(id string, lease time.Duration) error {
	switch {
	case id != "" && store.CheckName("replica", id) != nil:
		return usagef("--id %.140q: use 1 to 128 letters, digits, '.', '_' and '-', starting with a letter or digit", id)
	case lease < shortestLease:
		return usagef("--lease %s is too short: at least %s", compact(lease), compact(shortestLease))
	}
	return nil
}
