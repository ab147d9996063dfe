package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/internal/procgroup"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

// service is one running `singleton run`.
type service struct {
	*runFlags
	argv           []string
	stdout, stderr *os.File // nil is the log
	store          *opened
	elector        *election.Elector
	guardian       *procgroup.Guardian
	log            *slog.Logger
	now            context.Context // when it ends, the command is killed at once
	kill           context.CancelFunc

	wait    *time.Timer           // for leadership
	leading atomic.Bool           // the command runs, or is about to
	result  atomic.Pointer[error] // of the command that has ended this program
}

// run returns when the command has ended by itself, after a signal, and with a fault that no retry heals.
func (s *service) run(ctx context.Context) error {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, hangupSignals()...) // to the end of the process, as in replica.run

	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.wait = time.NewTimer(max(s.patience, time.Nanosecond))
	defer s.wait.Stop()
	if s.patience == 0 {
		s.wait.Stop()
	}
	watching, stopWatching := context.WithCancel(context.WithoutCancel(ctx))
	var watchers sync.WaitGroup
	watchers.Go(func() { watchHealth(watching, s.elector.Check, s.lease, s.log) })
	watchers.Go(func() { s.store.complain(watching, s.group, s.lease, s.log) })
	if os.Getpid() == 1 { // of a container: nobody else reaps orphans
		watchers.Go(func() { procgroup.ReapOrphans(watching) })
	}
	ended := make(chan error, 1)
	go func() { ended <- s.elector.Run(ctx, s.lead) }()

	err := s.await(signals, stop, ended)
	stopWatching()
	watchers.Wait()
	return err
}

// await waits for the end of the elector and hands signals on: the first ends the command, the second kills it.
func (s *service) await(signals <-chan os.Signal, stop context.CancelCauseFunc, ended <-chan error) error {
	var first os.Signal
	var since time.Time // of the first
	var limit <-chan time.Time
	var give error // what this program ends with where the command has not decided it
	for {
		select {
		case err := <-ended:
			s.leave(err)
			switch result := s.result.Load(); {
			case result != nil:
				return *result
			case give == nil && errors.Is(err, store.ErrPermanent):
				return s.store.explain(err)
			case give == nil:
				return err
			}
			return give
		case <-limit:
			if s.leading.Load() && s.now.Err() == nil { // it has won at the last moment
				limit = nil
				continue
			}
			s.log.Warn("the store does not answer; leaving without telling it")
			if result := s.result.Load(); result != nil {
				return *result
			}
			return give
		case <-s.wait.C:
			give = s.waited()
			limit = time.After(idleLimit)
			stop(errWaited)
		case sig := <-signals:
			switch {
			case first == nil:
				first, since = sig, time.Now()
				s.log.Info("stopping; a second signal kills the command", "signal", sig.String())
				give = &failure{code: exitSignal + numberOf(sig)}
				if !s.leading.Load() {
					limit = time.After(idleLimit)
				}
				stop(errStopped)
			case s.now.Err() == nil && time.Since(since) > sameSignal:
				s.log.Warn("stopping now; the command is killed", "signal", sig.String())
				s.kill()
				limit = time.After(nowLimit)
			}
		}
	}
}

// leave ends the session of this replica, which status would show for a while; where that fails, the session lapses.
func (s *service) leave(fault error) {
	if errors.Is(fault, store.ErrPermanent) {
		return // it would be the answer again
	}
	ctx, cancel := context.WithTimeout(context.Background(), idleLimit)
	defer cancel()
	if err := s.store.Leave(ctx, s.group, s.elector.ID()); err != nil {
		s.log.Warn("session could not be ended; it lapses", "replica", s.elector.ID(), "error", err)
	}
}

// lead runs the command for a term.
func (s *service) lead(ctx context.Context, term *election.Term) error {
	s.leading.Store(true)
	defer s.leading.Store(false)
	s.wait.Stop()
	lost := false // the command is told to end for want of a lease; procgroup.Run's goroutine alone asks
	log := s.log.With("token", term.Token())
	answering, quiet := context.WithCancel(ctx)
	var answers sync.WaitGroup
	answers.Go(func() { s.answer(answering, term, log) })
	defer answers.Wait()
	defer quiet()
	log.Info("command is started", "command", s.argv[0])
	res, err := procgroup.Run(ctx, procgroup.Spec{
		Argv:     s.argv,
		Env:      s.environment(term),
		Stdout:   s.stdout,
		Stderr:   s.stderr,
		Output:   func(stream string, text []byte) { log.Info("output", "stream", stream, "line", procgroup.Escape(text)) },
		Guardian: s.guardian,
		KillAfter: func(cause error) time.Duration {
			after := s.grace
			if !stops(cause) && !errors.Is(cause, election.ErrResigned) { // else the lease is renewed meanwhile
				after, lost = killBy(term), true
			}
			log.Warn("command is told to end", "kill_after", after, "reason", cause)
			return after
		},
		// The end of a term ends Valid a guard before anybody else may lead. Who has been told to end for that reason has
		// the guard to do it; who has been told before, for a stop, has had time enough.
		Alive: func() bool { return s.now.Err() == nil && (lost || term.Valid()) },
	})
	if res.Leftover {
		log.Error("a process of the command's group cannot be ended")
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return s.end(cannotStart(err))
	case errors.Is(res.Cause, errWaited):
		return res.Cause
	case res.Cause == nil || stops(res.Cause):
		log.Info("command has ended", "status", res.String())
		if res.ExitCode == exitDone {
			return s.end(nil)
		}
		return s.end(&failure{code: res.ExitCode})
	case s.exitOnLoss:
		return s.end(&failure{code: exitLost, err: fmt.Errorf("leadership was lost: %w", res.Cause)})
	}
	log.Warn("command has ended with the term; it is started again in the next one of this replica", "status", res.String())
	if s.patience > 0 {
		s.wait.Reset(s.patience)
	}
	return res.Cause
}

// answer answers what is asked of this replica while it leads: it can be asked to resign.
func (s *service) answer(ctx context.Context, term *election.Term, log *slog.Logger) {
	if err := scheduler.Decline(ctx, s.store, s.elector, term, log); err != nil && ctx.Err() == nil {
		log.Warn("requests to this leader have no answer", "error", s.store.explain(err))
	}
}

// end has this program end with err.
func (s *service) end(err error) error {
	s.result.Store(&err)
	return election.ErrStop
}

// stops reports whether a command is told to end by this program rather than by the end of a term.
func stops(cause error) bool { return errors.Is(cause, errStopped) || errors.Is(cause, errWaited) }

// killBy returns when a command must be killed whose term is over: a fifth of the guard is left for dying.
func killBy(term *election.Term) time.Duration {
	guard := lifetime.Guard(term.Lease().TTL)
	return min(guard/5*4, term.UntilDeadline()-guard/5) // the latter where this process has slept
}

// environment returns that of this process, and what tells the command for whom it leads.
func (s *service) environment(term *election.Term) []string {
	return append(inherited(),
		"SINGLETON_GROUP="+s.group,
		"SINGLETON_REPLICA="+term.Lease().Replica,
		"SINGLETON_TOKEN="+strconv.FormatUint(term.Token(), 10),
	)
}

// hangupSignals are what ends run and once. A closed terminal is a reason, too, unless nohup(1) says no.
func hangupSignals() []os.Signal {
	stop := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		stop = append(stop, syscall.SIGHUP)
	}
	return stop
}

// numberOf returns the number of a signal.
func numberOf(sig os.Signal) int {
	n, _ := sig.(syscall.Signal)
	return int(n)
}
