package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/procgroup"
	"github.com/spf13/cobra"
)

// runFlags are the flags of run.
type runFlags struct {
	target
	logging
	id           string
	lease, grace time.Duration
	patience     time.Duration // 0 is no end
	exitOnLoss   bool
}

func (a *app) newRunCommand() *cobra.Command {
	f := new(runFlags)
	cmd := &cobra.Command{
		Use:   "run --group NAME [flags] -- COMMAND [ARG...]",
		Short: "Run a command while this machine leads, on one of the machines that do so",
		Long: `Runs a command as long as this machine leads. Start it with the same group on every machine: one of them leads and runs
the command; when it dies, is stopped or cut off, another one does. A group of "singleton cron" is not for this.

The command is started without a shell, in a process group of its own, with nothing to read on standard input; what it
writes is passed through unchanged. It finds SINGLETON_GROUP, _REPLICA and _TOKEN in its environment: a resource that
refuses a lower token than it has seen is safe from one that was forgotten somewhere.

Before leadership can go to another machine the whole process group gets SIGTERM, a tenth of --lease before, and SIGKILL in
time; none of this needs the network. In the next term of this machine the command is started again, or with
--exit-on-loss this program ends. When the command ends by itself, so does this program, with its exit code.

SIGTERM, SIGINT and SIGHUP send SIGTERM to the command, and SIGKILL after --grace; leadership is given up once it has ended.
A second signal ends everything now.

Exit codes: the command's, 128 and the signal's number when it was killed by one or when this program was stopped while
it did not lead, 75 leadership was lost (--exit-on-loss), 124 it was not won in time (--wait-timeout), 125 this program
failed, 126 the command is not executable, 127 it was not found.`,
		Example: `  singleton run --group worker -- /usr/local/bin/worker --queue mail
  singleton run --group worker --wait-timeout 1m --exit-on-loss -- ./worker`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runWhileLeading(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows the command is its own
	f.target.register(flags)
	f.logging.register(flags)
	f.lease, f.grace = 15*time.Second, 25*time.Second
	flags.Var(span{&f.lease}, "lease", "how long leadership outlives a crash")
	flags.StringVar(&f.id, "id", "", "`NAME` of this machine; a random suffix is added (default HOSTNAME-PID)")
	flags.Var(span{&f.grace}, "grace", "how long the command may take to end after a stop")
	flags.Var(span{&f.patience}, "wait-timeout", "longest wait for leadership; 0 is no end")
	toggle{&f.exitOnLoss}.register(flags, "exit-on-loss", "end when leadership is lost")
	return cmd
}

func (a *app) runWhileLeading(cmd *cobra.Command, f *runFlags, argv []string) error {
	if err := f.target.check(); err != nil {
		return err
	}
	switch {
	case len(argv) == 0:
		return usagef("COMMAND is missing")
	case f.grace <= 0:
		return usagef("--grace %s is too short: it must be more than 0", compact(f.grace))
	case f.patience < 0:
		return usagef("--wait-timeout %s is negative", compact(f.patience))
	}
	if err := checkReplica(f.id, f.lease); err != nil {
		return err
	}
	if err := procgroup.Find(argv[0]); err != nil { // not only once this machine leads
		return cannotStart(err)
	}
	log, flush := f.unblocked(a.stderr)
	defer flush()
	st, err := a.open(a.choose(f.store), f.lease, log)
	if err != nil {
		return err
	}
	defer st.leave()
	elector, err := election.New(st.Store, election.Config{Group: f.group, ID: f.id, Lease: f.lease, Logger: log})
	if err != nil {
		return usage(err)
	}
	log = log.With("group", f.group)
	guardian, err := procgroup.StartGuardian(log)
	if err != nil {
		return err
	}
	defer guardian.Close()
	if names := a.strangers(cmd.Root()); len(names) > 0 {
		log.Warn("environment variables that mean nothing; singleton run --help names the flags", "variables", strings.Join(names, ", "))
	}
	log.Info("starting", "replica", elector.ID(), "store", st.name, "command", argv[0], "lease", f.lease)
	now, kill := context.WithCancel(context.WithoutCancel(cmd.Context()))
	defer kill()
	s := &service{
		runFlags: f, argv: argv, store: st, elector: elector, guardian: guardian, log: log, now: now, kill: kill,
		stdout: asFile(a.stdout), stderr: asFile(a.stderr),
	}
	return s.run(cmd.Context())
}

// asFile returns w where a command can write to it without us, else nil.
func asFile(w any) *os.File {
	f, _ := w.(*os.File)
	return f
}

// Why the command of a service is told to end, besides the end of its term.
var (
	errStopped = errors.New("this program is stopped")
	errWaited  = errors.New("leadership was not won in time")
)

// waited is the error of --wait-timeout.
func (s *service) waited() error {
	return &failure{code: exitWaited, err: fmt.Errorf("waited %s for leadership; singleton status --group %s says who has it",
		compact(s.patience), s.group)}
}
