package scheduler

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/go-singleton/singleton/store"
)

// line is one replica's way to the store; its carrier decides what becomes of each call on the way there and back.
type line struct {
	store.Store
	replica string
	carrier carrier
}

// call says what a replica asks of the store.
type call struct {
	replica string
	op      string
	about   string // what tells calls of one kind apart
	changes []store.Change
}

// claims reports whether it is a commit that claims a tick of the job.
func (c call) claims(job string) bool { return c.changesRun(job, false) }

// ends reports whether it is a commit that closes a run of the job.
func (c call) ends(job string) bool { return c.changesRun(job, true) }

func (c call) changesRun(job string, closed bool) bool {
	for _, change := range c.changes {
		if change.Bucket == bucketRun && strings.HasPrefix(change.Key, job+"@") && change.Delete == closed {
			return true
		}
	}
	return false
}

type carrier interface {
	carry(ctx context.Context, c call, deliver func(context.Context) (any, error)) (any, error)
	hint(replica string, hint func())
}

func through[T any](ctx context.Context, l *line, c call, deliver func(context.Context) (T, error)) (T, error) {
	c.replica = l.replica
	v, err := l.carrier.carry(ctx, c, func(ctx context.Context) (any, error) { return deliver(ctx) })
	got, _ := v.(T)
	return got, err
}

type none = struct{}

func (l *line) Acquire(ctx context.Context, group string, c store.Candidate) (store.Lease, error) {
	return through(ctx, l, call{op: "acquire", about: c.ID + " " + c.Nonce}, func(ctx context.Context) (store.Lease, error) {
		return l.Store.Acquire(ctx, group, c)
	})
}

func (l *line) Renew(ctx context.Context, lease store.Lease) (store.Grant, error) {
	return through(ctx, l, call{op: "renew", about: lease.Nonce}, func(ctx context.Context) (store.Grant, error) {
		return l.Store.Renew(ctx, lease)
	})
}

func (l *line) Release(ctx context.Context, lease store.Lease) error {
	_, err := through(ctx, l, call{op: "release", about: lease.Nonce}, func(ctx context.Context) (none, error) {
		return none{}, l.Store.Release(ctx, lease)
	})
	return err
}

func (l *line) Leader(ctx context.Context, group string) (store.Leader, error) {
	return through(ctx, l, call{op: "leader"}, func(ctx context.Context) (store.Leader, error) {
		return l.Store.Leader(ctx, group)
	})
}

func (l *line) Watch(ctx context.Context, group string, t store.Topic, hint func()) error {
	_, err := through(ctx, l, call{op: "watch", about: fmt.Sprint(t)}, func(context.Context) (none, error) {
		return none{}, l.Store.Watch(ctx, group, t, func() { l.carrier.hint(l.replica, hint) })
	})
	return err
}

func (l *line) Join(ctx context.Context, group string, r store.Replica, ttl time.Duration, start bool) (time.Duration, error) {
	return through(ctx, l, call{op: "join", about: r.ID}, func(ctx context.Context) (time.Duration, error) {
		return l.Store.Join(ctx, group, r, ttl, start)
	})
}

func (l *line) Leave(ctx context.Context, group, replicaID string) error {
	_, err := through(ctx, l, call{op: "leave", about: replicaID}, func(ctx context.Context) (none, error) {
		return none{}, l.Store.Leave(ctx, group, replicaID)
	})
	return err
}

func (l *line) Replicas(ctx context.Context, group string) ([]store.Replica, error) {
	return through(ctx, l, call{op: "replicas"}, func(ctx context.Context) ([]store.Replica, error) {
		return l.Store.Replicas(ctx, group)
	})
}

func (l *line) Commit(ctx context.Context, lease store.Lease, number uint64, changes []store.Change) error {
	c := call{op: "commit", about: fmt.Sprint(lease.Token, " ", number), changes: changes}
	_, err := through(ctx, l, c, func(ctx context.Context) (none, error) {
		return none{}, l.Store.Commit(ctx, lease, number, changes)
	})
	return err
}

func (l *line) Read(ctx context.Context, group string, lease *store.Lease, bucket string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		all, err := through(ctx, l, call{op: "read", about: bucket}, func(ctx context.Context) ([]store.Record, error) {
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

func (l *line) Position(ctx context.Context, group string) (token, number uint64, err error) {
	at, err := through(ctx, l, call{op: "position"}, func(ctx context.Context) (position, error) {
		token, number, err := l.Store.Position(ctx, group)
		return position{token, number}, err
	})
	return at.token, at.number, err
}

func (l *line) Post(ctx context.Context, group, id string, message []byte) error {
	_, err := through(ctx, l, call{op: "post", about: id}, func(ctx context.Context) (none, error) {
		return none{}, l.Store.Post(ctx, group, id, message)
	})
	return err
}

var errReset = errors.New("connection reset")

// fate is what becomes of one call.
type fate struct {
	err     error         // answered at once instead of the store
	request time.Duration // how long the request is on its way; it arrives also when the caller has given up
	reply   time.Duration // how long the reply is
	lost    bool          // the request never arrives, and the caller waits
	mute    bool          // the reply never arrives, and the caller waits
	swallow bool          // the store says yes, and has forgotten it
	again   time.Duration // the request arrives a second time, so much later
}

// script is a carrier that asks a function for the fate of each call.
type script struct {
	asking sync.Mutex // held while decide is called

	mu     sync.Mutex
	decide func(c call) fate
	calls  map[string]int // by replica and op
	late   sync.WaitGroup // requests and replies that are on their way
}

func newScript() *script { return &script{calls: make(map[string]int)} }

// follow replaces the function, once nobody asks the old one any more; nil is a script without faults.
func (s *script) follow(decide func(c call) fate) {
	s.asking.Lock()
	defer s.asking.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decide = decide
}

// count returns how many calls of op, or with an empty op of any kind, a replica has made.
func (s *script) count(replica, op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[replica+" "+op]
}

func (s *script) enter(c call) fate {
	s.mu.Lock()
	s.calls[c.replica+" "+c.op]++
	s.calls[c.replica+" "]++
	decide := s.decide
	s.mu.Unlock()
	if decide == nil {
		return fate{}
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	return decide(c)
}

func (s *script) hint(_ string, hint func()) { hint() }

type answer struct {
	value any
	err   error
}

func (s *script) carry(ctx context.Context, c call, deliver func(context.Context) (any, error)) (any, error) {
	f := s.enter(c)
	switch {
	case f.err != nil:
		return nil, f.err
	case f.lost:
		<-ctx.Done()
		return nil, ctx.Err()
	case f.swallow:
		return nil, nil
	case f == fate{}:
		return deliver(ctx)
	}
	answers := make(chan answer, 1)
	s.late.Go(func() {
		time.Sleep(f.request)
		v, err := deliver(context.WithoutCancel(ctx))
		if f.again > 0 {
			s.late.Go(func() {
				time.Sleep(f.again)
				_, _ = deliver(context.WithoutCancel(ctx))
			})
		}
		time.Sleep(f.reply)
		if !f.mute {
			answers <- answer{v, err}
		}
	})
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
