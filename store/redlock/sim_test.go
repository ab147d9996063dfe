package redlock

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var (
	simFirst   = flag.Uint64("sim.first", 1, "first seed of a simulation")
	simSeeds   = flag.Uint64("sim.seeds", 0, "how many seeds a simulation takes; 0: as many as are its own")
	simGrants  = flag.Int("sim.grants", 3_000, "how many grants TestE3TokensGrowOverManyGrants sees")
	simTraceTo = flag.String("sim.trace", "", "write all that happens in the first seed to this file")
	simFor     = flag.Duration("sim.for", 0, "virtual time of a seed; 0: as long as is its own")
	simLog     = flag.Bool("sim.log", false, "print all that happens in a seed that fails, also what is routine")
)

// simOutcome is what one seed has shown.
type simOutcome struct {
	seed     uint64
	hash     uint64
	steps    int
	grants   int
	commits  int
	handled  int
	faults   map[string]int
	failures []string
	text     string
}

// simPlay runs one seed: faults, then none, until all has come right.
func simPlay(t *testing.T, seed uint64, plan simPlan, long time.Duration, keep bool) (o simOutcome) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := newSimScene(t, seed, plan, keep)
		for range plan.clients {
			s.begin()
		}
		s.bus.after(s.bus.between(0, plan.pace), s.nemesis)
		s.bus.run(time.Now().Add(long), func() bool { return s.broken() || plan.grants > 0 && s.judge.grants >= plan.grants })
		if !s.broken() {
			s.recover()
		}
		s.end()
		o = simOutcome{
			seed: seed, hash: s.trace.hash, steps: s.bus.steps, grants: s.judge.grants, commits: s.judge.commits, handled: s.judge.handled,
			faults: s.faults, failures: s.failures,
		}
		if keep {
			o.text = s.trace.tail(400, *simLog)
		}
		if keep && *simTraceTo != "" {
			if err := os.WriteFile(*simTraceTo, []byte(s.trace.tail(1<<40, true)), 0o600); err != nil {
				t.Error(err)
			}
		}
	})
	return o
}

// recover ends all faults and judges that all comes right: somebody leads again and again, and all messages are handled.
func (s *simScene) recover() {
	s.heal()
	grants, commits := s.judge.grants, s.judge.commits
	settle := time.Minute + 20*s.plan.ttl
	s.bus.run(time.Now().Add(settle), s.broken)
	if s.broken() {
		return
	}
	if s.judge.grants-grants < 3 && !s.plan.real {
		s.fail("%d grants in %v after all faults", s.judge.grants-grants, settle)
	}
	if s.plan.commits > 0 && !s.plan.real && s.judge.commits-commits < 3 {
		s.fail("%d commits in %v after all faults", s.judge.commits-commits, settle)
	}
	s.judge.answered(settle / 2)
	if s.plan.real {
		s.reckon(time.Now().Add(-settle / 2))
	}
}

// simSeedsOf plays seeds on all processors, and fails for the first that does.
func simSeedsOf(t *testing.T, plan func(seed uint64) simPlan, own uint64, long time.Duration) {
	t.Helper()
	began, count := time.Now(), own
	if *simFor > 0 {
		long = *simFor
	}
	if *simSeeds > 0 {
		count = *simSeeds
	}
	var (
		mu   sync.Mutex
		next = *simFirst
		bad  bool
		done []simOutcome
	)
	take := func() (uint64, bool) {
		mu.Lock()
		defer mu.Unlock()
		if bad || next >= *simFirst+count {
			return 0, false
		}
		next++
		return next - 1, true
	}
	t.Run("seeds", func(t *testing.T) {
		for w := range runtime.GOMAXPROCS(0) {
			t.Run(fmt.Sprint(w), func(t *testing.T) {
				t.Parallel()
				for seed, ok := take(); ok; seed, ok = take() {
					o := simPlay(t, seed, plan(seed), long, *simTraceTo != "" && seed == *simFirst)
					mu.Lock()
					done = append(done, o)
					bad = bad || len(o.failures) > 0
					mu.Unlock()
				}
			})
		}
	})
	slices.SortFunc(done, func(a, b simOutcome) int { return int(a.seed) - int(b.seed) })
	var all simOutcome
	all.faults, all.hash = make(map[string]int), 14695981039346656037
	for _, o := range done {
		all.steps, all.grants, all.commits, all.handled = all.steps+o.steps, all.grants+o.grants, all.commits+o.commits, all.handled+o.handled
		for f, n := range o.faults {
			all.faults[f] += n
		}
		all.hash = (all.hash ^ o.hash) * 1099511628211
		if len(o.failures) > 0 {
			again := simPlay(t, o.seed, plan(o.seed), long, true)
			_, _ = os.Stderr.WriteString(again.text)
			t.Errorf("seed %d (again with -sim.first %d -sim.seeds 1):\n%s", o.seed, o.seed, strings.Join(o.failures, "\n"))
			if again.hash != o.hash {
				t.Errorf("seed %d is another story when it is played again", o.seed)
			}
		}
	}
	t.Logf("%d seeds of %v: %d grants, %d commits, %d messages, %d steps, hash %016x, in %.1f s", len(done), long, all.grants, all.commits,
		all.handled, all.steps, all.hash, time.Since(began).Seconds())
	for _, f := range slices.Sorted(maps.Keys(all.faults)) {
		t.Logf("%6d %s", all.faults[f], f)
	}
}
