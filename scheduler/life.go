package scheduler

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/world"
)

// leaveTime bounds how long a stopping replica tries to say goodbye.
const leaveTime = time.Second

// Run takes part in the election and fires jobs while this replica leads. When ctx ends it hands leadership over at once,
// lets running jobs go on for the grace (their contexts end at four fifths of it), and returns nil, or ErrUnfinished when
// jobs still run at its end. Every other error is a fault that no retry heals (store.ErrPermanent); running jobs have the
// grace then, too. It may be called again after it has returned.
func (s *Scheduler) Run(ctx context.Context) error {
	campaign, stop := context.WithCancel(ctx)
	defer stop()
	if err := s.begin(ctx, stop); err != nil {
		return err
	}
	defer s.end()

	base := context.WithoutCancel(ctx)
	inner, stopInner := context.WithCancel(base) // of what goes on while runs drain
	defer stopInner()
	var wg sync.WaitGroup
	wg.Go(func() { s.attend(inner) })
	over := make(chan struct{})
	unfinished := 0
	wg.Go(func() { unfinished = s.drain(campaign, over) })

	err := s.elector.Run(campaign, s.lead)
	close(over)
	stopInner()
	wg.Wait()
	if err == nil {
		err = s.fault()
	}
	untold := s.runner.untold()
	if unfinished > 0 {
		s.log.Error("jobs ignore their cancelled context", "runs", unfinished)
		err = errors.Join(err, ErrUnfinished)
	}
	if untold > 0 {
		s.log.Error("ends of runs could not be told; they will be called interrupted", "runs", untold)
	}
	if unfinished+untold == 0 {
		s.leave(base)
	}
	return err
}

// begin prepares a Run, which stop ends.
func (s *Scheduler) begin(ctx context.Context, stop func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		return errors.New("scheduler: Run is running already")
	}
	s.stop, s.fatal = stop, nil
	s.world = world.From(ctx)
	s.runner = newRunner(context.WithoutCancel(ctx), s.log, func() {
		s.ring()
		s.ringRounds()
	})
	return nil
}

func (s *Scheduler) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = nil
}

// fail ends Run with a fault that no retry heals.
func (s *Scheduler) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fatal == nil {
		s.fatal = err
	}
	s.stop()
}

func (s *Scheduler) fault() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fatal
}

// drain waits for the end of ctx, then lets runs go on for the grace, or until over; it returns how many it had to give up.
func (s *Scheduler) drain(ctx context.Context, over chan struct{}) int {
	select {
	case <-over:
		return 0
	case <-ctx.Done():
	}
	s.world.WaitTurn()
	s.ringRounds()
	if n := s.runner.halt(); n > 0 {
		s.log.Info("stopping; running jobs may end", "runs", n, "grace", s.cfg.Grace)
	}
	grace := time.NewTimer(s.cfg.Grace / 5 * 4)
	defer grace.Stop()
	select {
	case <-over:
		return 0
	case <-grace.C:
	}
	s.world.WaitTurn()
	s.runner.stop(ErrStopping)
	grace.Reset(s.cfg.Grace - s.cfg.Grace/5*4)
	select {
	case <-over:
		return 0
	case <-grace.C:
	}
	s.world.WaitTurn()
	return s.runner.giveUp()
}

// leave ends the session of a replica that has nothing more to tell; where that fails, the session lapses.
func (s *Scheduler) leave(base context.Context) {
	id := s.elector.ID() // a follower has a session, too, that only the store knows of
	ctx, cancel := context.WithTimeout(base, leaveTime)
	defer cancel()
	if err := s.store.Leave(ctx, s.cfg.Group, id); err != nil {
		s.log.Warn("session could not be ended; it lapses", "replica", id, "error", err)
	}
}
