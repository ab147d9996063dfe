package storetest

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Acquire implements store.Leases.
func (f *Faulty) Acquire(ctx context.Context, group string, c store.Candidate) (store.Lease, error) {
	return invoke(f, ctx, Acquire, func(ctx context.Context) (store.Lease, error) { return f.inner.Acquire(ctx, group, c) })
}

// Renew implements store.Leases.
func (f *Faulty) Renew(ctx context.Context, l store.Lease) (store.Grant, error) {
	return invoke(f, ctx, Renew, func(ctx context.Context) (store.Grant, error) { return f.inner.Renew(ctx, l) })
}

// Release implements store.Leases.
func (f *Faulty) Release(ctx context.Context, l store.Lease) error {
	return f.simple(ctx, Release, func(ctx context.Context) error { return f.inner.Release(ctx, l) })
}

// Leader implements store.Leases.
func (f *Faulty) Leader(ctx context.Context, group string) (store.Leader, error) {
	return invoke(f, ctx, Leader, func(ctx context.Context) (store.Leader, error) { return f.inner.Leader(ctx, group) })
}

// Watch implements store.Leases.
func (f *Faulty) Watch(ctx context.Context, group string, t store.Topic, hint func()) error {
	fault, _, _, _ := f.plan(Watch)
	faulty := func() {
		f.mu.Lock()
		cut := f.cut
		f.mu.Unlock()
		switch {
		case cut || fault == RequestLost || fault == ReplyLost:
		case fault == Delayed:
			f.keep(hint)
		case fault == Duplicated:
			hint()
			hint()
		default:
			hint()
		}
	}
	f.mu.Lock()
	f.watches = append(slices.DeleteFunc(f.watches, func(w watch) bool { return w.ctx.Err() != nil }), watch{ctx: ctx, hint: faulty})
	f.mu.Unlock()
	return f.inner.Watch(ctx, group, t, faulty)
}

// Close closes the inner store.
func (f *Faulty) Close() error { return f.inner.Close() }

// Join implements store.Ledger.
func (f *Faulty) Join(ctx context.Context, group string, r store.Replica, ttl time.Duration, start bool) (time.Duration, error) {
	return invoke(f, ctx, Join, func(ctx context.Context) (time.Duration, error) { return f.inner.Join(ctx, group, r, ttl, start) })
}

// Leave implements store.Ledger.
func (f *Faulty) Leave(ctx context.Context, group, replicaID string) error {
	return f.simple(ctx, Leave, func(ctx context.Context) error { return f.inner.Leave(ctx, group, replicaID) })
}

// Replicas implements store.Ledger.
func (f *Faulty) Replicas(ctx context.Context, group string) ([]store.Replica, error) {
	return invoke(f, ctx, Replicas, func(ctx context.Context) ([]store.Replica, error) { return f.inner.Replicas(ctx, group) })
}

// Commit implements store.Ledger.
func (f *Faulty) Commit(ctx context.Context, l store.Lease, number uint64, changes []store.Change) error {
	sent := slices.Clone(changes) // what arrives late is what was sent
	for i := range sent {
		sent[i].Value = bytes.Clone(sent[i].Value)
	}
	return f.simple(ctx, Commit, func(ctx context.Context) error { return f.inner.Commit(ctx, l, number, sent) })
}

// Read implements store.Ledger.
func (f *Faulty) Read(ctx context.Context, group string, l *store.Lease, bucket string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		fault, p, silent, arriving := f.plan(Read)
		if arriving != nil {
			arriving()
		}
		if p != nil && !p.hold(ctx) {
			yield(store.Record{}, ctx.Err())
			return
		}
		if fault != RequestLost && fault != Delayed {
			for r, err := range f.inner.Read(ctx, group, l, bucket) {
				if !yield(r, err) || err != nil {
					return
				}
				if fault == ReplyLost {
					break
				}
			}
		}
		if fault != None && fault != Duplicated {
			yield(store.Record{}, unanswered(ctx, silent))
		}
	}
}

// Position implements store.Ledger.
func (f *Faulty) Position(ctx context.Context, group string) (token, number uint64, err error) {
	type position struct{ token, number uint64 }
	p, err := invoke(f, ctx, Position, func(ctx context.Context) (p position, err error) {
		p.token, p.number, err = f.inner.Position(ctx, group)
		return p, err
	})
	return p.token, p.number, err
}

// Post implements store.Ledger.
func (f *Faulty) Post(ctx context.Context, group, id string, message []byte) error {
	sent := bytes.Clone(message)
	return f.simple(ctx, Post, func(ctx context.Context) error { return f.inner.Post(ctx, group, id, sent) })
}

func (f *Faulty) simple(ctx context.Context, m Method, do func(context.Context) error) error {
	_, err := invoke(f, ctx, m, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}
