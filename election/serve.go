package election

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

var errReturned = errors.New("election: lead has returned")

// ending says how a term ended and what follows.
type ending struct {
	stop     bool  // Run ends
	fault    error // Run ends with it
	failed   bool  // the work ended the term: cool down, longer each time
	resigned bool
	lasted   time.Duration
}

// work is what became of a call of lead.
type work struct {
	over     chan struct{} // closed when lead has returned
	err      error
	panicked bool
	stack    string // of a panic
	early    bool   // its context was still alive
	failed   bool   // err is news, and not the reason for which it was told to end
}

// serve leads for one term. It returns when the work has returned and the lease has been released or is over.
func (e *Elector) serve(ctx context.Context, lead lead, won *won) ending {
	t := e.newTerm(won)
	stopping := make(chan struct{})
	stop := context.AfterFunc(ctx, func() { defer close(stopping); t.cancel(context.Cause(ctx)) })
	e.elected(t)

	renewals, endRenewals := context.WithCancel(t.life.Context())
	w := &work{over: make(chan struct{})}
	go func() {
		defer close(w.over)
		defer endRenewals()
		e.work(lead, t, w)
	}()
	last := e.renew(renewals, t)
	e.keepAgain()

	if cause := t.life.Over(); cause != nil { // the work may go on, the term does not
		e.lost(t, cause)
		e.outlast(t, w)
	}
	<-w.over
	e.mu.Lock()
	e.overdue = nil // not when the lease is released: that may get no answer
	e.mu.Unlock()
	if !stop() {
		<-stopping
	}
	return e.finish(t, w, last)
}

// finish ends a term whose work has returned.
func (e *Elector) finish(t *Term, w *work, last error) ending {
	end := ending{stop: errors.Is(w.err, ErrStop), lasted: time.Since(t.asked)}
	cause := context.Cause(t.ctx)
	if w.early {
		cause = w.err
		if cause == nil {
			cause = errReturned
		}
		end.failed = !end.stop
	}
	end.failed = end.failed || w.panicked
	end.resigned = errors.Is(cause, ErrResigned)

	over := t.life.Over()
	t.life.End(cause) // not valid any more before anyone else can be
	t.cancel(cause)
	e.lost(t, cause)
	if !errors.Is(over, ErrLost) {
		e.release(t.lease, max(e.cfg.Lease/5, tidying))
	}
	e.report(t, w)
	if errors.Is(over, ErrExpired) && errors.Is(last, store.ErrPermanent) {
		end.fault = e.permanent(last)
	}
	e.tell(store.Leader{})
	e.mu.Lock()
	e.term = nil
	e.mu.Unlock()
	close(t.done)
	return end
}

func (e *Elector) newTerm(won *won) *Term {
	t := &Term{lease: won.lease, session: won.session, asked: won.sent.Mono, done: make(chan struct{})}
	t.life = lifetime.New(e.base, won.sent, won.lease.TTL, ErrExpired)
	t.ctx, t.cancel = context.WithCancelCause(t.life.Context())
	t.log = e.log() // names the session that it leads on, which may be over when the term is
	e.compareClocks(t, won.lease.Time, won.replied)
	return t
}

// elected makes t the current term.
func (e *Elector) elected(t *Term) {
	e.mu.Lock()
	e.term = t
	e.mu.Unlock()
	e.log().Info("elected", "token", t.Token())
	if f := e.cfg.Callbacks.Elected; f != nil {
		e.queue.add(func() { f(t) })
	}
	e.tell(store.Leader{Replica: t.lease.Replica, Token: t.Token(), Remaining: t.lease.TTL})
}

// lost notes the end of t, once, and tells who wants to know.
func (e *Elector) lost(t *Term, cause error) {
	if t.cause != nil {
		return
	}
	t.cause = cause
	if f := e.cfg.Callbacks.Lost; f != nil {
		e.queue.add(func() { f(t, cause) })
	}
}

// report logs how t has ended: when its lease has been given up, because a log that nobody reads may block for ever.
func (e *Elector) report(t *Term, w *work) {
	level := slog.LevelInfo
	if errors.Is(t.cause, ErrExpired) || errors.Is(t.cause, ErrLost) || errors.Is(t.cause, store.ErrEnded) {
		level = slog.LevelWarn
	}
	switch {
	case w.panicked:
		t.log.Error("work panicked", "token", t.Token(), "error", w.err, "stack", w.stack)
	case w.failed:
		t.log.Error("work failed", "token", t.Token(), "error", w.err)
	}
	t.log.Log(t.life.Context(), level, "term has ended", "token", t.Token(), "cause", t.cause)
}

// work calls lead and notes what becomes of it.
func (e *Elector) work(lead lead, t *Term, w *work) {
	w.err, w.panicked = errors.New("election: lead called runtime.Goexit"), true
	defer func() {
		if r := recover(); r != nil {
			w.err, w.stack = fmt.Errorf("election: lead panicked: %v", r), string(debug.Stack())
		}
		w.early = t.ctx.Err() == nil
		w.failed = !errors.Is(w.err, ErrStop) && w.err != nil &&
			(w.early || !errors.Is(w.err, context.Cause(t.ctx)) && !errors.Is(w.err, t.ctx.Err()))
	}()
	w.err = lead(t.ctx, t)
	w.panicked = false
}

// renew extends lease and session until ctx ends, because the work has returned or the lease is over, or until the store
// says that the lease is not ours. It returns the fault of the last renewal, if it failed.
func (e *Elector) renew(ctx context.Context, t *Term) (last error) {
	e.expect(t.lease.TTL)
	ttl := t.lease.TTL
	answer := e.pulse.beat(ctx, t.life, ttl, interval(ttl)-time.Since(t.asked), func(attempt context.Context, sent world.Instant) (time.Duration, error) {
		e.expect(ttl)
		g, err := e.leases.Renew(attempt, t.lease)
		if ctx.Err() == nil {
			last = err
		}
		if err != nil {
			return 0, err
		}
		if !t.session.life.Extend(sent, g.TTL) || !t.life.Extend(sent, g.TTL) {
			t.life.End(ErrExpired) // an answer that comes too late is worth nothing
		}
		e.compareClocks(t, g.Time, e.world.Now())
		t.log.Debug("renewed", "token", t.Token(), "took", time.Since(sent.Mono))
		return g.TTL, nil
	})
	if answer != nil { // refused: the lease is not ours, or the session has ended
		e.heard(t.lease.Replica, answer)
		t.life.End(answer)
	}
	return last
}

// compareClocks notes the store's clock, as a reply of this moment has it, and warns when it has jumped since the last that
// this replica heard of it, in this term or an earlier one: by more than a lease's guard and 1 % of the time since. Where
// the two clocks here disagree about that time, because the machine was suspended or its clock set, the smaller jump counts.
func (e *Elector) compareClocks(t *Term, store time.Time, replied world.Instant) {
	t.clock.Store(&clock{store: store, local: replied.Mono})
	before, at := e.storeTime, e.storeHeard
	e.storeTime, e.storeHeard = store, replied
	if before.IsZero() {
		return
	}
	mono, wall := replied.Mono.Sub(at.Mono), replied.Wall.Sub(at.Wall)
	jump, other := store.Sub(before)-mono, store.Sub(before)-wall
	if other.Abs() < jump.Abs() {
		jump = other
	}
	if jump.Abs() > lifetime.Guard(t.lease.TTL)+mono/100 {
		e.log().Warn("the store's clock has jumped", "token", t.Token(), "jump", jump)
	}
}

// outlast waits for work whose lease is over, and reports it when it goes on past the deadline. Where this process was
// frozen past that, the work has only been told now, and gets a moment to return.
func (e *Elector) outlast(t *Term, w *work) {
	timer := time.NewTimer(max(t.life.UntilDeadline(), lifetime.Guard(t.lease.TTL)/2))
	defer timer.Stop()
	e.expect(unlimited)
	select {
	case <-w.over:
		return
	case <-timer.C:
	}
	select {
	case <-w.over:
		return
	default:
	}
	e.mu.Lock()
	e.overdue = t
	e.mu.Unlock()
	e.log().Error("work goes on after its lease has ended", "token", t.Token(), "error", t.life.Over())
}
