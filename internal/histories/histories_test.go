package histories

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"go.uber.org/goleak"
)

var (
	first  = flag.Uint64("seed", 1, "the first seed")
	seeds  = flag.Uint64("seeds", 4, "how many seeds")
	length = flag.Duration("for", 3*time.Second, "how long the history of each seed is")
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A pool that has failed to dial goes on trying for up to a second after it was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// TestFencedHistoriesAreLinearizable holds the Redis store against the object of the package documentation (E3, S1).
func TestFencedHistoriesAreLinearizable(t *testing.T) {
	judged(t, *seeds, onRedis, 150*time.Millisecond)
}

// TestFencedHistoriesOfZooKeeperAreLinearizable holds the ZooKeeper store against the same object.
func TestFencedHistoriesOfZooKeeperAreLinearizable(t *testing.T) {
	judged(t, (*seeds+3)/4, onZooKeeper, 350*time.Millisecond)
}

// judged records histories of n seeds and judges them; ttl is the shortest lease.
func judged(t *testing.T, n uint64, on func(*testing.T) *backend, ttl time.Duration) {
	for seed := *first; seed < *first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			h := record(t, on(t), seed, ttl)
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
func record(t *testing.T, b *backend, seed uint64, shortest time.Duration) history {
	r := newRecorder()
	random := rand.New(rand.NewPCG(seed, 0))
	ttl := shortest << random.IntN(3)
	clients := make([]*client, 2+random.IntN(4))
	for i := range clients {
		clients[i] = newClient(t, b, r, i+1, ttl, seed)
	}

	calm, quieten := context.WithCancel(t.Context())
	over, end := context.WithCancel(t.Context())
	var faults, calls sync.WaitGroup
	defer calls.Wait()
	defer end()
	defer faults.Wait()
	defer quieten()
	faults.Go(func() { newNemesis(seed, 0, ttl).damage(calm, t, b) })
	for _, c := range clients {
		faults.Go(func() { newNemesis(seed, uint64(c.id), ttl).haunt(calm, c) })
		calls.Go(func() { c.run(over) })
	}
	for begin := time.Now(); time.Since(begin) < *length || r.history().shows() != nil; {
		if !pause(t.Context(), 50*time.Millisecond) || time.Since(begin) > *length+30*time.Second {
			t.Errorf("the history of seed %d shows too little: %v", seed, r.history().shows())
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

// shows returns an error unless h has enough of everything to prove something.
func (h history) shows() error {
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
		if n := h.count(is(w.action), was(w.outcome)); n < w.least && !(operation{action: w.action, outcome: w.outcome, dim: dim}).idle() {
			return fmt.Errorf("%d times %s: %s, at least %d are wanted", n, w.action, w.outcome, w.least)
		}
	}
	return nil
}
