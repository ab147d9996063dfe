// Package lifetime holds a grant of the store that ends unless it is extended: a term's lease and a replica's session
// are both one.
//
// A grant that was asked for at sent and given for ttl has the deadline
//
//	deadline = sent + ttl − Drift(ttl)
//
// after which the store may have given the same thing to somebody else. A lifetime ends Guard(ttl) before that: whoever
// works under it has the guard to stop. Elapsed time is the larger of the monotonic and the wall-clock time since sent,
// because the monotonic clock stands still while a Linux machine is suspended and the wall clock can be set back.
package lifetime

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/world"
)

// Drift is how much of ttl is given away to clocks that run at different rates: 1 % and 2 ms.
func Drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// Guard is how long before its deadline a lifetime of ttl ends: a tenth, at least 50 ms.
func Guard(ttl time.Duration) time.Duration { return max(50*time.Millisecond, ttl/10) }

// Span is how long after its sending a grant of ttl ends: Guard before its deadline.
func Span(ttl time.Duration) time.Duration { return ttl - Drift(ttl) - Guard(ttl) }

// Lifetime is a grant and its extensions. Its methods are safe for concurrent use and do no I/O.
type Lifetime struct {
	world    *world.World
	parent   context.Context
	onExpire error
	doubts   bool // the wall clock alone raises a doubt instead of ending it

	mu      sync.Mutex
	ctx     context.Context // nil until somebody wants it
	cancel  context.CancelCauseFunc
	onEnd   func(cause error) // nil is none
	doubted chan struct{}     // receives when a doubt arises; nil until somebody wants to know
	timer   *time.Timer       // looks at the clocks; nil while nobody waits for the end, and before the first grant
	sent    world.Instant     // of the last grant; zero before the first
	span    time.Duration     // from sent to the end
	guard   time.Duration     // from the end to the deadline
	suspect time.Time         // when the doubt arose; zero without one
	cause   error             // why it is over; nil while it is not
}

// New starts a lifetime that was asked for at sent and granted for ttl. Its context is a child of parent; onExpire is
// the cause when it ends for want of an extension. It ends when either clock says so.
func New(parent context.Context, sent world.Instant, ttl time.Duration, onExpire error) *Lifetime {
	l := newLifetime(parent, onExpire)
	l.grant(sent, ttl)
	return l
}

// Waiting returns a lifetime that begins with its first extension and is not valid before. When only the wall clock
// says that it is over, it is suspect: not valid, but an extension asked for since then makes it valid again; it ends
// without one within Guard.
func Waiting(parent context.Context, onExpire error) *Lifetime {
	l := newLifetime(parent, onExpire)
	l.doubts = true
	return l
}

func newLifetime(parent context.Context, onExpire error) *Lifetime {
	return &Lifetime{world: world.From(parent), parent: parent, onExpire: onExpire}
}

// Extend moves the deadline to that of a later grant and reports whether the lifetime goes on. Once it is over nothing
// revives it, and a grant that has run out on arrival is worth nothing. The deadline moves to an earlier time too.
func (l *Lifetime) Extend(sent world.Instant, ttl time.Duration) bool {
	l.mu.Lock()
	defer l.unlock()
	l.look()
	if l.cause != nil {
		return false
	}
	if _, mono := l.world.Since(sent); mono >= Span(ttl) {
		return true
	}
	l.grant(sent, ttl)
	l.look()
	l.arm()
	return l.cause == nil
}

// Context is cancelled when the lifetime ends, guard before its deadline, by a timer that waits for no I/O; the cause
// tells why.
func (l *Lifetime) Context() context.Context {
	l.mu.Lock()
	defer l.unlock()
	if l.ctx == nil { // of thousands of followers' sessions nobody wants it, and each would cost a timer, too
		l.ctx, l.cancel = context.WithCancelCause(l.parent)
		l.look()
		l.arm()
	}
	return l.ctx
}

// OnEnd has f called, with the cause, before anyone is told that the lifetime is over: once or more, and by several
// goroutines at once.
func (l *Lifetime) OnEnd(f func(cause error)) {
	l.mu.Lock()
	defer l.unlock()
	l.onEnd = f
	l.look()
	l.arm()
}

// Valid compares the clocks and reports whether the grant certainly holds. The first false, save that of a suspect or
// a waiting lifetime, has cancelled the context with its cause before it returns.
func (l *Lifetime) Valid() bool {
	l.mu.Lock()
	defer l.unlock()
	return l.look()
}

// Remaining returns how long Valid goes on being true without an extension.
func (l *Lifetime) Remaining() time.Duration {
	l.mu.Lock()
	defer l.unlock()
	if !l.look() {
		return 0
	}
	elapsed, _ := l.world.Since(l.sent)
	return max(0, l.span-elapsed)
}

// Patience returns how long the lifetime waits for an extension before it ends: Remaining, what is left of the guard
// while it is suspect, for ever before the first grant, 0 when it is over.
func (l *Lifetime) Patience() time.Duration {
	l.mu.Lock()
	defer l.unlock()
	switch {
	case l.look():
		elapsed, _ := l.world.Since(l.sent)
		return max(0, l.span-elapsed)
	case l.cause != nil:
		return 0
	case l.suspect.IsZero():
		return math.MaxInt64
	}
	return max(0, l.guard-time.Since(l.suspect))
}

// UntilDeadline returns the time to the deadline itself, a guard after Valid has ended: what releases, last commits and
// kills may still use. It goes on counting when the lifetime is over.
func (l *Lifetime) UntilDeadline() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	elapsed, _ := l.world.Since(l.sent)
	return max(0, l.span+l.guard-elapsed)
}

// Over returns why the lifetime has ended, or nil when it has not.
func (l *Lifetime) Over() error {
	l.mu.Lock()
	defer l.unlock()
	l.look()
	return l.cause
}

// Begun reports whether there has been a grant.
func (l *Lifetime) Begun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sent != world.Instant{}
}

// Suspect receives when the wall clock alone says that the lifetime is over: an extension must be asked for at once. It
// is nil where that raises no doubt.
func (l *Lifetime) Suspect() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.doubted == nil && l.doubts {
		l.doubted = make(chan struct{}, 1)
		if !l.suspect.IsZero() {
			l.doubted <- struct{}{}
		}
	}
	return l.doubted
}

// End ends the lifetime now; a cause that it had before stands.
func (l *Lifetime) End(cause error) {
	l.mu.Lock()
	defer l.unlock()
	l.look()
	if l.cause == nil {
		l.cause = cause
	}
}

// grant notes a grant; mu is held.
func (l *Lifetime) grant(sent world.Instant, ttl time.Duration) {
	l.sent, l.span, l.guard = sent, Span(ttl), Guard(ttl)
}

// look compares the clocks with the deadline, notes what they say, and reports whether the grant holds; mu is held.
func (l *Lifetime) look() bool {
	if l.cause == nil && l.parent.Err() != nil {
		l.cause = context.Cause(l.parent)
	}
	if l.cause != nil || l.sent == (world.Instant{}) {
		return false
	}
	elapsed, mono := l.world.Since(l.sent)
	switch {
	case elapsed < l.span:
		l.suspect = time.Time{}
		return true
	case mono >= l.span || !l.doubts:
		l.cause = l.onExpire
	case l.suspect.IsZero():
		l.suspect = time.Now()
		select {
		case l.doubted <- struct{}{}:
		default:
		}
		l.arm()
	case time.Since(l.suspect) >= l.guard:
		l.cause = l.onExpire
	}
	return false
}

// arm sets the timer to the next time at which the clocks must be compared; mu is held. It comes at least once a guard,
// because a timer sleeps through a suspended machine's lease.
func (l *Lifetime) arm() {
	if l.cause != nil || l.ctx == nil && l.onEnd == nil || l.sent == (world.Instant{}) {
		return
	}
	_, mono := l.world.Since(l.sent)
	next := min(l.span-mono, l.guard)
	if !l.suspect.IsZero() {
		next = min(next, l.guard-time.Since(l.suspect))
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(next, l.tick)
	} else {
		l.timer.Reset(next)
	}
}

func (l *Lifetime) tick() {
	l.mu.Lock()
	defer l.unlock()
	l.look()
	l.arm()
}

// unlock releases mu; a lifetime that is over has its context cancelled before anyone is told so.
func (l *Lifetime) unlock() {
	cause, timer, cancel, onEnd := l.cause, l.timer, l.cancel, l.onEnd
	l.mu.Unlock()
	if cause == nil {
		return
	}
	if timer != nil {
		timer.Stop()
	}
	if cancel != nil {
		cancel(cause)
	}
	if onEnd != nil {
		onEnd(cause)
	}
}
