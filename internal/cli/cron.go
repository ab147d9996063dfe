package cli

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-singleton/singleton/internal/crontab"
	"github.com/go-singleton/singleton/internal/procgroup"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/spf13/cobra"
)

// cronFlags are the flags of cron.
type cronFlags struct {
	target
	reading
	logging
	id           string
	lease, grace time.Duration
	history      int
	maxRunning   int
}

func (a *app) newCronCommand() *cobra.Command {
	f := new(cronFlags)
	cmd := &cobra.Command{
		Use:   "cron --group NAME FILE",
		Short: "Run a crontab, each tick once, on one of the machines that do so",
		Long: `Runs the jobs of a crontab. Start it with the same file and group on every machine: one of them leads and fires the
jobs, each scheduled tick once; when it dies or is stopped, another goes on where it was.

Each command runs through the job's SHELL in a process group of its own. It finds its run in the environment:
SINGLETON_JOB, _TICK, _TICK_UNIX, _RUN_ID, _ATTEMPT, _REASON, _TOKEN, _GROUP and _REPLICA. What it writes goes line by
line into the log. A run ends with SIGTERM to the whole group, and SIGKILL when that is not enough.

SIGTERM and SIGINT hand leadership over at once and let running commands end: they get SIGTERM after four fifths of --grace
and SIGKILL at its end. A second signal ends everything now.

The crontab is read again when it has changed, and on SIGHUP. Where anything is wrong with it the jobs stay as they were.

A comment line right above a job that starts with "#:" gives it options:

  #: name=report overlap=queue catch-up=all on-interrupt=rerun timeout=10m
  */5 * * * *  /usr/local/bin/report

  name=NAME                     what the job is called; made of its command and a hash by default
  overlap=skip|queue|replace|allow
                                what becomes of a tick while a run of the job goes on
  catch-up=latest|all|none      which ticks are made up that nobody could start in time
  catch-up-max=N                most ticks that catch-up=all makes up, the newest
  window=DURATION               how late a tick may still be made up
  on-interrupt=record|rerun     what follows a run whose process or session died
  timeout=DURATION              longest time for one attempt; none by default
  retry=N                       most attempts of a run, where each fails or times out; 1, which is none after the first
  retry-delay=DURATION          before the second attempt, doubled each time; 1s, and at most 5m
  jitter=DURATION               largest delay of a start, other for each tick, the same on every machine; none

Flags of the same name set the default for all jobs.`,
		Example: `  singleton cron --group billing jobs.cron
  singleton cron --group billing --store redis://10.0.0.5:6379 --grace 10m --log-format json jobs.cron
  singleton cron --group try --store memory: --seconds jobs.cron`,
		Args: arguments(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return a.cron(cmd, f, args[0]) },
	}
	flags := cmd.Flags()
	f.target.register(flags)
	f.reading.register(flags)
	f.logging.register(flags)
	f.lease, f.grace, f.history, f.maxRunning = 15*time.Second, 25*time.Second, 100, 64
	flags.Var(span{&f.lease}, "lease", "how long leadership outlives a crash")
	flags.StringVar(&f.id, "id", "", "`NAME` of this machine; a random suffix is added (default HOSTNAME-PID)")
	flags.Var(span{&f.grace}, "grace", "how long running commands may go on after a stop")
	flags.Var(number{&f.history}, "history", "entries of history kept for each job")
	flags.Var(number{&f.maxRunning}, "max-running", "commands that run at once on this machine; 0 is no limit")
	return cmd
}

func (a *app) cron(cmd *cobra.Command, f *cronFlags, path string) error {
	ctx := cmd.Context()
	if err := f.target.check(); err != nil {
		return err
	}
	if err := f.reading.check(); err != nil {
		return err
	}
	if f.history < 1 { // the scheduler takes zero for its default
		return usagef("--history %d is out of range 1-10000", f.history)
	}
	if f.grace <= 0 {
		return usagef("--grace %s is too short: it must be more than 0", compact(f.grace))
	}
	if f.maxRunning < 0 {
		return usagef("--max-running %d is negative", f.maxRunning)
	}
	if err := checkReplica(f.id, f.lease); err != nil {
		return err
	}
	seen := look(path)
	file, writable, err := f.readCrontab(path)
	if err != nil {
		return err
	}
	log, flush := f.unblocked(a.stderr)
	defer flush()
	st, err := a.open(a.choose(f.store), f.lease, log)
	if err != nil {
		return err
	}
	defer st.leave()
	leading := new(atomic.Bool)
	s, err := scheduler.New(st, scheduler.Config{
		Group:      f.group,
		ID:         f.id,
		Lease:      f.lease,
		Grace:      f.grace,
		History:    f.history,
		MaxRunning: f.maxRunning,
		Logger:     log,
		Callbacks:  follow(leading),
	})
	if err != nil {
		return usage(err)
	}
	log = log.With("group", f.group)
	now, kill := context.WithCancel(context.WithoutCancel(ctx))
	defer kill()
	guardian, err := procgroup.StartGuardian(log)
	if err != nil {
		return err
	}
	defer guardian.Close()
	c := &commands{group: f.group, lease: f.lease, grace: f.grace, log: log, now: now, guardian: guardian}
	reload := &reloader{path: path, reading: &f.reading, hangups: hangups(), seen: seen, log: log, replace: func(jobs []crontab.Job) error {
		all := make([]scheduler.Job, len(jobs))
		for i, j := range jobs {
			all[i] = schedulerJob(j, c.do(j))
		}
		return s.Replace(all...)
	}}
	if err := reload.take(file); err != nil {
		return usage(err)
	}
	log.Info("starting", "replica", s.ID(), "store", st.name, "file", path, "jobs", len(file.Jobs), "lease", f.lease)
	if names := a.strangers(cmd.Root()); len(names) > 0 {
		log.Warn("environment variables that mean nothing; singleton cron --help names the flags", "variables", strings.Join(names, ", "))
	}
	tell(log, path, file, writable)
	r := &replica{group: f.group, lease: f.lease, store: st, scheduler: s, commands: c, kill: kill, leading: leading, log: log, reloader: reload}
	return r.run(ctx)
}

// tell logs what a person should know about the file.
func tell(log *slog.Logger, path string, file *crontab.File, writable bool) {
	if writable {
		log.Warn("everybody on this machine may write to the crontab, and so run commands as this user; chmod o-w it", "file", path)
	}
	if len(file.Jobs) == 0 {
		log.Warn("the crontab has no jobs", "file", path)
	}
	for _, n := range file.Notices {
		log.Info("notice about the crontab", "notice", line(n))
	}
}
