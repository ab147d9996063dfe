package election_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-singleton/singleton/store"
)

var (
	errReset = errors.New("connection reset")
	errWrong = store.Permanent("give the user the right password", errors.New("WRONGPASS"))
)

// fault is what happens to one call on its way to the store and back.
type fault struct {
	err     error         // answered instead of the store
	request time.Duration // how long the request is on its way; it arrives also when the caller has given up
	reply   time.Duration // how long the reply is
	lost    bool          // the request never arrives, and the caller waits
	mute    bool          // the reply never arrives, and the caller waits
	reset   bool          // the caller of a lost or mute call does not wait
}

// wire is one replica's way to the store: its script decides on the fault of each call.
type wire struct {
	store.Store

	hears func(taken func() bool) func() bool // what becomes of what a follower may hear; nil is nothing else

	mu     sync.Mutex
	script func(op string) fault
	counts map[string]int
	late   sync.WaitGroup // requests that may still arrive
}

func newWire(s store.Store) *wire { return &wire{Store: s, counts: map[string]int{}} }

// follow replaces the script; nil is a wire without faults.
func (w *wire) follow(script func(op string) fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.script = script
}

// cut loses every request from now on.
func (w *wire) cut() { w.follow(func(string) fault { return fault{lost: true} }) }

// moveTo leads to another store from now on.
func (w *wire) moveTo(s store.Store) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Store = s
}

// to returns the store it leads to.
func (w *wire) to() store.Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Store
}

// count returns how many calls of op were made.
func (w *wire) count(op string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.counts[op]
}

func (w *wire) enter(op string) fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts[op]++
	if w.script == nil {
		return fault{}
	}
	return w.script(op)
}

type reply[T any] struct {
	value T
	err   error
}

func send[T any](ctx context.Context, w *wire, op string, call func(context.Context) (T, error)) (T, error) {
	f := w.enter(op)
	var zero T
	switch {
	case f.err != nil:
		return zero, f.err
	case f.lost && f.reset:
		return zero, errReset
	case f.lost:
		<-ctx.Done()
		return zero, ctx.Err()
	case f == fault{}:
		return call(ctx)
	}
	replies := make(chan reply[T], 1)
	w.late.Go(func() {
		time.Sleep(f.request)
		value, err := call(context.WithoutCancel(ctx))
		time.Sleep(f.reply)
		replies <- reply[T]{value, err}
	})
	if f.mute && f.reset {
		<-replies
		return zero, errReset
	}
	if f.mute {
		<-ctx.Done()
		return zero, ctx.Err()
	}
	select {
	case r := <-replies:
		return r.value, r.err
	case <-ctx.Done():
		return zero, ctx.Err()
	}
}

func (w *wire) Acquire(ctx context.Context, group string, c store.Candidate) (store.Lease, error) {
	return send(ctx, w, "acquire", func(ctx context.Context) (store.Lease, error) {
		l, err := w.to().Acquire(ctx, group, c)
		if held, ok := errors.AsType[*store.HeldError](err); ok && w.hears != nil {
			held.Taken = w.hears(held.Taken)
		}
		return l, err
	})
}

func (w *wire) Renew(ctx context.Context, l store.Lease) (store.Grant, error) {
	return send(ctx, w, "renew", func(ctx context.Context) (store.Grant, error) { return w.to().Renew(ctx, l) })
}

func (w *wire) Release(ctx context.Context, l store.Lease) error {
	_, err := send(ctx, w, "release", func(ctx context.Context) (struct{}, error) { return struct{}{}, w.to().Release(ctx, l) })
	return err
}

func (w *wire) Leader(ctx context.Context, group string) (store.Leader, error) {
	return send(ctx, w, "leader", func(ctx context.Context) (store.Leader, error) { return w.to().Leader(ctx, group) })
}

func (w *wire) Join(ctx context.Context, group string, r store.Replica, ttl time.Duration, start bool) (time.Duration, error) {
	return send(ctx, w, "join", func(ctx context.Context) (time.Duration, error) { return w.to().Join(ctx, group, r, ttl, start) })
}

func (w *wire) Watch(ctx context.Context, group string, t store.Topic, hint func()) error {
	if f := w.enter("watch"); f.err != nil {
		return f.err
	}
	return w.to().Watch(ctx, group, t, hint)
}
