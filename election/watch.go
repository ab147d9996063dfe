package election

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// How an observer asks.
const (
	watchAttempt = 2 * time.Second
	watchPause   = 50 * time.Millisecond // after a fault, and while nobody leads; doubled up to the next
	watchLong    = 5 * time.Second
)

// Watch yields the leader of a group now and at each change of its replica or token, without campaigning; the zero
// Leader means nobody. It ends with ctx. Transient faults are retried; a permanent one is yielded and is the last. It
// asks when the store says that the lease is free, when the lease ends if it is not renewed, and while nobody leads
// after pauses of 50 ms, doubled up to 5 s.
func Watch(ctx context.Context, leases store.Leases, group string) iter.Seq2[store.Leader, error] {
	return func(yield func(store.Leader, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		o := observer{leases: leases, group: group, wake: make(chan struct{}, 1), pulse: pulse{world: world.From(ctx)}}
		var last store.Leader
		for first := true; ctx.Err() == nil; {
			now, pause, err := o.look(ctx)
			switch {
			case errors.Is(err, store.ErrPermanent):
				yield(store.Leader{}, err)
				return
			case err == nil && (first || now.Replica != last.Replica || now.Token != last.Token):
				first, last = false, now
				if !yield(now, nil) {
					return
				}
			}
			world.Rest(ctx, pause, o.wake)
		}
	}
}

// observer asks who leads.
type observer struct {
	leases     store.Leases
	group      string
	subscribed bool
	wake       chan struct{}
	pulse      pulse
	vacant     time.Duration // the last pause while nobody leads
}

// look asks once, and returns the pause until the next time.
func (o *observer) look(ctx context.Context) (l store.Leader, pause time.Duration, err error) {
	if !o.subscribed {
		hint := func() {
			select {
			case o.wake <- struct{}{}:
			default:
			}
		}
		err := o.leases.Watch(ctx, o.group, store.LeaseFree, hint)
		if errors.Is(err, store.ErrPermanent) {
			return l, 0, err
		}
		o.subscribed = err == nil
	}
	select {
	case <-o.wake: // this look is the answer to it
		o.vacant = 0 // a free lease is taken soon
	default:
	}
	err = o.pulse.ask(ctx, watchAttempt, func(ctx context.Context) (err error) {
		l, err = o.leases.Leader(ctx, o.group)
		return err
	})
	switch {
	case errors.Is(err, store.ErrNoLeader):
		o.vacant = min(max(2*o.vacant, watchPause), watchLong)
		return store.Leader{}, o.vacant, nil
	case err != nil:
		return l, o.pulse.retry(watchLong), err
	}
	o.vacant = 0
	return l, min(l.Remaining, longSleep) + wakeLate + o.pulse.world.Between(0, wakeSpread), nil
}
