package redlock

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestE5AFollowerLeadsThoughTooFewNodesKnowItsSession lets two of five servers come back empty, and two others go for good, with
// the leader, before any follower has asked again: of the three that answer, one knows the followers.
func TestE5AFollowerLeadsThoughTooFewNodesKnowItsSession(t *testing.T) {
	for seed := range uint64(4) {
		synctest.Test(t, func(t *testing.T) {
			s := newSimScene(t, seed+1, simPlan{nodes: 5, clients: 3, ttl: 6 * time.Second, commits: 20, quiet: 1, page: 4, real: true}, false)
			for range s.plan.clients {
				s.begin()
			}
			pass := func(d time.Duration) { s.bus.run(time.Now().Add(d), s.broken) }
			pass(20 * time.Second)
			for _, n := range s.nodes[:2] {
				s.restart(n, "restart empty", 9*time.Second)
			}
			pass(9*time.Second + 50*time.Millisecond)
			for _, n := range s.nodes[3:] {
				n.down = true
				n.fall()
			}
			for _, c := range s.all {
				if term := c.replica.term.Load(); term != nil && term.Valid() {
					c.dead = true
					s.stop(c)
				}
			}
			if len(s.clients) != 2 {
				t.Fatalf("seed %d: %d clients are left, want the two that follow", seed, len(s.clients))
			}
			grants := s.judge.grants
			s.bus.run(time.Now().Add(2*time.Minute), func() bool { return s.broken() || s.judge.grants > grants })
			if s.judge.grants == grants {
				t.Errorf("seed %d: nobody has led for two minutes, and three of five servers answer", seed)
			}
			s.end()
			for _, f := range s.failures {
				t.Errorf("seed %d: %s", seed, f)
			}
		})
	}
}
