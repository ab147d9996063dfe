package cli

import (
	"context"
	"io"
	"maps"
	"os"
	"time"
	_ "time/tzdata" // machines without a zone database still know CRON_TZ

	"github.com/go-singleton/singleton/internal/procgroup"
	"github.com/go-singleton/singleton/store"
	"github.com/spf13/cobra"
)

// app is what the commands share: where they write, what time it is, and their environment.
type app struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	now            func() time.Time
	local          *time.Location
	lookup         func(name string) (string, bool)
	environ        func() []string
	terminal       bool // people read stdout as it comes
	columns        int  // of that terminal; 0 is not known
	openers        Openers
}

// builtIn are the openers that every program has.
var builtIn = Openers{"zk": openZooKeeper, "zks": openZooKeeper, "redlock": openRedlock, "redlocks": openRedlock}

// Main runs the command line args, without the program's name, and returns its exit code. A command that waits ends when
// ctx does. This program starts itself as the guardian of its commands, see package procgroup. more are the stores that it
// knows besides.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer, more Openers) int {
	if len(args) == 1 && args[0] == procgroup.GuardianWord {
		return procgroup.Guard()
	}
	a := &app{
		stdin: os.Stdin, stdout: stdout, stderr: stderr,
		now: time.Now, local: localZone(os.LookupEnv), lookup: os.LookupEnv, environ: os.Environ,
		terminal: isTerminal(stdout), columns: columnsOf(stdout),
		openers: maps.Clone(builtIn),
	}
	maps.Copy(a.openers, more)
	return a.run(ctx, args)
}

func (a *app) run(ctx context.Context, args []string) int {
	root := a.newRootCommand()
	root.SetArgs(args)
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	cmd, err := root.ExecuteContextC(ctx)
	return a.report(cmd, err)
}

func (a *app) newRootCommand() *cobra.Command {
	var version bool
	root := &cobra.Command{
		Use:   "singleton",
		Short: "Cron jobs on one of many machines, each tick once",
		Long: `singleton runs a crontab on several machines at once: one of them leads and fires the jobs, each scheduled tick
once. When it dies or is stopped, another goes on where it was. All they need is a Redis that they share.

Each flag can also be given as an environment variable: --catch-up-max as SINGLETON_CATCH_UP_MAX. The flag wins.

Exit codes: 0 done, 1 failed, 2 wrong usage or a bad file, 3 nobody leads, 4 a job needs attention (status --check), 5 the
leader refuses, 6 the run of trigger --wait has not succeeded, 124 no answer in time; run and once
have that of their command.`,
		Example: `  singleton validate jobs.cron                run on your laptop: is the file right, and when does what run?
  singleton cron --group billing jobs.cron    run on every machine
  singleton status --group billing            who leads, what ran, what runs next`,
		SuggestionsMinimumDistance: 2,

		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{DisableDefaultCmd: true},
		Args:              cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case version:
				return a.printVersion()
			case len(args) == 0:
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.applyEnvironment(cmd) },
	}
	// Not root.Version: its template would have the linker keep all methods.
	toggle{&version}.register(root.Flags(), "version", "print the version, as the command does")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return badFlag(err) })
	root.AddCommand(
		a.newCronCommand(),
		a.newRunCommand(),
		a.newOnceCommand(),
		a.newStatusCommand(),
		a.newHistoryCommand(),
		a.newTriggerCommand(),
		a.newPauseCommand(),
		a.newResumeCommand(),
		a.newCancelCommand(),
		a.newResignCommand(),
		a.newResetCommand(),
		a.newForgetCommand(),
		a.newValidateCommand(),
		a.newNextCommand(),
		a.newDoctorCommand(),
		a.newDemoCommand(),
		a.newCompletionCommand(),
		a.newVersionCommand(),
	)
	root.SetHelpCommand(newHelpCommand())
	for _, cmd := range root.Commands() {
		completeChoices(cmd)
		if cmd.Flags().Lookup("group") != nil {
			_ = cmd.RegisterFlagCompletionFunc("group", a.completeGroups) // it fails for a flag that is not there
		}
	}
	return root
}

// newHelpCommand takes the place of cobra's, which answers a command that there is not with the help of all.
func newHelpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Print the help of a command",
		Args:  arguments(0, 1, "COMMAND"),
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				root.InitDefaultHelpFlag()
				return root.Help()
			}
			for _, c := range root.Commands() {
				if c.Name() == args[0] {
					c.InitDefaultHelpFlag()
					return c.Help()
				}
			}
			return unknownCommand(root, args[0])
		},
		ValidArgsFunction: func(cmd *cobra.Command, _ []string, _ string) (names []string, _ cobra.ShellCompDirective) {
			for _, c := range cmd.Root().Commands() {
				if c.IsAvailableCommand() {
					names = append(names, c.Name())
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}

// unknownCommand says what was meant, perhaps. An argument that is no word may be anything, such as a URL with a
// password: it is not repeated.
func unknownCommand(cmd *cobra.Command, name string) error {
	switch {
	case store.CheckName("command", name) != nil:
		return usagef("unknown command")
	case len(cmd.SuggestionsFor(name)) > 0:
		return usagef("unknown command %q; did you mean %q?", name, cmd.SuggestionsFor(name)[0])
	}
	return usagef("unknown command %q", name)
}

// arguments checks their number; names says what is wanted.
func arguments(least, most int, names string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usagef("%s is missing", names)
		case len(args) > most && most == 0:
			return usagef("takes no arguments, %s given", many(len(args), "is", "are"))
		case len(args) > most:
			return usagef("takes %s and nothing else, %d arguments are given", names, len(args))
		}
		return nil
	}
}
