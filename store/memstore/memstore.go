// Package memstore keeps leases and records in this process: for examples, tests, simulations, and programs that want
// the scheduler in a single process. Nothing outlives the process.
//
// It starts no goroutine, and its mutex is held for memory work only, so that it is deterministic under testing/synctest.
// Wipe, Snapshot and SetClockOffset do to it what befalls real servers.
package memstore

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-singleton/singleton/store"
)

// released is how many nonces a group remembers as released.
const released = 16

// Store implements store.Store in memory. Its methods are safe for concurrent use.
type Store struct {
	mu       sync.Mutex
	groups   map[string]*group
	watchers []watcher // in the order of their Watch: a map would make the order of hints a matter of chance
	offset   time.Duration
	closed   bool
}

type group struct {
	lease    *lease
	token    uint64   // the last one given
	released []string // nonces, the last first
	sessions map[string]session
	position position
	buckets  map[string]map[string][]byte // the inbox is one
}

type lease struct {
	replica, nonce string
	token          uint64
	end            time.Time
}

type session struct {
	info []byte
	end  time.Time
}

type position struct{ token, number uint64 }

var _ store.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return &Store{groups: map[string]*group{}} }

// Wipe makes the store forget everything but its watchers, as a server does that restarts without its data; like one it
// then calls every hint, because all subscriptions stand anew.
func (s *Store) Wipe() {
	s.mu.Lock()
	s.groups = map[string]*group{}
	s.mu.Unlock()
	s.hintAll()
}

// Snapshot remembers the present state; the returned function puts it back, as a server does that restarts with the
// tail of its data lost, and calls every hint.
func (s *Store) Snapshot() (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := copyGroups(s.groups)
	return func() {
		s.mu.Lock()
		s.groups = copyGroups(kept)
		s.mu.Unlock()
		s.hintAll()
	}
}

// SetClockOffset moves the store's clock to d from the process's. Ends of leases and sessions are instants of that clock,
// as they are in Redis: a jump forward ends them early, a jump back keeps them alive for longer.
func (s *Store) SetClockOffset(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.offset = d
}

// Close makes every later call fail; what the store keeps is dropped.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed, s.groups, s.watchers = true, nil, nil
	return nil
}

// enter locks s for one call of the contract, in the group that it is about; the caller unlocks.
func (s *Store) enter(ctx context.Context, name string) (g *group, now time.Time, err error) {
	s.mu.Lock()
	if err := ctx.Err(); err != nil {
		return nil, now, err
	}
	if s.closed {
		return nil, now, store.Permanent("memstore: the store has been closed: close it after everything that uses it", nil)
	}
	now = time.Now().Add(s.offset)
	g = s.groups[name]
	if g == nil {
		g = &group{sessions: map[string]session{}, buckets: map[string]map[string][]byte{}}
		s.groups[name] = g
	}
	if g.lease != nil && !now.Before(g.lease.end) {
		g.lease = nil
	}
	maps.DeleteFunc(g.sessions, func(_ string, v session) bool { return !now.Before(v.end) })
	return g, now, nil
}

func copyGroups(from map[string]*group) map[string]*group {
	to := make(map[string]*group, len(from))
	for name, g := range from {
		c := *g
		if g.lease != nil {
			l := *g.lease
			c.lease = &l
		}
		c.released = slices.Clone(g.released)
		c.sessions = maps.Clone(g.sessions)
		c.buckets = make(map[string]map[string][]byte, len(g.buckets))
		for b, records := range g.buckets {
			c.buckets[b] = maps.Clone(records) // values are never changed in place
		}
		to[name] = &c
	}
	return to
}
