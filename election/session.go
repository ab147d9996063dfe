package election

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// Session is the store's proof that this replica is alive, as far as it is known here: what runs live on. Its methods
// are safe for concurrent use and do no I/O.
type Session struct {
	id   string
	life *lifetime.Lifetime

	// Guarded by Elector.mu.
	holds int
	spent bool // it ended while it was held
}

// ID returns the replica's ID during this session.
func (s *Session) ID() string { return s.id }

// Context ends guard before the store can end the session, with the cause ErrExpired, or store.ErrEnded when the store
// has said so.
func (s *Session) Context() context.Context { return s.life.Context() }

// Valid reports whether the session certainly lives. It may be false for a moment and true again when the wall clock
// has jumped; once its context has ended it stays false.
func (s *Session) Valid() bool { return s.life.Valid() }

// Remaining returns how long the session certainly lives if it is not refreshed.
func (s *Session) Remaining() time.Duration { return s.life.Remaining() }

// Hold keeps the replica's session alive, whatever its role, until release is called: in lengths of one lease, refreshed
// every third of it. Run does not return while a session is held. The session may not be valid yet: a follower that held
// none has to ask the store first. When a session ends in spite of it, release is still to be called, and another Hold
// gives the next one. Without store.Ledger, or outside of Run (ErrNotRunning), it is an error; release is never nil.
func (e *Elector) Hold() (s *Session, release func(), err error) {
	if e.ledger == nil {
		return nil, func() {}, errors.New("election: sessions cannot be held: the store is no store.Ledger")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.open {
		return nil, func() {}, ErrNotRunning
	}
	s = e.living()
	s.holds++
	e.holds++
	e.tend()
	return s, sync.OnceFunc(func() { e.drop(s) }), nil
}

func (e *Elector) drop(s *Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	s.holds--
	e.holds--
	s.spent = s.spent || s.life.Over() != nil
	if k := e.keeper; k != nil && k.session == s && s.holds == 0 {
		k.cancel()
	}
	if e.holds == 0 {
		select {
		case e.freed <- struct{}{}:
		default:
		}
	}
}

// Session returns the current session, or nil before the store has granted this Run its first, or the next one after a
// session has ended. What a follower gets that holds no session is not known here, and counts as none.
func (e *Elector) Session() *Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.session == nil || !e.session.life.Begun() {
		return nil
	}
	return e.session
}

func (e *Elector) newSession() *Session {
	return &Session{id: e.id, life: lifetime.Waiting(e.base, ErrExpired)}
}

// living returns the session to use next; mu is held. One that has run out while nothing lived on it is followed by
// another under the same ID, which the store may still know. One that ended under a hold, or of which the store says so,
// is not: what lived on it must not come back with it.
func (e *Elector) living() *Session {
	cause := e.session.life.Over()
	if cause == nil {
		return e.session
	}
	if e.session.holds > 0 || e.session.spent || !errors.Is(cause, ErrExpired) {
		e.draw()
	}
	e.session = e.newSession()
	return e.session
}

// candidacy returns the ID to campaign under, whether its session is still to be started, and whether it is held.
func (e *Elector) candidacy() (id string, start, held bool) {
	e.mu.Lock()
	before := e.id
	s := e.living()
	e.used = true
	id, start, held = e.id, !e.started, s.holds > 0
	e.mu.Unlock()
	if id != before {
		e.log().Info("session has ended: going on under another ID", "before", before)
	}
	return id, start, held
}

// refresh returns what to Join with for s.
func (e *Elector) refresh(s *Session) (start bool, r store.Replica) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.used = true
	return !e.started, store.Replica{ID: s.id, Info: e.cfg.Info}
}

// heard notes what the store's answer to a Join or an Acquire under id says about the session of that ID.
func (e *Elector) heard(id string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if id != e.id {
		return
	}
	_, held := errors.AsType[*store.HeldError](err)
	switch {
	case err == nil || held:
		e.started = true
	case errors.Is(err, store.ErrEnded):
		e.session.life.End(store.ErrEnded)
	}
}

// adopt lets the session of id share the lease that it was granted, and stops its keeper, because the renewals of the
// term keep it from now on. It returns nil when that session has ended meanwhile.
func (e *Elector) adopt(id string, sent world.Instant, ttl time.Duration) *Session {
	e.mu.Lock()
	e.renewing = true
	k := e.keeper
	e.mu.Unlock()
	if k != nil {
		k.cancel()
		<-k.done
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.living()
	if s.id != id || !s.life.Extend(sent, ttl) || !s.life.Valid() {
		return nil
	}
	return s
}
