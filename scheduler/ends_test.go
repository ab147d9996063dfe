package scheduler

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

func TestB50PausedReplicaEndsLate(t *testing.T) {
	for _, tt := range []struct {
		name    string
		rerun   time.Duration // how long the rerun takes
		kill    bool          // the rerun's replica is killed after the late end
		history []string
	}{
		{"the rerun succeeds", 20 * time.Second, false, []string{
			"00:00:10#1 schedule interrupted", "00:00:10#2 rerun succeeded",
		}},
		{"the rerun is interrupted", 20 * time.Second, true, []string{
			"00:00:10#1 schedule interrupted", "00:00:10#2 rerun interrupted",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				job := func(do Func) Job {
					return Job{Name: "a", Spec: "0,10 0 * * * *", OnInterrupt: InterruptRerun, Do: do}
				}
				// r1 is paused, and its job does not see its context end.
				c.start("r1", nil, job(func(context.Context, Run) error { time.Sleep(15 * time.Second); return nil }))
				c.start("r2", nil, job(takes(tt.rerun)))
				c.start("r3", nil, job(takes(tt.rerun)))
				pass(11 * time.Second)
				c.script.follow(func(call call) fate { return fate{lost: call.replica == "r1"} })
				pass(10 * time.Second)
				c.script.follow(nil)
				pass(6 * time.Second) // r1 tells what it has done
				if got := c.entries("a")[0]; !strings.HasPrefix(got.Note, "ended late: succeeded at 2000-01-01T00:00:25Z") {
					t.Errorf("the late end is not noted: %+v", got)
				}
				second := c.leader(t)
				if tt.kill {
					second.kill()
				}
				pass(40 * time.Second)
				equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule", second.name + " 00:00:10#2 rerun"})
				equal(t, "history", c.history("a"), tt.history)
			})
		})
	}
}

func TestB51LeaderLeavesBetweenTwoReads(t *testing.T) {
	for _, tt := range []struct {
		name string
		pair int32 // of reads of sessions and inbox, between which r1 ends its run and leaves
		long time.Duration
	}{{"taking over", 1, 2 * time.Second}, {"looking again", 2, 7 * time.Second}} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				lease := func(cfg *Config) { cfg.Lease = 15 * time.Second }
				job := Job{Name: "a", Spec: "10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(tt.long)}
				r1 := c.start("r1", lease, job)
				c.start("r2", lease, job)
				var reads atomic.Int32
				c.script.follow(func(call call) fate {
					if call.replica == "r2" && (call.op == "replicas" || call.op == "read" && call.about == store.InboxBucket) {
						if reads.Add(1) == 2*tt.pair {
							return fate{request: 1500 * time.Millisecond}
						}
					}
					return fate{}
				})
				pass(11 * time.Second)
				r1.stop()
				pass(5 * time.Second)
				if reads.Load() < 2*tt.pair {
					t.Errorf("%d reads, too few for this test", reads.Load())
				}
				equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
				equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule succeeded"})
			})
		})
	}
}

// An end that nobody has read yet counts, although its replica is long gone.
func TestS2EndsWaitForALeader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(3 * time.Second)}
		r1 := c.start("r1", nil, job)
		pass(11 * time.Second)
		r1.stop()
		pass(10 * time.Second)
		c.start("r2", nil, job)
		pass(5 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule succeeded"})
	})
}

// An end whose claim the ledger has never heard of goes to history.
func TestS2EndsOfUnknownClaims(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "0 * * * * *"})
		for n, outcome := range []Outcome{Failed, Failed, NotStarted, Succeeded} {
			tick := day2000().Add(time.Duration(n/2) * time.Second) // the first two tell the same
			e := Entry{
				RunID: runID("a", tick, ""), Job: "a", Tick: tick, Attempt: 1, Reason: ReasonSchedule, Token: 7, Number: uint64(n),
				Replica: "r0", Outcome: outcome,
			}
			if n == 1 {
				e.Number = 0
			}
			m := message{Version: formatVersion, Kind: kindEnd, End: &e}
			if err := c.store.Post(t.Context(), "g", string(rune('a'+n)), encode(m)); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.store.Post(t.Context(), "g", "z", []byte("garbage")); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		equal(t, "history", c.history("a"), []string{"00:00:00#1 schedule failed", "00:00:01#1 schedule succeeded"})
		for _, e := range c.entries("a") {
			if !strings.Contains(e.Note, "did not know this attempt") {
				t.Errorf("the note is %q", e.Note)
			}
		}
		if n := len(c.records(store.InboxBucket)); n != 0 {
			t.Errorf("%d messages are left", n)
		}
		if got := c.records(bucketSeen)["z"]; !strings.Contains(got, "refused: ") {
			t.Errorf("the answer to garbage is %s", got)
		}
	})
}

func TestB54DuplicateMessageChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/10 * * * * *", Do: takes(2 * time.Second)}
		r1 := c.start("r1", nil, job)
		c.start("r2", nil, job)
		var posts atomic.Int32
		c.script.follow(func(call call) fate {
			if call.op == "post" {
				posts.Add(1)
				return fate{again: 5 * time.Second} // slow, on an old socket
			}
			return fate{}
		})
		pass(11 * time.Second)
		r1.stop()
		pass(3 * time.Second)
		before := c.entries("a")
		pass(4 * time.Second)
		if posts.Load() != 1 || len(c.records(store.InboxBucket)) != 0 || len(c.records(bucketSeen)) != 1 {
			t.Errorf("%d posts, inbox %v, seen %v", posts.Load(), c.records(store.InboxBucket), c.records(bucketSeen))
		}
		equal(t, "entries", c.entries("a"), before)
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule succeeded"})
	})
}

// The duplicate comes when history does not show any more what it tells.
func TestB54DuplicateOfForgottenMessage(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "* * * * * *", Do: takes(300 * time.Millisecond)}
		short := func(cfg *Config) { cfg.History = 2 }
		r1 := c.start("r1", short, job)
		c.start("r2", short, job)
		c.script.follow(func(call call) fate {
			if call.op == "post" {
				return fate{again: 5 * time.Second}
			}
			return fate{}
		})
		pass(5100 * time.Millisecond)
		r1.stop()
		pass(5300 * time.Millisecond)
		equal(t, "history", c.history("a"), []string{"00:00:09#1 schedule succeeded", "00:00:10#1 schedule succeeded"})
	})
}

// The store has taken an end and lost it, and still has the run: its replica tells it again.
func TestEndsAreToldAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(2 * time.Second)}
		r1 := c.start("r1", nil, job)
		c.start("r2", nil, job)
		pass(11 * time.Second)
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		var posts atomic.Int32
		c.script.follow(func(call call) fate {
			if call.op == "post" && posts.Add(1) == 1 {
				return fate{swallow: true}
			}
			return fate{}
		})
		pass(4 * time.Second)
		if n := posts.Load(); n != 2 {
			t.Errorf("%d posts, want one that is lost and one more", n)
		}
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule succeeded"})
	})
}
