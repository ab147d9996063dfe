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

var (
	errReturned = errors.New("election: lead has returned")
	errExits    = errors.New("election: lead called runtime.Goexit")
)

// start begins a term.
func (e *Elector) start(won *won) step {
	t := &Term{lease: won.lease, session: won.session, asked: won.sent.Mono, granted: won.lease.TTL, atWork: true}
	t.life = lifetime.New(e.base, won.sent, won.lease.TTL, ErrExpired)
	t.ctx, t.cancel = context.WithCancelCause(e.watching)
	t.log = e.log() // names the session that it leads on, which may be over when the term is
	e.compareClocks(t, won.lease.Time, won.replied)
	e.elected(t)
	e.plan(t, interval(t.granted)-time.Since(t.asked))
	t.life.OnEnd(func(cause error) {
		t.cancel(cause)
		t.ended.Do(func() { t.steps.Go(func() { e.over(t) }) })
	})
	return step{term: t}
}

// plan has the lease of t renewed after pause, unless t is over. A timer does it, because Run's goroutine is at work.
func (e *Elector) plan(t *Term, pause time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if t.stopped {
		return
	}
	e.due = e.within(max(pause, t.granted))
	t.steps.Add(1)
	if t.renewal == nil {
		t.renewal = time.AfterFunc(pause, func() {
			defer t.steps.Done()
			e.world.WaitTurn()
			e.serve(t)
		})
		return
	}
	t.renewal.Reset(pause)
}

// serve renews the lease, or ends the term when the store refuses.
func (e *Elector) serve(t *Term) {
	ctx, cancel := context.WithCancel(e.base) // that of life would stay in memory until the term ends
	defer cancel()
	e.mu.Lock()
	stopped := t.stopped
	t.call = cancel
	e.mu.Unlock()
	if stopped || t.life.Over() != nil {
		return
	}
	granted, pause, refusal := e.pulse.extend(ctx, t.life, t.granted, func(ctx context.Context, sent world.Instant) (time.Duration, error) {
		return e.renew(ctx, t, sent)
	})
	if refusal != nil { // the lease is not ours, or the session has ended
		e.heard(t.lease.Replica, refusal)
		t.life.End(refusal)
		return
	}
	t.granted = granted
	e.plan(t, pause)
}

// over is what becomes of a term at its end: its work has returned, or its lease is over, and the work may go on.
func (e *Elector) over(t *Term) {
	e.world.WaitTurn()
	e.mu.Lock()
	t.stopped = true
	if t.renewal.Stop() {
		t.steps.Done()
	}
	if t.call != nil {
		t.call()
	}
	atWork := t.atWork
	if atWork {
		t.returned = make(chan struct{})
	}
	e.mu.Unlock()
	e.keepAgain()
	e.lost(t, t.life.Over())
	if atWork {
		e.outlast(t)
	}
}

// finish ends a term whose work has returned. It gives the lease up where it was still ours, and returns what comes next.
func (e *Elector) finish(t *Term, w work) step {
	w.judge(t)
	t.life.End(w.cause) // not valid any more before anyone else can be
	e.expect(0)
	e.mu.Lock()
	t.atWork = false
	if t.returned != nil {
		close(t.returned)
	}
	e.mu.Unlock()
	t.steps.Wait()
	e.world.WaitTurn()
	lasted := time.Since(t.asked)

	if !errors.Is(w.over, ErrLost) {
		e.release(t.lease, max(e.cfg.Lease/5, tidying))
	}
	e.report(t, w)
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
		return e.permanent(t.fault)
	case errors.Is(w.err, ErrStop):
		return step{over: true}
	case w.early, w.panicked:
		pause = e.longerRest()
	case errors.Is(w.cause, ErrResigned):
		pause = e.rest(coolDown)
	}
	if lasted > longCoolDown {
		e.cool = nil
	}
	return e.again(pause)
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
func (e *Elector) report(t *Term, w work) {
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
	t.log.Log(e.base, level, "term has ended", "token", t.Token(), "cause", t.cause)
}

// work calls lead, and ends the term when it has returned.
func (e *Elector) work(t *Term) {
	err, panicked := errExits, true
	defer func() {
		w := work{err: err, panicked: panicked}
		if r := recover(); r != nil {
			w.err, w.stack = fmt.Errorf("election: lead panicked: %v", r), string(debug.Stack())
		}
		apart(func() { e.next = e.finish(t, w) })
	}()
	err = e.lead(t.ctx, t)
	panicked = false
}

// judge notes what the work's return means, and why t has ended or is to end.
func (w *work) judge(t *Term) {
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
}

// renew extends lease and session.
func (e *Elector) renew(ctx context.Context, t *Term, sent world.Instant) (time.Duration, error) {
	g, err := e.leases.Renew(ctx, t.lease)
	if t.life.Over() == nil {
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
