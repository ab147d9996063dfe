// Package line is the way of one replica to its store in a test: whoever carries its calls decides what becomes of each
// on the way there and back.
package line

import (
	"context"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Line is a store whose calls are carried. Close and what else it has are the store's own.
type Line struct {
	store.Store
	Replica string // whose line it is
	Carrier Carrier
}

// Carrier carries calls and hints. Its methods are called from any goroutine of the replica.
type Carrier interface {
	// Carry has deliver make the call, or not, or twice, or late, and returns what the replica gets to know.
	Carry(ctx context.Context, c Call, deliver func(context.Context) (any, error)) (any, error)
	// Hint brings a hint of the store to the replica, or does not.
	Hint(c Call, hint func())
}

// Call says what a replica asks of the store; what it has no use for is zero.
type Call struct {
	Replica string
	Op      string // "acquire", "commit", ...: the name of the method
	About   string // what tells calls of one kind apart

	Candidate store.Candidate
	Lease     store.Lease
	Number    uint64
	Changes   []store.Change
	Session   time.Duration // that Join asks for
	Message   []byte        // that Post brings
	Topic     store.Topic
}

// Position is what Position answers.
type Position struct{ Token, Number uint64 }

func through[T any](ctx context.Context, l *Line, c Call, deliver func(context.Context) (T, error)) (T, error) {
	c.Replica = l.Replica
	v, err := l.Carrier.Carry(ctx, c, func(ctx context.Context) (any, error) { return deliver(ctx) })
	got, _ := v.(T)
	return got, err
}

type none = struct{}

// Acquire implements store.Leases.
func (l *Line) Acquire(ctx context.Context, group string, c store.Candidate) (store.Lease, error) {
	call := Call{Op: "acquire", About: c.ID + " " + c.Nonce, Candidate: c}
	return through(ctx, l, call, func(ctx context.Context) (store.Lease, error) { return l.Store.Acquire(ctx, group, c) })
}

// Renew implements store.Leases.
func (l *Line) Renew(ctx context.Context, lease store.Lease) (store.Grant, error) {
	c := Call{Op: "renew", About: lease.Nonce, Lease: lease}
	return through(ctx, l, c, func(ctx context.Context) (store.Grant, error) { return l.Store.Renew(ctx, lease) })
}

// Release implements store.Leases.
func (l *Line) Release(ctx context.Context, lease store.Lease) error {
	c := Call{Op: "release", About: lease.Nonce, Lease: lease}
	_, err := through(ctx, l, c, func(ctx context.Context) (none, error) { return none{}, l.Store.Release(ctx, lease) })
	return err
}

// Leader implements store.Leases.
func (l *Line) Leader(ctx context.Context, group string) (store.Leader, error) {
	return through(ctx, l, Call{Op: "leader"}, func(ctx context.Context) (store.Leader, error) { return l.Store.Leader(ctx, group) })
}

// Watch implements store.Leases.
func (l *Line) Watch(ctx context.Context, group string, t store.Topic, hint func()) error {
	_, err := through(ctx, l, Call{Op: "watch", About: strconv.Itoa(int(t)), Topic: t}, func(context.Context) (none, error) {
		news := Call{Replica: l.Replica, Op: "hint", About: strconv.Itoa(int(t)), Topic: t}
		return none{}, l.Store.Watch(ctx, group, t, func() { l.Carrier.Hint(news, hint) })
	})
	return err
}

// Join implements store.Ledger.
func (l *Line) Join(ctx context.Context, group string, r store.Replica, ttl time.Duration, start bool) (time.Duration, error) {
	c := Call{Op: "join", About: r.ID, Session: ttl}
	return through(ctx, l, c, func(ctx context.Context) (time.Duration, error) { return l.Store.Join(ctx, group, r, ttl, start) })
}

// Leave implements store.Ledger.
func (l *Line) Leave(ctx context.Context, group, replicaID string) error {
	c := Call{Op: "leave", About: replicaID}
	_, err := through(ctx, l, c, func(ctx context.Context) (none, error) { return none{}, l.Store.Leave(ctx, group, replicaID) })
	return err
}

// Replicas implements store.Ledger.
func (l *Line) Replicas(ctx context.Context, group string) ([]store.Replica, error) {
	return through(ctx, l, Call{Op: "replicas"}, func(ctx context.Context) ([]store.Replica, error) { return l.Store.Replicas(ctx, group) })
}

// Commit implements store.Ledger.
func (l *Line) Commit(ctx context.Context, lease store.Lease, number uint64, changes []store.Change) error {
	c := Call{Op: "commit", About: fmt.Sprint(lease.Token, " ", number), Lease: lease, Number: number, Changes: changes}
	_, err := through(ctx, l, c, func(ctx context.Context) (none, error) {
		return none{}, l.Store.Commit(ctx, lease, number, changes)
	})
	return err
}

// Read implements store.Ledger: it reads everything in one call.
func (l *Line) Read(ctx context.Context, group string, lease *store.Lease, bucket string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		all, err := through(ctx, l, Call{Op: "read", About: bucket}, func(ctx context.Context) ([]store.Record, error) {
			var all []store.Record
			for r, err := range l.Store.Read(ctx, group, lease, bucket) {
				if err != nil {
					return all, err
				}
				all = append(all, r)
			}
			return all, nil
		})
		for _, r := range all {
			if !yield(r, nil) {
				return
			}
		}
		if err != nil {
			yield(store.Record{}, err)
		}
	}
}

// Position implements store.Ledger.
func (l *Line) Position(ctx context.Context, group string) (token, number uint64, err error) {
	at, err := through(ctx, l, Call{Op: "position"}, func(ctx context.Context) (Position, error) {
		token, number, err := l.Store.Position(ctx, group)
		return Position{token, number}, err
	})
	return at.Token, at.Number, err
}

// Post implements store.Ledger.
func (l *Line) Post(ctx context.Context, group, id string, message []byte) error {
	_, err := through(ctx, l, Call{Op: "post", About: id, Message: message}, func(ctx context.Context) (none, error) {
		return none{}, l.Store.Post(ctx, group, id, message)
	})
	return err
}
