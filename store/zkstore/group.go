package zkstore

import (
	"context"
	"errors"
	"time"

	"github.com/go-singleton/singleton/store"
)

// group is what this store has going in one group. A znode that lives on our ZooKeeper session lives as long as this
// process: that a lease or a session of the contract ends before is the work of sweep, which deletes it at its end.
type group struct {
	name string
	turn chan struct{}   // one call at a time that changes leases or sessions
	last <-chan struct{} // closed when a call that was given up has ended; guarded by turn

	// Guarded by Store.mu.
	known    bool // its znodes have been created
	lease    *hold
	sessions map[string]*hold // by replica
}

// hold is a lease or session that this store has taken, or may have taken: it is noted before the request is sent. It is
// not changed once it is there, but replaced.
type hold struct {
	owner int64     // the ZooKeeper session that it lives on
	end   time.Time // when it is over if it is not refreshed

	info  []byte // of a session
	grant grant  // of a lease
	fence int32  // the version of the fence while the lease stands
}

func (h *hold) over() bool { return !time.Now().Before(h.end) }

// group returns that of name.
func (s *Store) group(name string) *group {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[name]
	if g == nil {
		g = &group{name: name, turn: make(chan struct{}, 1), sessions: map[string]*hold{}}
		s.groups[name] = g
	}
	return g
}

// enter waits for the turn, and until an earlier call that was given up can do nothing any more.
func (g *group) enter(ctx context.Context) error {
	select {
	case g.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if g.last == nil {
		return nil
	}
	select {
	case <-g.last:
		g.last = nil
		return nil
	case <-ctx.Done():
		<-g.turn
		return ctx.Err()
	}
}

// leave ends a turn; err is how it went.
func (g *group) leave(err error) {
	if a, ok := errors.AsType[*abandoned](err); ok {
		g.last = a.done
	}
	<-g.turn
}

// change makes one call that changes leases or sessions of a group, and makes it again while others change them, too.
func (s *Store) change(ctx context.Context, method, name string, do func(l *link, g *group) error) error {
	l, err := s.begin(ctx)
	if err != nil {
		return s.judge(ctx, method, err)
	}
	g := s.group(name)
	if err := g.enter(ctx); err != nil {
		return s.judge(ctx, method, err)
	}
	for {
		err = do(l, g)
		if !errors.Is(err, errAgain) || ctx.Err() != nil {
			break
		}
	}
	g.leave(err)
	return s.judge(ctx, method, err)
}

// session returns what is noted of a replica's session, nil for nothing.
func (s *Store) session(g *group, id string) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.sessions[id]
}

// noteSession notes a session; nil forgets it.
func (s *Store) noteSession(g *group, id string, h *hold) {
	s.mu.Lock()
	if h == nil {
		delete(g.sessions, id)
	} else {
		g.sessions[id] = h
	}
	s.mu.Unlock()
	s.wake()
}

// lease returns what is noted of the group's lease, nil for nothing.
func (s *Store) lease(g *group) *hold {
	s.mu.Lock()
	defer s.mu.Unlock()
	return g.lease
}

func (s *Store) noteLease(g *group, h *hold) {
	s.mu.Lock()
	g.lease = h
	s.mu.Unlock()
	s.wake()
}

// leader returns whom a lease makes the leader, nil for nobody: a lease on our ZooKeeper session is as long as we know.
func (s *Store) leader(l *link, g *group, lease *grant) *store.Leader {
	if lease == nil {
		return nil
	}
	leader := &store.Leader{Replica: lease.replica, Token: lease.token, Remaining: lease.ttl}
	if lease.owner != l.session().id {
		return leader
	}
	h := s.lease(g)
	if h == nil || h.grant.nonce != lease.nonce || h.over() {
		return nil
	}
	leader.Remaining = max(time.Until(h.end), time.Millisecond)
	return leader
}

func (s *Store) wake() {
	select {
	case s.due <- struct{}{}:
	default:
	}
}
