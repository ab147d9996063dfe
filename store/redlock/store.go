package redlock

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/spell"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

const (
	nodeLimit = 3 * time.Second // for one request to one node, waiting for its turn included
	callLimit = 9 * time.Second // for a whole call, whatever its context allows
	copyLimit = 5 * time.Minute // for a copy of all records of a group, which ends with the lease anyway
)

// Store implements store.Store on a majority of independent servers. Its methods are safe for concurrent use.
type Store struct {
	links  []*link
	quorum int
	log    *slog.Logger
	spells spell.Spells
	hub    hints

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	calls  sync.WaitGroup // calls, and what they have left to finish in the background

	entering sync.Mutex // held while places in lines are taken: no I/O

	mu       sync.Mutex
	closed   bool
	terms    map[string]*term                // by group: the last that was granted to this store
	longest  map[string]lasting              // by group: what was asked for
	promised map[string]map[string]time.Time // by group and replica: until when its session was granted
	twins    error                           // two addresses lead to one server; nil as far as is known
	tried    int64                           // what the last attempt's name begins with
}

var _ store.Store = (*Store)(nil)

// fromNodes returns a store on nodes, which it closes.
func fromNodes(nodes []node, cfg Config) *Store {
	s := &Store{
		quorum: len(nodes)/2 + 1, log: cfg.Logger,
		terms: map[string]*term{}, longest: map[string]lasting{}, promised: map[string]map[string]time.Time{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	for i, n := range nodes {
		s.links = append(s.links, &link{node: n, index: i, tails: map[string]chan struct{}{}})
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.hub.init(s)
	return s
}

// Close ends the connections that the store itself has made and waits for its goroutines; calls under way fail, and later
// ones fail with a permanent error. Leases that are held lapse. The clients that New was given stay open.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.hub.close()
	s.cancel()
	var errs []error
	for _, l := range s.links {
		errs = append(errs, l.node.close())
	}
	s.calls.Wait()
	return errors.Join(errs...)
}

// begin enters a call, which ends with s.calls.Done after cancel.
func (s *Store) begin(ctx context.Context) (limited context.Context, end func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s.mu.Lock()
	closed, twins := s.closed, s.twins
	if !closed && twins == nil {
		s.calls.Add(1)
	}
	s.mu.Unlock()
	if twins != nil {
		return nil, nil, twins
	}
	if closed {
		return nil, nil, store.Permanent("redlock: the store has been closed: close it after everything that uses it", nil)
	}
	limited, cancel := context.WithTimeout(ctx, callLimit)
	ending := context.AfterFunc(s.ctx, cancel)
	return limited, func() { ending(); cancel(); s.calls.Done() }, nil
}

// background goes on with something after its call has returned, for so long at most; only who is in a call may ask for it. It
// ends with the store.
func (s *Store) background(ctx context.Context, limit time.Duration, do func(context.Context)) {
	going := world.Fork(context.WithoutCancel(ctx))
	s.calls.Go(func() {
		detached, cancel := context.WithTimeout(going, limit)
		defer cancel()
		defer context.AfterFunc(s.ctx, cancel)()
		world.From(going).WaitTurn()
		do(detached)
	})
}

// lasting is how long the longest lease and the longest session of a group last, as far as this store was asked for any.
type lasting struct{ lease, session time.Duration }

// remember notes how long leases and sessions of a group may last, and returns the longest so far: a node that has restarted
// may have forgotten one of these.
func (s *Store) remember(group string, lease, session time.Duration) lasting {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.longest[group]
	l = lasting{max(l.lease, lease), max(l.session, lease, session)}
	s.longest[group] = l
	return l
}
