//go:build linux && long

package singleton_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/scheduler"
)

// TestE1AndE3AndE4AndB19OneLeadsWhateverAMinorityDoes breaks two of five nodes in all ways, while somebody leads, hands
// over, and dies. That nobody else believes to lead, and that tokens grow, is checked whenever a replica begins to.
func TestE1AndE3AndE4AndB19OneLeadsWhateverAMinorityDoes(t *testing.T) {
	t.Parallel()
	for i, pair := range harms {
		t.Run(fmt.Sprintf("one %s, one %s", pair[0].name, pair[1].name), func(t *testing.T) {
			t.Parallel()
			q := newQuorum(t, 5)
			running := map[*replica]bool{}
			for _, id := range []string{"a", "b", "c"} {
				running[q.start(q.open(), election.Config{ID: id, Lease: long}, untilEnd)] = true
			}
			leader := q.kept(q.next()) // by now all nodes know the lease: it was repaired where it was missing
			first, second := q.nodes.All[i%5], q.nodes.All[(i+2)%5]
			pair[0].do(t, pair[0].begin, first)
			pair[1].do(t, pair[1].begin, second)
			leader = q.kept(leader)
			for range 2 { // one hands over to another, and that one to the last
				leader = q.newest(leader)
				delete(running, leader.by)
				leader.by.end()
				leader = q.newest(leader)
				for !running[leader.by] || !leader.Valid() {
					leader = q.next()
				}
			}
			pair[0].do(t, pair[0].end, first)
			pair[1].do(t, pair[1].end, second)
			q.kept(leader)
		})
	}
}

// TestS1AndS2EachTickOnceWhileAMinorityBreaks has two of five nodes break between the ticks of an every-second job, and
// then, when these two have got all records again, another two.
func TestS1AndS2EachTickOnceWhileAMinorityBreaks(t *testing.T) {
	t.Parallel()
	for i, pair := range [][2]harm{{killed, emptied}, {ahead, hung}} {
		t.Run(fmt.Sprintf("one %s, one %s", pair[0].name, pair[1].name), func(t *testing.T) {
			t.Parallel()
			q := newQuorum(t, 5)
			s, lease := newShift(q.group), long/2 // a session lasts three, and that is waited for
			for _, id := range []string{"a", "b"} {
				s.work(q.open(), scheduler.Config{ID: id, Lease: lease},
					scheduler.Job{Name: "tick", Spec: everySecond, CatchUp: scheduler.CatchUpAll})
			}
			last := s.run("tick", time.Time{})
			for round := range 2 {
				first, second := q.nodes.All[(i+round)%5], q.nodes.All[(i+round+2)%5]
				pair[0].do(t, pair[0].begin, first)
				pair[1].do(t, pair[1].begin, second)
				last = s.run("tick", last.Tick.Add(2*time.Second))
				pair[0].do(t, pair[0].end, first)
				pair[1].do(t, pair[1].end, second)
				q.whole(3 * lease)
				last = s.run("tick", last.Tick.Add(2*time.Second))
			}
			s.accounted("tick", last.Tick)
			inOrder(t, s.ticks("tick"), false)
		})
	}
}
