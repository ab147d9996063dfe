package election

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-singleton/singleton/internal/herd"
	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// How a follower sleeps.
const (
	wakeLate   = time.Millisecond      // after the lease's end, so as not to come before it
	wakeSpread = 10 * time.Millisecond // random, on top
	longSleep  = time.Minute           // or 4 leases: a lease that ends later is looked at in between
	farLease   = time.Minute           // or 10 leases: one that ends later is reported
)

// How long a campaign insists.
const (
	longRetry = time.Second            // the longest pause between attempts, at most a fifteenth of the lease
	mostOwed  = 16                     // leases given up without an answer that are remembered
	tidying   = 500 * time.Millisecond // for giving up what may not even have been granted: a stop waits for it
)

// won is a lease with the moment it was asked for and the session that goes with it.
type won struct {
	lease   store.Lease
	sent    world.Instant
	replied world.Instant
	session *Session
}

// campaign asks for the lease once, and begins a term when it is granted.
func (e *Elector) campaign() step {
	ctx := e.watching
	if ctx.Err() != nil {
		return step{over: true}
	}
	if err := e.subscribe(); err != nil {
		return e.permanent(err)
	}
	select {
	case <-e.wake: // this attempt is the answer to it
	default:
		if pause := e.pass(); pause > 0 {
			return e.sleep(pause)
		}
	}
	won, err := e.acquire(ctx)
	held, isHeld := errors.AsType[*store.HeldError](err)
	switch {
	case err == nil:
		return e.start(won)
	case errors.Is(err, store.ErrPermanent) && ctx.Err() == nil:
		return e.permanent(err)
	case !isHeld:
		return e.again(e.retry())
	case e.settle(held.Leader.Replica):
		return e.again(0)
	}
	return e.sleep(e.follow(held))
}

// subscribe makes sure that hints come, before the lease is asked for: a release between the two would not be heard. A
// transient fault is left to the next time, because hints only save time.
func (e *Elector) subscribe() error {
	if e.subscribed {
		return nil
	}
	err := e.leases.Watch(e.watching, e.cfg.Group, store.LeaseFree, e.hint)
	if errors.Is(err, store.ErrPermanent) {
		return err
	}
	if e.subscribed = err == nil; !e.subscribed {
		e.pulse.trouble.unanswered(err)
	}
	return nil
}

// hint is called by the store; one that comes while an attempt is under way is kept.
func (e *Elector) hint() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// follow returns how long to sleep where no hint comes: until the leader's lease ends if it is not renewed; of a herd only
// some do, and the others come after them. Only the store knows whether it has ended. It is 0 where a longer session must
// be asked for first.
func (e *Elector) follow(held *store.HeldError) time.Duration {
	leader := held.Leader
	e.floor = max(e.floor, leader.Token)
	if leader.Replica != e.ID() { // a lease that was granted to this replica and given up leads nobody
		e.tell(leader)
	}
	lease := e.cfg.Lease
	if leader.Remaining > max(farLease, 10*lease) && e.far != leader.Token {
		e.far = leader.Token
		e.log().Warn("the leader's lease ends far in the future: if the leader is gone, delete the lease in the store, which followers look at once a minute",
			"leader", leader.Replica, "token", leader.Token, "remaining", leader.Remaining)
	}
	turn := min(herd.Delay(held.Replicas, e.world.Random), lease)
	sleep := min(leader.Remaining, max(longSleep, 4*lease)) + turn
	if need := min(sleep+lease, store.MaxDuration); need > e.idle {
		e.idle = need // the session would end while this replica sleeps
		return 0
	}
	e.taken, e.spare = nil, e.idle-sleep-lease
	if turn > 0 { // those who come first ask in any case: what is only heard may be wrong
		e.taken = held.Taken
	}
	return sleep + wakeLate + e.world.Between(0, wakeSpread)
}

// pass returns how long to sleep on where the turn of this replica of a herd has come and somebody else is known to have got
// the lease, and 0 where it is to ask. It passes once and then asks again, before its session could end.
func (e *Elector) pass() time.Duration {
	taken := e.taken
	e.taken = nil
	if taken == nil || e.spare < e.cfg.Lease/3 || !taken() {
		return 0
	}
	return e.world.Between(e.spare/2, e.spare)
}

// acquire campaigns once: it repeats its attempts, under one nonce, until one is answered. The error is the store's
// refusal, or that of an attempt without an answer when the campaign has been given up.
func (e *Elector) acquire(ctx context.Context) (*won, error) {
	id, start, held := e.candidacy()
	c := store.Candidate{
		Replica: store.Replica{ID: id, Info: e.cfg.Info}, Nonce: e.world.Secret(), TTL: e.cfg.Lease, Floor: e.floor,
	}
	first := e.world.Now()
	open := false // an attempt without an answer may have been granted, or may still be
	for {
		c.Start, c.Session = start, e.idle
		if held {
			c.Session = c.TTL
		}
		var lease store.Lease
		limit := e.pulse.timeout(c.TTL, c.TTL)
		e.expect(limit)
		sent := e.world.Now()
		err := e.pulse.ask(ctx, limit, func(ctx context.Context) (err error) {
			lease, err = e.leases.Acquire(ctx, e.cfg.Group, c)
			return err
		})
		replied := e.world.Now()
		e.heard(c.ID, err)
		switch {
		case err == nil:
			e.floor = max(e.floor, lease.Token)
			if s := e.adopt(c.ID, sent, lease.TTL); s != nil && ctx.Err() == nil {
				return &won{lease: lease, sent: sent, replied: replied, session: s}, nil
			}
			e.keepAgain()
			e.release(lease, tidying)
			return nil, fmt.Errorf("%w: the grant came too late", ErrExpired)
		case store.Definite(err):
			if open {
				e.abandon(c)
			}
			return nil, err
		}
		open = true
		elapsed, _ := e.world.Since(first)
		if elapsed >= lifetime.Span(c.TTL) || !e.wait(ctx, e.retry(), nil) {
			e.abandon(c)
			return nil, err
		}
		if id, start, held = e.candidacy(); id != c.ID {
			e.abandon(c)
			return nil, store.ErrEnded
		}
	}
}

// abandon gives up what an attempt without an answer may have been granted, or may still be.
func (e *Elector) abandon(c store.Candidate) {
	e.release(store.Lease{Group: e.cfg.Group, Replica: c.ID, Nonce: c.Nonce}, tidying)
}

// release gives a lease up, also when Run's context has ended, and insists for no longer than bound: it lapses, or is given
// up when the store says that this replica holds it.
func (e *Elector) release(l store.Lease, bound time.Duration) {
	ctx, cancel := context.WithTimeout(e.base, bound)
	defer cancel()
	e.expect(bound)
	e.owed = slices.DeleteFunc(e.owed, func(o store.Lease) bool { return o.Nonce == l.Nonce })
	for {
		err := e.pulse.ask(ctx, e.pulse.timeout(e.cfg.Lease, bound), func(ctx context.Context) error {
			return e.leases.Release(ctx, l)
		})
		if err == nil || store.Definite(err) {
			return
		}
		if !world.Rest(ctx, e.retry(), nil) {
			e.owed = append(e.owed, l)
			e.owed = e.owed[max(0, len(e.owed)-mostOwed):]
			return
		}
	}
}

// settle gives up again what this replica owes and the store says it holds: an acquire can lie in the socket of a server
// that stands still, and be granted when it goes on, though the release never got there. Nobody would lead for a lease.
// It reports whether something was given up.
func (e *Elector) settle(holder string) bool {
	before := len(e.owed)
	for _, l := range slices.Clone(e.owed) {
		if l.Replica == holder {
			e.release(l, tidying)
		}
	}
	return len(e.owed) < before
}

// retry returns how long to wait before the next attempt of a campaign: nothing ends meanwhile, so that the pauses may
// grow longer than those of a leader.
func (e *Elector) retry() time.Duration {
	return e.pulse.retry(max(longPause, min(longRetry, e.cfg.Lease/15)))
}

// wait sleeps, and says until when the loop is expected to.
func (e *Elector) wait(ctx context.Context, d time.Duration, signal <-chan struct{}) bool {
	e.expect(d)
	return world.Rest(ctx, d, signal)
}

// permanent returns the end of Run by a fault.
func (e *Elector) permanent(err error) step {
	return step{over: true, fault: fmt.Errorf("election: group %s: %w", e.cfg.Group, err)}
}

// tell reports another leader to whoever wants to know.
func (e *Elector) tell(l store.Leader) {
	if l.Replica == e.told.Replica && l.Token == e.told.Token {
		return
	}
	e.told = l
	if l.Replica != "" && l.Replica != e.ID() {
		e.log().Info("following", "leader", l.Replica, "token", l.Token)
	}
	if f := e.cfg.Callbacks.LeaderChanged; f != nil {
		e.queue.add(func() { f(l) })
	}
}
