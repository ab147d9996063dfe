package cli

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-singleton/singleton/internal/crontab"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/spf13/pflag"
)

// reading is how a crontab file is read.
type reading struct{ crontab.Options }

func (r *reading) register(flags *pflag.FlagSet) {
	p := &r.Policies
	p.CatchUp, p.CatchUpMax, p.Window, p.OnInterrupt = "latest", 100, 24*time.Hour, "record"
	toggle{&r.Seconds}.register(flags, "seconds", "schedules have six fields, seconds first")
	flags.Var(zone{&r.Zone}, "tz", "time `ZONE` of the schedules above which no CRON_TZ is set")
	flags.Var(choice{&p.Overlap, []string{"skip", "queue", "replace", "allow"}}, "overlap", "what becomes of a tick while a run of its "+
		"job goes on; skip, or queue with catch-up=all")
	flags.Var(choice{&p.CatchUp, []string{"none", "latest", "all"}}, "catch-up", "which missed ticks are made up")
	flags.Var(number{&p.CatchUpMax}, "catch-up-max", "most ticks that catch-up=all makes up, the newest")
	flags.Var(span{&p.Window}, "window", "how late a tick may still be made up")
	flags.Var(choice{&p.OnInterrupt, []string{"record", "rerun"}}, "on-interrupt", "what follows a run whose process died")
}

// check returns what is wrong with the values that the flags themselves let pass.
func (r *reading) check() error {
	switch p := r.Policies; {
	case p.CatchUpMax < 1 || p.CatchUpMax > 10_000:
		return usagef("--catch-up-max %d is out of range 1-10000", p.CatchUpMax)
	case p.Window <= 0:
		return usagef("--window %s is too short: it must be more than 0", compact(p.Window))
	case p.CatchUp == "all" && (p.Overlap == "skip" || p.Overlap == "replace"):
		return usagef("--catch-up=all does not go with --overlap=%s: the ticks to make up wait for one another; say queue or allow", p.Overlap)
	}
	return nil
}

// readCrontab reads and parses a file; a *crontab.Errors holds all that is wrong with it. It also says whether everybody
// may write to it.
func (r *reading) readCrontab(path string) (file *crontab.File, open bool, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, false, badFile(fmt.Errorf("the crontab cannot be read: %w", err))
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, false, badFile(fmt.Errorf("the crontab cannot be read: %w", err))
	}
	const othersWrite = 0o002
	file, err = r.parse(path, f)
	return file, info.Mode().IsRegular() && info.Mode().Perm()&othersWrite != 0, err
}

// parse parses what in holds.
func (r *reading) parse(name string, in io.Reader) (*crontab.File, error) {
	data, err := io.ReadAll(io.LimitReader(in, crontab.MaxSize+1))
	if err != nil {
		return nil, badFile(fmt.Errorf("the crontab cannot be read: %w", err))
	}
	file, err := crontab.Parse(name, data, r.Options)
	if err != nil {
		return nil, badFile(err)
	}
	return file, nil
}

func badFile(err error) error { return &failure{code: exitUsage, err: err} }

var (
	overlaps = map[string]scheduler.Overlap{
		"":        scheduler.OverlapDefault,
		"skip":    scheduler.OverlapSkip,
		"queue":   scheduler.OverlapQueue,
		"replace": scheduler.OverlapReplace,
		"allow":   scheduler.OverlapAllow,
	}
	catchUps = map[string]scheduler.CatchUp{
		"":       scheduler.CatchUpLatest,
		"latest": scheduler.CatchUpLatest,
		"all":    scheduler.CatchUpAll,
		"none":   scheduler.CatchUpNone,
	}
	interrupts = map[string]scheduler.Interrupt{
		"":       scheduler.InterruptRecord,
		"record": scheduler.InterruptRecord,
		"rerun":  scheduler.InterruptRerun,
	}
)

// schedulerJob turns a job of a file into one of the scheduler.
func schedulerJob(j crontab.Job, do scheduler.Func) scheduler.Job {
	return scheduler.Job{
		Name:        j.Name,
		Spec:        j.Spec,
		Schedule:    j.Expr,
		Do:          do,
		Overlap:     overlaps[j.Overlap],
		CatchUp:     catchUps[j.CatchUp],
		CatchUpMax:  j.CatchUpMax,
		Window:      j.Window,
		OnInterrupt: interrupts[j.OnInterrupt],
		Timeout:     j.Timeout,
		Retry:       scheduler.Retry{Attempts: j.Retry, Delay: j.RetryDelay},
		Jitter:      j.Jitter,
	}
}
