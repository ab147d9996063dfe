package redlock

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestB20SplitVotesDoNotWaitForASilentNode has three candidates ask five servers at once, one of which is gone and one hangs:
// the three that answer rarely agree at first. Whoever has got too few votes must not keep them until the silent one answers.
func TestB20SplitVotesDoNotWaitForASilentNode(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			s := newSimScene(t, seed+1, simPlan{nodes: 5, clients: 3, ttl: 15 * time.Second, commits: 20, quiet: 1, page: 4, real: true}, false)
			s.nodes[0].down = true
			s.nodes[1].hung = time.Now().Add(time.Hour)
			for range s.plan.clients {
				s.begin()
			}
			began := time.Now()
			s.bus.run(began.Add(time.Minute), func() bool { return s.broken() || s.judge.grants > 0 })
			if took := time.Since(began); took > time.Second/2 {
				t.Errorf("seed %d: nobody leads for %v", seed, took)
			}
			s.nodes[1].hung = time.Time{}
			s.end()
			for _, f := range s.failures {
				t.Errorf("seed %d: %s", seed, f)
			}
		})
	}
}
