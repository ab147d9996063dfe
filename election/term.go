package election

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/store"
)

// Term is one period of leadership; its methods are safe for concurrent use and do no I/O.
type Term struct {
	lease   store.Lease
	session *Session
	life    *lifetime.Lifetime
	clock   atomic.Pointer[clock]

	ctx    context.Context // of lead: ends with life, and on a stop or Resign
	cancel context.CancelCauseFunc
	asked  time.Time // when the lease was

	// Guarded by Elector.mu.
	renewal *time.Timer // the next one
	call    func()      // ends the one that is under way
	stopped bool        // there will be no other
	atWork  bool        // lead has not returned

	granted time.Duration  // by the last renewal
	ended   sync.Once      // has its end begun
	steps   sync.WaitGroup // renewals, and that end

	log   *slog.Logger
	fault error // of the last renewal; nil where it did not fail
	cause error // of its end; nil before that

	returned chan struct{} // closed when lead has; nil while nobody waits; Elector.mu guards it
	done     chan struct{} // closed when the lease has been released, or is over; nil while nobody waits; Elector.mu guards it
}

// work is what has become of a call of lead.
type work struct {
	err      error
	panicked bool
	stack    string // of a panic
	early    bool   // its context was still alive
	failed   bool   // err is news, and not the reason for which it was told to end
	cause    error  // of the term's end, as far as the work knows
	over     error  // why the term had ended before; nil where it had not
}

// clock is what a reply said about the store's clock.
type clock struct {
	store time.Time
	local time.Time // when the reply came
}

// Token returns the fencing token. It is greater than that of every earlier term of the group.
func (t *Term) Token() uint64 { return t.lease.Token }

// Lease returns what the term was granted, for commits that the store checks against it.
func (t *Term) Lease() store.Lease { return t.lease }

// Valid reports whether the lease certainly still holds; ask right before a side effect. The first false has cancelled
// the context of lead, with its cause, before it is returned.
func (t *Term) Valid() bool { return t.life.Valid() }

// Remaining returns how long the lease certainly still holds if it is not renewed.
func (t *Term) Remaining() time.Duration { return t.life.Remaining() }

// UntilDeadline returns how long nobody else can lead if the lease is not renewed: a guard longer than Remaining, for work
// that has been told to end. It goes on counting when the term is over; after ErrLost it says nothing.
func (t *Term) UntilDeadline() time.Duration { return t.life.UntilDeadline() }

// Context ends when the lease itself is over, or lead has returned; a stop or Resign, which end the context of lead,
// leave it alone. It is for what lead still has to finish then.
func (t *Term) Context() context.Context { return t.life.Context() }

// StoreTime returns the store's clock as far as it is known: what the last renewal brought and the time since its reply.
// It is behind by at most that renewal's round trip, and never ahead.
func (t *Term) StoreTime() time.Time {
	c := t.clock.Load()
	return c.store.Add(time.Since(c.local))
}
