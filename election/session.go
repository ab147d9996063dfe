package election

import (
	"context"
	"time"

	"github.com/go-singleton/singleton/internal/lifetime"
)

// Session is the store's proof that this replica is alive, as far as it is known here: what runs live on. Its methods
// are safe for concurrent use and do no I/O.
type Session struct {
	id   string
	life *lifetime.Lifetime
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
func (e *Elector) Hold() (s *Session, release func(), err error) { return nil, func() {}, ErrNotRunning }

// Session returns the current session, or nil before the store has granted Run its first.
func (e *Elector) Session() *Session { return nil }
