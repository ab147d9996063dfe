package etcdstore

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"go.etcd.io/etcd/client/v3"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/internal/spell"
	"github.com/go-singleton/singleton/store"
)

var errClosed = store.Permanent("etcdstore: the store has been closed: close it after everything that uses it", nil)

// errAgain means that the group has changed while a call looked at it.
var errAgain = errors.New("etcdstore: the group has changed meanwhile")

// How a call asks again.
const (
	againPause = 10 * time.Millisecond  // between two looks at a group that goes on changing
	rounds     = 4                      // over all endpoints: the servers may be electing their leader
	roundPause = 200 * time.Millisecond // between two of them
)

// Store implements store.Store on an etcd cluster. Its methods are safe for concurrent use.
type Store struct {
	cfg     Config
	log     *slog.Logger
	problem error // of New's argument; nil when there is none
	hub     *hub.Hub
	spells  spell.Spells

	listening int // the endpoint of the next stream of watches; the hub's

	ctx        context.Context // ends with the store
	cancel     context.CancelFunc
	background sync.WaitGroup

	mu     sync.Mutex
	link   *link // nil before the first call, and after one that got no answer
	next   int   // the endpoint of the next link
	closed bool
}

var _ store.Store = (*Store)(nil)

// New returns a store. It does no I/O; a problem of c is the permanent error of each call. The connections are the
// store's own: one from the first call on, one more while something is watched. Close ends them.
func New(c Config) *Store {
	c, problem := c.complete()
	s := &Store{cfg: c, log: c.Logger, problem: problem}
	if len(c.Endpoints) > 0 {
		s.next = rand.IntN(len(c.Endpoints))
		s.listening = rand.IntN(len(c.Endpoints))
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.hub = hub.New(s.hear)
	return s
}

// Close ends the store's connections and goroutines; calls under way fail, and later ones fail with a permanent error.
// Leases and sessions that have not been given up lapse.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	l := s.link
	s.link = nil
	s.mu.Unlock()
	s.cancel()
	s.hub.Close()
	if l != nil {
		l.retire()
	}
	s.background.Wait()
	return nil
}

// call makes the requests of one method over one connection, and makes them again while others change the group, and over
// a connection to another endpoint where one does not serve. Each method can be begun anew: it looks before it asks for a
// change, and a change is guarded by what it has seen.
func (s *Store) call(ctx context.Context, method string, do func(ctx context.Context, l *link) error) error {
	for tried, again := 0, 0; ; {
		l, err := s.begin(ctx)
		if err != nil {
			return s.judge(ctx, method, err)
		}
		if err = l.opened(ctx); err == nil {
			err = do(clientv3.WithRequireLeader(ctx), l)
		}
		dead := lame(err)
		if dead || l.failed() { // one that could not be opened never is: the servers may come to know the user
			s.abandon(l, err)
		}
		l.release()
		switch {
		case err != nil && ctx.Err() == nil && errors.Is(err, errAgain):
			if again++; again > 3 {
				rest(ctx, againPause)
			}
			continue
		case dead && ctx.Err() == nil && s.ctx.Err() == nil && tried+1 < rounds*len(s.cfg.Endpoints):
			if tried++; tried%len(s.cfg.Endpoints) == 0 {
				rest(ctx, roundPause)
			}
			continue
		}
		return s.judge(ctx, method, err)
	}
}

// begin returns the connection for one call, which has to be released.
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
	if s.link == nil {
		s.link = newLink(s, s.cfg.Endpoints[s.next])
	}
	s.link.hold()
	return s.link, nil
}

// abandon has later calls use another endpoint than that of l, unless it only leaves one request unanswered.
func (s *Store) abandon(l *link, err error) {
	if u, ok := errors.AsType[*unanswered](err); ok && l.answers(u) {
		return
	}
	s.mu.Lock()
	current := s.link == l
	if current {
		s.link, s.next = nil, (s.next+1)%len(s.cfg.Endpoints)
	}
	s.mu.Unlock()
	if current {
		l.retire()
		s.log.Debug("an etcd endpoint does not serve; the next one is asked", slog.String("endpoint", l.endpoint), slog.Any("error", err))
	}
}

// rest waits, for d or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
