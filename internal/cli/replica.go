package cli

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/procgroup"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

const (
	// nowLimit is how long a replica may take after a second signal: to see its commands die, and to tell the store.
	nowLimit = 3 * time.Second

	// idleLimit is how long one may take after the first that neither leads nor runs anything: all that it can have to tell
	// a store that does not answer is that it gives up an attempt to lead.
	idleLimit = 500 * time.Millisecond

	// sameSignal is how long after a signal another one is taken for the same: timeout(1), for one, sends it to its child
	// and then to the whole process group.
	sameSignal = 200 * time.Millisecond

	// askAgain is how soon a store that has not answered is asked again how it is set up.
	askAgain = 5 * time.Second
)

// replica is one running `singleton cron`.
type replica struct {
	group     string
	lease     time.Duration
	store     *opened
	scheduler *scheduler.Scheduler
	commands  *commands
	kill      context.CancelFunc // ends all commands
	leading   *atomic.Bool
	reloader  *reloader
	log       *slog.Logger
}

// follow returns callbacks that keep leading up to date.
func follow(leading *atomic.Bool) election.Callbacks {
	return election.Callbacks{
		Elected: func(*election.Term) { leading.Store(true) },
		Lost:    func(*election.Term, error) { leading.Store(false) },
	}
}

// run returns when the scheduler has: after a signal, or with a fault that no retry heals.
func (r *replica) run(ctx context.Context) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM) // to the end of the process: one more must not cut its last words off

	if r.store.alone { // nobody else can have lost anything of a store in memory
		if err := scheduler.Create(ctx, r.store, r.group); err != nil {
			return err
		}
	}
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	stop := func() { end(errStopped) }
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var watchers sync.WaitGroup
	watchers.Go(func() { watchHealth(watching, r.scheduler.Check, r.lease, r.log) })
	watchers.Go(func() { r.reloader.watch(watching) })
	watchers.Go(func() { r.store.complain(watching, r.group, r.lease, r.log) })
	if os.Getpid() == 1 { // of a container: nobody else reaps orphans
		watchers.Go(func() { procgroup.ReapOrphans(watching) })
	}
	ended := make(chan error, 1)
	go func() { ended <- r.scheduler.Run(ctx) }()

	err := r.await(signals, stop, ended)
	r.kill()
	if !r.commands.wait(nowLimit) {
		r.log.Error("a command cannot be killed; it is left behind")
	}
	stopWatching()
	watchers.Wait()
	if err == nil {
		r.log.Info("stopped")
	}
	return err
}

// await waits for the scheduler's end and hands signals on: the first stops it, the second does not wait for commands.
func (r *replica) await(signals <-chan os.Signal, stop func(), ended <-chan error) error {
	var first, second time.Time
	var limit <-chan time.Time
	idle := false
	for {
		select {
		case err := <-ended:
			return r.explain(err)
		case <-limit:
			if idle {
				r.log.Warn("the store does not answer; leaving without telling it")
				return nil
			}
			return errors.New("stopped at once, before the store could be told how running commands have ended; " +
				"history will call them interrupted")
		case sig := <-signals:
			switch now := time.Now(); {
			case first.IsZero():
				first = now
				leads := r.leading.Load()
				if leads {
					r.log.Info("stopping; leadership is handed over, a second signal ends running commands", "signal", sig.String())
				} else {
					r.log.Info("stopping; this replica does not lead, a second signal ends running commands", "signal", sig.String())
				}
				if idle = !leads && r.commands.count.Load() == 0; idle {
					limit = time.After(idleLimit)
				}
				stop()
			case second.IsZero() && now.Sub(first) > sameSignal:
				second = now
				r.log.Warn("stopping now; running commands are killed", "signal", sig.String())
				r.kill()
				if !idle {
					limit = time.After(nowLimit)
				}
			}
		}
	}
}

// explain says what to do where the scheduler's error does not.
func (r *replica) explain(err error) error {
	switch {
	case errors.Is(err, scheduler.ErrUnfinished):
		return errors.Join(err, errors.New("raise --grace, or let the commands end when they get SIGTERM"))
	case errors.Is(err, store.ErrPermanent):
		return r.store.explain(err)
	}
	return err
}

// watchHealth logs when a check has failed for a lease, and when it succeeds again. Shorter spells are part of a replica's
// life.
func watchHealth(ctx context.Context, check func() error, lease time.Duration, log *slog.Logger) {
	ticker := time.NewTicker(lease / 5)
	defer ticker.Stop()
	var since time.Time // when it was first seen to fail
	reported := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		err := check()
		switch now := time.Now(); {
		case err == nil:
			if reported {
				log.Info("healthy again")
			}
			since, reported = time.Time{}, false
		case since.IsZero():
			since = now
		case !reported && now.Sub(since) >= lease:
			reported = true
			log.Error("unhealthy", "error", err)
		}
	}
}
