package sim

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

var (
	firstSeed = flag.Uint64("sim.first", 1, "first seed of TestSimulation")
	seeds     = flag.Uint64("sim.seeds", 24, "how many seeds TestSimulation takes")
	long      = flag.Duration("sim.for", 10*time.Minute, "virtual time of each seed")
	logAll    = flag.Bool("sim.log", false, "print all that happens in a seed that fails, from its beginning, also what is routine")
	traceTo   = flag.String("sim.trace", "", "write all that happens in the last seed to this file")
)

func TestMain(m *testing.M) {
	debug.SetGCPercent(400) // a scene is small, and there are thousands
	goleak.VerifyTestMain(m)
}

// outcome is what one seed has shown.
type outcome struct {
	seed     uint64
	hash     uint64
	steps    int
	starts   int
	terms    int
	commits  int
	faults   map[string]int
	seen     map[string]int // what the history shows
	failures []string
	trace    *trace
	ended    time.Time
}

// play runs one seed: faults, a quiet time in which all is to come right, the end, and the reckoning.
func play(t *testing.T, seed uint64, keep bool) (o outcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c := newChance(t, seed, keep)
		c.play(*long)
		o = outcome{
			seed: seed, hash: c.trace.hash, steps: c.bus.steps, starts: len(c.started), terms: c.leases.grants,
			commits: c.ledger.commits, faults: c.faults, seen: c.seen, failures: c.failures, trace: c.trace, ended: time.Now(),
		}
	})
	return o
}

func newChance(t *testing.T, seed uint64, keep bool) *chance {
	c := &chance{scene: newScene(t, seed, keep), faults: make(map[string]int)}
	c.script = c
	leases := []time.Duration{3, 3, 4, 5, 8, 12}
	c.lease = leases[draw(seed, "lease")%uint64(len(leases))] * time.Second
	c.grace = c.lease + time.Second
	c.lossy = draw(seed, "lossy")%3 == 0
	return c
}

func (c *chance) play(long time.Duration) {
	for range 2 + c.bus.rand.IntN(3) {
		c.begin(0)
	}
	settle := 40*time.Second + 6*c.lease
	end := time.Now().Add(long - settle)
	c.bus.after(c.bus.between(time.Second, 5*time.Second), c.nemesis)
	if c.lossy {
		c.bus.after(c.bus.between(20*time.Second, 40*time.Second), c.calm)
	}
	c.bus.run(end, c.broken)
	c.over = true
	if c.sound() {
		c.heal()
		c.bus.run(time.Now().Add(settle), c.broken)
		c.ledger.settled(time.Now(), settle)
		c.answered()
	}
	c.healthy = true
	if c.sound() {
		c.ledger.compare(c.store)
	}
	c.end()
	if c.sound() {
		c.reckon()
	}
	faults := 0
	for _, n := range c.faults {
		faults += n
	}
	if c.sound() && (len(c.started) < 100 || c.leases.grants < 3 || faults < 10) {
		c.fail("%d starts, %d terms and %d faults prove little", len(c.started), c.leases.grants, faults)
	}
}

// precise is the layout of the time in what is printed of a seed.
const precise = "15:04:05.000"

// TestSimulationIsReplayed plays seeds again and again, on one processor and on several: everything must be as it was.
func TestSimulationIsReplayed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, seed := range []uint64{1, 2} {
		want := play(t, seed, false)
		for _, n := range []int{1, 2, 4} {
			runtime.GOMAXPROCS(n)
			if got := play(t, seed, false); got.hash != want.hash {
				t.Errorf("seed %d has hash %x, and on %d processors %x", seed, want.hash, n, got.hash)
			}
		}
	}
}

// TestSimulation lets replicas with the real election and scheduler live through faults drawn from a seed, and judges each
// step by what is promised.
func TestSimulation(t *testing.T) {
	began := time.Now()
	r := &results{begun: began, next: *firstSeed, end: *firstSeed + *seeds, done: make(map[uint64]outcome)}
	t.Run("workers", func(t *testing.T) {
		for w := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for seed, ok := r.take(); ok; seed, ok = r.take() {
					r.add(play(t, seed, false))
				}
			})
		}
	})
	r.report(t)
}

// results gathers what the seeds have shown, whichever worker took them.
type results struct {
	mu    sync.Mutex
	begun time.Time
	told  time.Time
	next  uint64
	end   uint64
	bad   bool
	done  map[uint64]outcome
}

// take returns the next seed, as long as none has failed.
func (r *results) take() (uint64, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.bad || r.next == r.end {
		return 0, false
	}
	r.next++
	return r.next - 1, true
}

func (r *results) add(o outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(o.failures) > 0 {
		r.bad = true
	}
	o.trace = nil
	r.done[o.seed] = o
	if r.told.IsZero() {
		r.told = r.begun
	}
	if time.Since(r.told) > 30*time.Second {
		r.told = time.Now()
		fmt.Fprintf(os.Stderr, "%d of %d seeds in %v\n", len(r.done), *seeds, time.Since(r.begun).Round(time.Second))
	}
}

func (r *results) report(t *testing.T) {
	var steps, starts, terms, commits int
	faults, seen := make(map[string]int), make(map[string]int)
	all := newTrace(false)
	for _, seed := range slices.Sorted(maps.Keys(r.done)) {
		o := r.done[seed]
		steps, starts, terms, commits = steps+o.steps, starts+o.starts, terms+o.terms, commits+o.commits
		for f, n := range o.faults {
			faults[f] += n
		}
		for s, n := range o.seen {
			seen[s] += n
		}
		for i := range 8 {
			all.hash = (all.hash ^ o.hash>>(8*i)&255) * 1099511628211
		}
		if len(o.failures) > 0 {
			explain(t, o)
			return
		}
	}
	var list []string
	sum := 0
	for _, f := range slices.Sorted(maps.Keys(faults)) {
		list = append(list, fmt.Sprintf("%s %d", f, faults[f]))
		sum += faults[f]
	}
	fmt.Fprintf(t.Output(), "%d seeds from %d: hash %016x, %d steps, %d starts, %d terms, %d commits, %d faults (%s), in %v\n",
		len(r.done), *firstSeed, all.hash, steps, starts, terms, commits, sum, strings.Join(list, ", "), time.Since(r.begun).Round(time.Second/10))
	for _, what := range []string{"retries", "permanent errors", "runs replaced", "runs cancelled", "waits dropped", "answers", "refusals"} {
		if seen[what] == 0 && len(r.done) >= 16 {
			t.Errorf("in %d seeds there are no %s", len(r.done), what)
		}
	}
	fmt.Fprintln(t.Output(), seen)
	if *traceTo != "" {
		o := play(t, *firstSeed+*seeds-1, true)
		if err := os.WriteFile(*traceTo, []byte(o.trace.tail(time.Time{}, precise, true)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// explain plays a seed that has failed once more, and prints what led to it.
func explain(t *testing.T, o outcome) {
	t.Helper()
	again := play(t, o.seed, true)
	from := again.ended.Add(-2 * time.Minute)
	if *logAll {
		from = time.Time{}
	}
	t.Errorf("seed %d:\n%s\n%s\nagain: make sim FIRST=%d SEEDS=1", o.seed, again.trace.tail(from, precise, *logAll), strings.Join(o.failures, "\n"), o.seed)
	if again.hash != o.hash {
		t.Errorf("seed %d did not happen again as it was: hash %x, then %x", o.seed, o.hash, again.hash)
	}
}
