package wirefaults

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

var (
	first = flag.Uint64("wire.first", 1, "first seed")
	seeds = flag.Uint64("wire.seeds", 20, "how many seeds")
	long  = flag.Duration("wire.for", time.Minute, "virtual time under faults of each seed")
	logs  = flag.Bool("wire.log", false, "print the logs of all seeds")
)

func TestMain(m *testing.M) {
	redis.SetLogger(silent{})
	goleak.VerifyTestMain(m)
}

// silent is a logger for what the client says of its connections; the store logs what matters.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

// TestPromisesHoldOverConnectionsThatBreak is the whole of it, for each seed.
func TestPromisesHoldOverConnectionsThatBreak(t *testing.T) {
	var (
		mu     sync.Mutex
		counts = make(map[string]int)
	)
	t.Run("seeds", func(t *testing.T) {
		for seed := *first; seed < *first+*seeds; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				var s *scene
				synctest.Test(t, func(t *testing.T) {
					s = newScene(t, seed)
					s.play(*long)
				})
				s.report(t)
				mu.Lock()
				defer mu.Unlock()
				for what, n := range s.counts {
					counts[what] += n
				}
				counts["term"] += len(s.terms)
				counts["start"] += len(s.started)
			})
		}
	})
	t.Log(tally(counts))
	if t.Failed() || *seeds < 10 {
		return
	}
	minutes := int(*seeds) * int(*long/time.Minute)
	if counts["term"] < 3*minutes || counts["start"] < 80*minutes {
		t.Errorf("%d terms and %d starts in %d minutes prove little", counts["term"], counts["start"], minutes)
	}
	for _, what := range slices.Concat(kinds, deeds, []string{"wipe", "hand over", "dial hangs", "dial refused"}) {
		if counts[what] == 0 {
			t.Errorf("no %q: this proves little", what)
		}
	}
}

// report fails the seed's test when the scene has failed.
func (s *scene) report(t *testing.T) {
	for _, f := range s.failures {
		t.Error(f)
	}
	if *logs {
		t.Log("\n" + s.logs.String())
	}
	t.Logf("%d looks, %d terms, %d starts, %v without a leader; %s", s.looks, len(s.terms), len(s.started), s.gap, tally(s.counts))
	if len(s.failures) > 0 {
		t.Logf("go test ./internal/wirefaults -wire.first %d -wire.seeds 1 -wire.for %v -wire.log", s.seed, *long)
	}
}

func tally(counts map[string]int) string {
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", what, counts[what]))
	}
	return strings.Join(parts, ", ")
}
