package election_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

const lease = 15 * time.Second

var (
	span  = lifetime.Span(lease)                // from the sending of a renewal to the end of Valid
	third = (lease - lifetime.Drift(lease)) / 3 // and to the next one
)

// replica is an elector in a bubble, with its own wire and its own wall clock.
type replica struct {
	*election.Elector
	t     *testing.T
	wire  *wire
	ahead atomic.Int64 // of its wall clock
	stop  context.CancelCauseFunc
	done  chan struct{}
	err   error // of Run, when done

	mu     sync.Mutex
	events []string
	logs   bytes.Buffer
}

// untilEnd is work that ends with its context.
func untilEnd(ctx context.Context, _ *election.Term) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

// run starts a replica; the test ends it.
func run(t *testing.T, s store.Store, cfg election.Config, lead func(context.Context, *election.Term) error) *replica {
	t.Helper()
	r := newReplica(t, s, cfg)
	r.start(lead)
	return r
}

func newReplica(t *testing.T, s store.Store, cfg election.Config) *replica {
	t.Helper()
	r := &replica{t: t, wire: newWire(s)}
	if cfg.Group == "" {
		cfg.Group = "g"
	}
	if cfg.Lease == 0 {
		cfg.Lease = lease
	}
	cfg.Logger = slog.New(slog.NewTextHandler(r, nil))
	cfg.Callbacks = election.Callbacks{
		Elected: func(t *election.Term) { r.note("elected %d", t.Token()) },
		Lost:    func(t *election.Term, cause error) { r.note("lost %d: %v", t.Token(), cause) },
		LeaderChanged: func(l store.Leader) {
			name, _, _ := strings.Cut(l.Replica, "-")
			r.note("leader %s", name)
		},
	}
	var err error
	if r.Elector, err = election.New(r.wire, cfg); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *replica) start(lead func(context.Context, *election.Term) error) {
	real := world.From(context.Background())
	w := &world.World{
		Wall:   func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) },
		Random: real.Random, ID: real.ID, Secret: real.Secret,
	}
	ctx, stop := context.WithCancelCause(world.With(r.t.Context(), w))
	r.stop, r.done = stop, make(chan struct{})
	go func() {
		defer close(r.done)
		r.err = r.Run(ctx, lead)
	}()
	r.t.Cleanup(func() { // in the bubble
		stop(nil)
		<-r.done
		r.wire.late.Wait()
	})
}

// Write collects the log.
func (r *replica) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.logs.Write(p)
}

// logged returns how many log records contain all of words.
func (r *replica) logged(words ...string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
next:
	for line := range strings.Lines(r.logs.String()) {
		for _, w := range words {
			if !strings.Contains(line, w) {
				continue next
			}
		}
		n++
	}
	return n
}

func (r *replica) note(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, fmt.Sprintf(format, args...))
}

// seen returns what the callbacks were told and forgets it.
func (r *replica) seen() string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	s := strings.Join(r.events, ", ")
	r.events = nil
	return s
}

func (r *replica) leads() bool { return r.Term() != nil }

// await waits, in the bubble's time, until what is true, and returns how long that took.
func await(t *testing.T, limit time.Duration, what string, true func() bool) time.Duration {
	t.Helper()
	start := time.Now()
	for synctest.Wait(); !true(); synctest.Wait() {
		if time.Since(start) > limit {
			t.Fatalf("not within %v: %s", limit, what)
		}
		time.Sleep(time.Millisecond)
	}
	return time.Since(start)
}

// bubble runs a test with virtual time.
func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// pass lets so much time pass, and then all that is due at that moment be done. Only the root of a bubble calls it: a bare
// Sleep ends beside whatever else is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// rest waits for d or the end of ctx and reports whether ctx lives.
func rest(ctx context.Context, d time.Duration) bool { return world.Rest(ctx, d, nil) }

// shared is a value that the work writes and the test reads.
type shared[T any] struct {
	mu sync.Mutex
	v  T
}

func (s *shared[T]) set(v T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.v = v
}

func (s *shared[T]) get() T {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.v
}
