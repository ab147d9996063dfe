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

// start begins a term.
func (e *Elector) start(won *won) step {
	t := &Term{
		lease: won.lease, session: won.session, asked: won.sent.Mono, granted: won.lease.TTL, returned: make(chan struct{}),
	}
	t.life = lifetime.New(e.base, won.sent, won.lease.TTL, ErrExpired)
	t.ctx, t.cancel = context.WithCancelCause(e.watching)
	t.life.AlsoCancel(t.cancel)
	t.log = e.log() // names the session that it leads on, which may be over when the term is
	e.compareClocks(t, won.lease.Time, won.replied)
	e.elected(t)
	go e.work(t)
	return e.serving(t, interval(t.granted)-time.Since(t.asked))
}

// serving returns the next renewal of t, or its end where that comes first.
func (e *Elector) serving(t *Term, pause time.Duration) step {
	e.expect(max(pause, t.granted))
	return step{do: func() step { return e.serve(t) }, pause: pause, ctx: t.life.Context()}
}

// serve renews the lease, or ends the term when its work has returned, its lease is over or the store refuses.
func (e *Elector) serve(t *Term) step {
	ctx := t.life.Context()
	if ctx.Err() != nil {
		return e.finish(t)
	}
	granted, pause, refusal := e.pulse.extend(ctx, t.life, t.granted, func(ctx context.Context, sent world.Instant) (time.Duration, error) {
		return e.renew(ctx, t, sent)
	})
	if refusal != nil { // the lease is not ours, or the session has ended
		e.heard(t.lease.Replica, refusal)
		t.life.End(refusal)
		return e.finish(t)
	}
	t.granted = granted
	return e.serving(t, pause)
}

// finish ends a term: its work has returned, or its lease is over. It returns when both is so, and the lease has been
// released where it was still ours.
func (e *Elector) finish(t *Term) step {
	e.keepAgain()
	e.lost(t, t.life.Over()) // the work may go on, the term does not
	e.outlast(t)
	lasted := time.Since(t.asked)

	w := &t.work
	if !errors.Is(w.over, ErrLost) {
		e.release(t.lease, max(e.cfg.Lease/5, tidying))
	}
	e.report(t)
	e.tell(store.Leader{})
	e.mu.Lock()
	e.term = nil
	done := t.done
	e.mu.Unlock()
	if done != nil {
		close(done)
	}

	var pause time.Duration
	switch {
	case errors.Is(w.over, ErrExpired) && errors.Is(t.fault, store.ErrPermanent):
		return step{fault: e.permanent(t.fault)}
	case errors.Is(w.err, ErrStop):
		return step{}
	case w.early, w.panicked:
		pause = e.longerRest()
	case errors.Is(w.cause, ErrResigned):
		pause = e.rest(coolDown)
	}
	if lasted > longCoolDown {
		e.cool = nil
	}
	return e.again(pause, nil)
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

// lost notes the end of t and tells who wants to know.
func (e *Elector) lost(t *Term, cause error) {
	t.cause = cause
	if f := e.cfg.Callbacks.Lost; f != nil {
		e.queue.add(func() { f(t, cause) })
	}
}

// report logs how t has ended: when its lease has been given up, because a log that nobody reads may block for ever.
func (e *Elector) report(t *Term) {
	w := &t.work
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

// work calls lead, notes what has become of it, and ends the term.
func (e *Elector) work(t *Term) {
	w := &t.work
	w.err, w.panicked = errors.New("election: lead called runtime.Goexit"), true
	defer close(t.returned)
	defer func() {
		if r := recover(); r != nil {
			w.err, w.stack = fmt.Errorf("election: lead panicked: %v", r), string(debug.Stack())
		}
		w.early = t.ctx.Err() == nil
		w.failed = !errors.Is(w.err, ErrStop) && w.err != nil &&
			(w.early || !errors.Is(w.err, context.Cause(t.ctx)) && !errors.Is(w.err, t.ctx.Err()))
		switch {
		case !w.early:
			w.cause = context.Cause(t.ctx)
		case w.err != nil:
			w.cause = w.err
		default:
			w.cause = errReturned
		}
		w.over = t.life.Over()
		t.life.End(w.cause) // not valid any more before anyone else can be
	}()
	w.err = e.lead(t.ctx, t)
	w.panicked = false
}

// renew extends lease and session.
func (e *Elector) renew(ctx context.Context, t *Term, sent world.Instant) (time.Duration, error) {
	e.expect(t.lease.TTL)
	g, err := e.leases.Renew(ctx, t.lease)
	if t.life.Context().Err() == nil {
		t.fault = err
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

// outlast waits for work whose term is over, and reports it when it goes on past the deadline. Where this process was
// frozen past that, the work has only been told now, and gets a moment to return.
func (e *Elector) outlast(t *Term) {
	timer := time.NewTimer(max(t.life.UntilDeadline(), lifetime.Guard(t.lease.TTL)/2))
	defer timer.Stop()
	e.expect(unlimited)
	select {
	case <-t.returned:
		return
	case <-timer.C:
	}
	select {
	case <-t.returned:
		return
	default:
	}
	e.late(t)
	e.log().Error("work goes on after its lease has ended", "token", t.Token(), "error", t.life.Over())
	<-t.returned
	e.late(nil)
}

// late notes the term whose work goes on past its lease; nil is none. That ends when the work returns and not when the
// lease is released, which may get no answer.
func (e *Elector) late(t *Term) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.overdue = t
}
