package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/go-singleton/singleton/store"
)

// Backend is a server, or several, that the clients of a history share.
type Backend struct {
	Addrs  []string
	Faults []Fault       // of the servers
	Lag    time.Duration // for which the servers may keep a lease that is over
	Dim    bool          // who does not hold the lease, or breaks the rules, may be told of a moment that never was
	Early  bool          // a lease may end before its time
	Slow   bool          // leases are all of the same length, and long: faults and patience are a quarter of what they are elsewhere

	// Open returns a client's store, which it reaches at addrs, and a way to write past it.
	Open func(t *testing.T, addrs []string, ttl time.Duration) (store.Store, func(ctx context.Context, value string) error)
}

// Fault is one of a server, until it is mended.
type Fault struct {
	Begin, End func() error
}

// Quietly makes a part of a fault of what cannot fail.
func Quietly(do func()) func() error {
	return func() error {
		do()
		return nil
	}
}

// Judge records the histories of n seeds from first on, each on a backend of its own and for length, or until it shows
// enough, and judges them; ttl is the shortest lease: others last two or four times as long.
func Judge(t *testing.T, first, n uint64, length time.Duration, on func(*testing.T) *Backend, ttl time.Duration) {
	var mu sync.Mutex
	var all history
	t.Cleanup(func() { // which calls get no answer, and who stands still while he leads, is left to chance: some seed must show it
		if err := all.shows(true); err != nil && !t.Failed() {
			t.Errorf("the histories show too little: %v", err)
		}
	})
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := record(t, on(t), seed, length, ttl)
			mu.Lock()
			all = append(all, h...)
			mu.Unlock()
			begin := time.Now()
			verdict := h.judge()
			t.Logf("%v in %v: %d calls, %d grants, %d commits, %d refused, %d without an answer", verdict,
				time.Since(begin).Round(time.Millisecond), len(h), h.count(is(acquire), was(done)), h.count(is(commit), was(done)),
				h.count(is(commit), was(lost)), h.count(was(unknown)))
			if verdict != porcupine.Ok {
				t.Errorf("the history of seed %d is not that of a fenced lease: %v", seed, verdict)
				h.explain(t)
				return
			}
			begin = time.Now()
			n := h.refuseForgeries(t)
			t.Logf("%d forgeries judged in %v", n, time.Since(begin).Round(time.Millisecond))
		})
	}
}

// record lets a seed's clients loose on a server and returns what they were answered. Leases last for shortest, or two
// or four times as long.
func record(t *testing.T, b *Backend, seed uint64, length, shortest time.Duration) history {
	r := newRecorder()
	random := rand.New(rand.NewPCG(seed, 0))
	ttl := shortest << random.IntN(3)
	pace := ttl
	if b.Slow {
		ttl, pace = shortest, shortest/4
	}
	clients := make([]*client, 2+random.IntN(4))
	for i := range clients {
		clients[i] = newClient(t, b, r, i+1, ttl, seed)
		clients[i].pace = pace
	}

	calm, quieten := context.WithCancel(t.Context())
	over, end := context.WithCancel(t.Context())
	var faults, calls sync.WaitGroup
	defer calls.Wait()
	defer end()
	defer faults.Wait()
	defer quieten()
	faults.Go(func() { newNemesis(seed, 0, pace).damage(calm, t, b) })
	for _, c := range clients {
		faults.Go(func() { newNemesis(seed, uint64(c.id), pace).haunt(calm, c) })
		calls.Go(func() { c.run(over) })
	}
	for begin := time.Now(); time.Since(begin) < length || r.history().shows(true) != nil; {
		if !pause(t.Context(), 50*time.Millisecond) || time.Since(begin) > length+30*time.Second {
			if err := r.history().shows(false); err != nil {
				t.Errorf("the history of seed %d shows too little: %v", seed, err)
			}
			break
		}
	}
	quieten()
	faults.Wait()
	pause(t.Context(), 2*ttl) // what was held comes now, and somebody may see it
	end()
	calls.Wait()
	return r.history()
}

// shows returns an error unless h has enough of everything to prove something, with or without what is rare.
func (h history) shows(rare bool) error {
	dim := len(h) > 0 && h[0].dim
	for _, w := range []struct {
		action  action
		outcome outcome
		least   int
	}{
		{acquire, done, 4}, {acquire, held, 4}, {acquire, unknown, 1},
		{commit, done, 20}, {commit, lost, 1}, {commit, unknown, 2},
		{renew, done, 4}, {release, done, 2}, {readAll, done, 4}, {leader, done, 2}, {position, done, 4},
	} {
		if (w.outcome == unknown || w.outcome == lost) && !rare {
			continue
		}
		if n := h.count(is(w.action), was(w.outcome)); n < w.least && !(operation{action: w.action, outcome: w.outcome, dim: dim}).idle() {
			return fmt.Errorf("%d times %s: %s, at least %d are wanted", n, w.action, w.outcome, w.least)
		}
	}
	return nil
}
