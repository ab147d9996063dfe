package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/procgroup"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
	"github.com/spf13/cobra"
)

// onceFlags are the flags of once.
type onceFlags struct {
	target
	logging
	id, job string
	per     time.Duration
	grace   time.Duration
	history int
	code    int // of who finds it claimed
}

func (a *app) newOnceCommand() *cobra.Command {
	f := new(onceFlags)
	cmd := &cobra.Command{
		Use:   "once --group NAME --job NAME [flags] -- COMMAND [ARG...]",
		Short: "Run a command on one of the machines that start it at about the same time",
		Long: `Runs a command unless another machine has claimed it less than half of --per ago, by the store's clock. It makes the same
line in the crontabs of many machines run on one of them: say with --per how often they start it. Nobody leads and nothing
runs in between; "singleton history" shows the runs. A group of "singleton cron" or "singleton run" is not for this.

Who claims the command runs it, without a shell, in a process group of its own, with nothing to read on standard input; what
it writes is passed through unchanged. It finds SINGLETON_GROUP, _REPLICA, _JOB, _TICK, _TICK_UNIX, _RUN_ID, _ATTEMPT,
_REASON and _TOKEN in its environment. The others say in the log who has claimed it, and when; --log-level warn silences
that. When a machine dies over the command, no other one runs it before half of --per has passed. The command runs on when
the store cannot be reached any more.

SIGTERM, SIGINT and SIGHUP send SIGTERM to the command, and SIGKILL after --grace. A second signal kills it now.

Exit codes: the command's, 128 and the signal's number when it was killed by one, 0 or --code where another machine has
claimed it, 125 this program or the store failed and the command was not run, 126 the command is not executable, 127 it was
not found.`,
		Example: `  0 3 * * *    singleton once --group nightly --job backup --per 24h -- /usr/local/bin/backup
  */5 * * * *  singleton once --group nightly --job sync --per 5m --log-level warn -- sync --all`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error { return a.once(cmd, f, args) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows the command is its own
	f.target.register(flags)
	f.logging.register(flags)
	f.per, f.grace, f.history = time.Hour, 25*time.Second, 100
	flags.StringVar(&f.job, "job", "", "`NAME` of the work, the same on every machine; required")
	flags.Var(span{&f.per}, "per", "how often the machines start it")
	flags.StringVar(&f.id, "id", "", "`NAME` of this machine; a random suffix is added (default HOSTNAME-PID)")
	flags.Var(span{&f.grace}, "grace", "how long the command may take to end after a stop")
	flags.Var(number{&f.history}, "history", "entries of history kept for the job")
	flags.Var(number{&f.code}, "code", "exit code where another machine has claimed it")
	return cmd
}

func (a *app) once(cmd *cobra.Command, f *onceFlags, argv []string) error {
	if err := f.target.check(); err != nil {
		return err
	}
	switch {
	case len(argv) == 0:
		return usagef("COMMAND is missing")
	case f.job == "":
		return usagef("--job is missing: give the work a name, the same on every machine")
	case f.grace <= 0:
		return usagef("--grace %s is too short: it must be more than 0", compact(f.grace))
	case f.code < 0 || f.code > 255:
		return usagef("--code %d is out of range 0-255", f.code)
	case f.history < 1: // the scheduler takes zero for its default
		return usagef("--history %d is out of range 1-10000", f.history)
	case f.per < 2*time.Second:
		return usagef("--per %s is too short: at least 2s", compact(f.per))
	case store.CheckName("job", f.job) != nil:
		return usagef("--job %.140q: use 1 to 128 letters, digits, '.', '_' and '-', starting with a letter or digit", f.job)
	}
	if err := checkReplica(f.id, scheduler.OnceLease); err != nil {
		return err
	}
	if err := procgroup.Find(argv[0]); err != nil { // before this machine claims it
		return cannotStart(err)
	}
	log, flush := f.unblocked(a.stderr)
	defer flush()
	st, err := a.open(a.choose(f.store), scheduler.OnceLease, log)
	if err != nil {
		return err
	}
	defer st.leave()
	if st.alone {
		return usagef("--store memory: lives inside of one process; the other machines could not look into it")
	}
	once := scheduler.Once{Group: f.group, Job: f.job, ID: f.id, Per: f.per, Keep: f.history, Logger: log}
	log = log.With("group", f.group, "job", f.job)
	guardian, err := procgroup.StartGuardian(log)
	if err != nil {
		return err
	}
	defer guardian.Close()
	now, kill := context.WithCancel(context.WithoutCancel(cmd.Context()))
	defer kill()
	ctx, stop := context.WithCancelCause(cmd.Context())
	defer stop(nil)
	s := &single{onceFlags: f, argv: argv, guardian: guardian, log: log, now: now, stdout: asFile(a.stdout), stderr: asFile(a.stderr)}

	signals := make(chan os.Signal, 2)
	signal.Notify(signals, hangupSignals()...) // to the end of the process, as in replica.run
	watching, stopWatching := context.WithCancel(now)
	var watchers sync.WaitGroup
	watchers.Go(func() { s.await(watching, signals, stop, kill) })
	if os.Getpid() == 1 { // of a container: nobody else reaps orphans
		watchers.Go(func() { procgroup.ReapOrphans(watching) })
	}
	err = once.Run(ctx, st, s.do)
	stopWatching()
	watchers.Wait()
	return s.verdict(st, err)
}

// verdict says how this program ends.
func (s *single) verdict(st *opened, err error) error {
	claimed, isClaimed := errors.AsType[*scheduler.ClaimedError](err)
	switch {
	case s.ran:
		if errors.Is(err, scheduler.ErrUnrecorded) {
			s.log.Error("the end of the run could not be recorded; history will call it interrupted", "error", err)
		}
		return s.result
	case isClaimed:
		s.log.Info("claimed by another machine; nothing to do", "replica", claimed.Replica, "at", claimed.At.UTC().Truncate(time.Second),
			"ago", claimed.Ago.Round(time.Millisecond), "per", s.per)
		if s.code == exitDone {
			return nil
		}
		return &failure{code: s.code}
	case s.signal.Load() != nil:
		return &failure{code: exitSignal + numberOf(*s.signal.Load())}
	case errors.Is(err, scheduler.ErrLed):
		return fmt.Errorf("not run: a cron or a run leads group %s, as singleton status --group %s shows; give once a group of its own",
			s.group, s.group)
	case errors.Is(err, scheduler.ErrNotOnce):
		return fmt.Errorf("not run: %w", err)
	}
	return fmt.Errorf("not run: %w", st.explain(err))
}
