package zkstore

import (
	"context"
	"log/slog"
	"sync"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/internal/spell"
	"github.com/go-singleton/singleton/store"
)

var errClosed = store.Permanent("zkstore: the store has been closed: close it after everything that uses it", nil)

// Store implements store.Store on a ZooKeeper ensemble. Its methods are safe for concurrent use.
type Store struct {
	cfg     Config
	log     *slog.Logger
	problem error // of New's argument; nil when there is none
	hub     *hub.Hub
	spells  spell.Spells

	ctx        context.Context // ends with the store
	cancel     context.CancelFunc
	due        chan struct{} // an end has changed
	background sync.WaitGroup

	mu     sync.Mutex
	link   *link // nil until the first call
	closed bool
	groups map[string]*group
}

var _ store.Store = (*Store)(nil)

// New returns a store. It does no I/O; a problem of c is the permanent error of each call. The connections are the
// store's own: one from the first call on, one more while something is watched. Close ends them.
func New(c Config) *Store {
	c, problem := c.complete()
	s := &Store{
		cfg: c, log: c.Logger, problem: problem, due: make(chan struct{}, 1), groups: map[string]*group{},
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.hub = hub.New(s.hear)
	return s
}

// Close ends the store's connections and goroutines; calls under way fail, and later ones fail with a permanent error.
// Leases and sessions that have not been given up lapse: they outlive Close by the session timeout at most.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	l := s.link
	lapse := false
	for _, g := range s.groups {
		lapse = lapse || g.lease != nil || len(g.sessions) > 0
	}
	s.mu.Unlock()

	s.cancel()
	s.hub.Close()
	if l != nil {
		l.close(lapse)
	}
	s.background.Wait()
	return nil
}

// begin returns the connection for one call.
func (s *Store) begin(ctx context.Context) (*link, error) {
	if s.problem != nil {
		return nil, s.problem
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	old := s.link
	if old != nil && !old.stale() {
		return old, nil
	}
	l, err := newLink(s.cfg, false, nil)
	if err != nil {
		return nil, err
	}
	s.link = l
	if old == nil {
		s.background.Go(s.sweep)
	} else {
		s.background.Go(func() { old.close(true) })
	}
	return l, nil
}
