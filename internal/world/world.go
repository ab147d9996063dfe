// Package world is what a replica takes from its surroundings: the wall clock and chance. A simulation replaces both
// through the context that it gives to Run; everything else reads the real ones.
package world

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"
)

// World is one replica's surroundings. Its methods are safe for concurrent use where its fields are.
type World struct {
	Wall   func() time.Time // the wall clock
	Random func() uint64    // uniform over all values; must be safe for concurrent use
	ID     func() string    // a UUIDv7: sorts by the time it was made
	Secret func() string    // 128 bits that nobody guesses
	Turn   func()           // lets one goroutine go on at a time; nil lets all

	Fork func(context.Context) context.Context // gives a goroutine that is about to begin a Turn of its own; nil: all have one
}

var real = &World{
	Wall:   time.Now,
	Random: rand.Uint64,
	ID:     func() string { return uuid.Must(uuid.NewV7()).String() },
	Secret: uuid.NewString,
}

type key struct{}

// With returns a context that carries w.
func With(ctx context.Context, w *World) context.Context { return context.WithValue(ctx, key{}, w) }

// From returns the world that ctx carries, or the real one.
func From(ctx context.Context) *World {
	if w, ok := ctx.Value(key{}).(*World); ok {
		return w
	}
	return real
}

// WaitTurn is called by a goroutine that a timer, a context or a signal has woken, before it does anything: a simulation can
// then say who comes first. It returns at once in real surroundings. No mutex is held.
func (w *World) WaitTurn() {
	if w.Turn != nil {
		w.Turn()
	}
}

// Fork returns the context of a goroutine that is about to begin: a simulation can then tell those apart that do the same.
// It returns ctx in real surroundings.
func Fork(ctx context.Context) context.Context {
	if w := From(ctx); w.Fork != nil {
		return w.Fork(ctx)
	}
	return ctx
}

// Between returns a random duration in [lo, hi).
func (w *World) Between(lo, hi time.Duration) time.Duration {
	if hi <= lo {
		return lo
	}
	return lo + time.Duration(w.Random()%uint64(hi-lo))
}

// Suffix returns the 8 random hexadecimal digits that make a replica's ID unique.
func (w *World) Suffix() string {
	const digits = "0123456789abcdef"
	var b [8]byte
	r := w.Random()
	for i := range b {
		b[i] = digits[r>>(4*i)&15]
	}
	return string(b[:])
}

// Instant is a moment on both clocks: Go's monotonic clock stands still while a Linux machine is suspended, and the
// wall clock may be set.
type Instant struct{ Mono, Wall time.Time }

// Now returns this instant.
func (w *World) Now() Instant { return Instant{Mono: time.Now(), Wall: w.Wall().Round(0)} }

// Since returns the larger of the monotonic and the wall-clock time from i to now, and the monotonic alone.
func (w *World) Since(i Instant) (elapsed time.Duration, mono time.Duration) {
	now := w.Now()
	mono = now.Mono.Sub(i.Mono)
	return max(mono, now.Wall.Sub(i.Wall)), mono
}
