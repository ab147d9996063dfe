package scheduler

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
)

func TestB40LongRunIsNotStartedElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(18 * time.Second)}
		short := func(cfg *Config) { cfg.Lease = time.Second }
		r1 := c.start("r1", short, job)
		c.start("r2", short, job)
		time.Sleep(15 * time.Second)
		if err := r1.Resign(t.Context()); err != nil { // the run goes on, on r1's session
			t.Fatal(err)
		}
		time.Sleep(14 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:20 overlap", "00:00:10#1 schedule succeeded"})
	})
}

func TestB41StopWithALongJob(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "0 */5 * * * *", Do: takes(10*time.Minute - time.Second)}
		r1 := c.start("r1", func(cfg *Config) { cfg.Grace = 15 * time.Minute }, job)
		r2 := c.start("r2", nil, job)
		time.Sleep(5*time.Minute + time.Second)
		r1.cancel()
		time.Sleep(100 * time.Millisecond)
		if !r2.leads() {
			t.Error("r2 does not lead")
		}
		time.Sleep(9*time.Minute + 57*time.Second)
		select {
		case <-r1.done:
			t.Error("r1 has returned before its job has ended")
		default:
		}
		r1.stop()
		time.Sleep(500 * time.Millisecond)
		equal(t, "starts", c.started("a"), []string{"r1 00:05:00#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:10:00 overlap", "00:05:00#1 schedule succeeded"})
		for _, e := range c.entries("a") {
			took := e.Ended.Sub(e.Started)
			if e.Outcome == Succeeded && (e.Replica != c.executions("a")[0].run.Replica || took != 10*time.Minute-time.Second) {
				t.Errorf("%+v", e)
			}
		}
	})
}

func TestS5StoppingHandsOverAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		long, short := Job{Name: "long", Spec: "* * * * * *", Do: takes(3900 * time.Millisecond)}, Job{Name: "short", Spec: "* * * * * *"}
		r1 := c.start("r1", nil, long, short)
		c.start("r2", nil, long, short)
		time.Sleep(2500 * time.Millisecond)
		r1.cancel()
		time.Sleep(time.Millisecond)
		if l, err := c.store.Leader(t.Context(), "g"); err != nil || !strings.HasPrefix(l.Replica, "r2") {
			t.Errorf("a millisecond later %v leads, %v", l, err)
		}
		r1.stop()
		if at := time.Since(day2000()); at != 4900*time.Millisecond {
			t.Errorf("r1 has returned after %v", at)
		}
		time.Sleep(50 * time.Millisecond)
		equal(t, "short jobs", c.started("short"), []string{
			"r1 00:00:01#1 schedule", "r1 00:00:02#1 schedule", "r2 00:00:03#1 schedule", "r2 00:00:04#1 schedule",
		})
		equal(t, "long jobs", c.started("long"), []string{"r1 00:00:01#1 schedule"})
		equal(t, "history", c.history("long"), []string{"00:00:02-00:00:04 ×3 overlap", "00:00:01#1 schedule succeeded"})
	})
}

// A claim that is on its way when its replica is told to stop is not started, and says so: the next leader runs the tick.
func TestS5StoppingStartsNothingMore(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/10 * * * * *"}
		r1 := c.start("r1", nil, job)
		c.start("r2", nil, job)
		c.script.follow(func(call call) fate {
			if call.replica == "r1" && call.claims("a") {
				return fate{reply: 300 * time.Millisecond}
			}
			return fate{}
		})
		time.Sleep(10*time.Second + 100*time.Millisecond)
		r1.stop()
		time.Sleep(time.Second)
		equal(t, "starts", c.started("a"), []string{"r2 00:00:10#2 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule not started", "00:00:10#2 schedule succeeded"})
	})
}

func TestB42KilledLeader(t *testing.T) {
	for _, tt := range []struct {
		policy  Interrupt
		starts  []string
		history []string
	}{
		{InterruptRecord, []string{"r1 00:00:10#1 schedule"}, []string{"00:00:10#1 schedule interrupted"}},
		{InterruptRerun, []string{"r1 00:00:10#1 schedule", "r2 00:00:10#2 rerun"},
			[]string{"00:00:10#1 schedule interrupted", "00:00:10#2 rerun succeeded"}},
	} {
		inBubble(t, func(t *testing.T, c *cluster) {
			job := Job{Name: "a", Spec: "*/10 * * * * *", OnInterrupt: tt.policy, Do: takes(2 * time.Second)}
			r1 := c.start("r1", nil, job)
			c.start("r2", nil, job)
			time.Sleep(11 * time.Second)
			r1.kill()
			time.Sleep(8 * time.Second)
			equal(t, "starts", c.started("a"), tt.starts)
			equal(t, "history", c.history("a"), tt.history)
			runs := c.executions("a")
			if first, last := runs[0].run, runs[len(runs)-1].run; first.ID() != last.ID() || !first.Tick.Equal(last.Tick) {
				t.Errorf("%v and %v", first, last)
			}
		})
	}
}

func TestB43FiveTerms(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll}
		r1 := c.start("r1", nil, job)
		for range 5 {
			time.Sleep(3300 * time.Millisecond)
			if err := r1.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(1500 * time.Millisecond)
		}
		time.Sleep(300 * time.Millisecond)
		var got []string
		for _, e := range c.entries("a") {
			got = append(got, e.Tick.Format("15:04:05#1 ")+string(e.Outcome))
		}
		equal(t, "history", got, every(1, 1, len(got), "succeeded"))
		if len(got) < 20 || len(c.executions("a")) != len(got) {
			t.Errorf("%d runs, %d entries", len(c.executions("a")), len(got))
		}
		if jobs := c.records(bucketJob); len(jobs) != 1 {
			t.Errorf("%d jobs", len(jobs))
		}
	})
}

func TestB48JobThatKillsItsProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		deaths := 0
		for _, name := range []string{"r1", "r2", "r3", "r4", "r5"} {
			var r *replica
			r = c.start(name, nil, Job{Name: "a", Spec: "0 * * * * *", OnInterrupt: InterruptRerun, Do: func(context.Context, Run) error {
				deaths++
				r.kill()
				return errGone
			}})
		}
		time.Sleep(110 * time.Second)
		if deaths != 3 {
			t.Errorf("%d replicas were killed", deaths)
		}
		equal(t, "history", c.history("a"), []string{
			"00:01:00#1 schedule interrupted", "00:01:00#2 rerun interrupted", "00:01:00#3 rerun interrupted",
		})
		if got := c.entries("a")[2].Detail; !strings.Contains(got, "not run again: its third interruption") {
			t.Errorf("the last entry says %q", got)
		}
	})
}

func TestB49LateCommitChangesNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *"})
		held := false
		c.script.follow(func(call call) fate {
			if call.claims("a") && !held {
				held = true
				return fate{request: 25 * time.Second} // it is asked again elsewhere meanwhile
			}
			return fate{}
		})
		time.Sleep(34 * time.Second)
		before := c.records(bucketJob)["a"]
		time.Sleep(2 * time.Second) // the held bytes arrive
		if after := c.records(bucketJob)["a"]; after != before || len(c.records(bucketRun)) != 0 {
			t.Errorf("the job was %s, is %s, open runs %v", before, after, c.records(bucketRun))
		}
		time.Sleep(5 * time.Second)
		equal(t, "history", c.history("a"), every(10, 10, 4, "schedule succeeded"))
	})
}

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
				time.Sleep(11 * time.Second)
				c.script.follow(func(call call) fate { return fate{lost: call.replica == "r1"} })
				time.Sleep(10 * time.Second)
				c.script.follow(nil)
				time.Sleep(6 * time.Second) // r1 tells what it has done
				if got := c.entries("a")[0]; !strings.HasPrefix(got.Note, "ended late: succeeded at 2000-01-01T00:00:25Z") {
					t.Errorf("the late end is not noted: %+v", got)
				}
				second := c.leader(t)
				if tt.kill {
					second.kill()
				}
				time.Sleep(40 * time.Second)
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
				time.Sleep(11 * time.Second)
				r1.stop()
				time.Sleep(5 * time.Second)
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
		time.Sleep(11 * time.Second)
		r1.stop()
		time.Sleep(10 * time.Second)
		c.start("r2", nil, job)
		time.Sleep(5 * time.Second)
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
				RunID: runID("a", tick), Job: "a", Tick: tick, Attempt: 1, Reason: ReasonSchedule, Token: 7, Number: uint64(n),
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
		time.Sleep(time.Second)
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

// takeLease ends the term of a replica behind its back, as a foreign hand in the store would.
func (c *cluster) takeLease(t *testing.T, r *replica) {
	t.Helper()
	if err := c.store.Release(t.Context(), r.elector.Term().Lease()); err != nil {
		t.Fatal(err)
	}
}

func TestB52ClaimWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/10 * * * * *"}
		r1 := c.start("r1", nil, job)
		c.start("r2", nil, job)
		c.script.follow(func(call call) fate { return fate{mute: call.replica == "r1" && call.claims("a")} })
		time.Sleep(10*time.Second + 100*time.Millisecond)
		c.takeLease(t, r1)
		time.Sleep(6 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r2 00:00:10#2 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule not started", "00:00:10#2 schedule succeeded"})
	})
}

// The claim is applied only after its term has ended, and after its replica has looked for it in vain.
func TestB52ClaimThatComesLate(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		lease := func(cfg *Config) { cfg.Lease = 15 * time.Second }
		job := Job{Name: "a", Spec: "10 0 * * * *"}
		c.start("r1", lease, job)
		c.start("r2", lease, job)
		claims := 0
		c.script.follow(func(call call) fate {
			switch {
			case call.replica != "r1":
			case call.op == "commit": // the first arrives when r1 has given up its term for standing still
				claims++
				return fate{request: 134 * time.Second, lost: claims > 1, mute: true}
			case call.op == "release":
				return fate{lost: true}
			case call.op == "acquire": // r2 is to lead next
				return fate{request: time.Second}
			}
			return fate{}
		})
		time.Sleep(143 * time.Second)
		if len(c.records(bucketRun)) > 0 {
			t.Fatal("the claim has come too early for this test")
		}
		time.Sleep(2 * time.Second)
		if len(c.records(bucketRun)) == 0 {
			t.Fatal("the claim has not come")
		}
		time.Sleep(25 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r2 00:00:10#2 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule not started", "00:00:10#2 schedule succeeded"})
	})
}

// The replica leads again before it has compared its runs with the ledger's.
func TestB52ClaimWithoutAnAnswerIsFoundByItsReplica(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *"})
		c.script.follow(func(call call) fate { return fate{mute: call.claims("a"), lost: call.op == "leader"} })
		time.Sleep(10*time.Second + 100*time.Millisecond)
		c.takeLease(t, r1)
		time.Sleep(time.Second)
		c.script.follow(func(call call) fate { return fate{lost: call.op == "leader"} })
		time.Sleep(5 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#2 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule not started", "00:00:10#2 schedule succeeded"})
	})
}

// A claim whose answer is still to come is not "never started": here it is read by a look that began before the term.
func TestB52ClaimThatIsOnItsWay(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *"})
		time.Sleep(8900 * time.Millisecond)
		looked := false
		c.script.follow(func(call call) fate {
			switch {
			case call.op == "read" && call.about == bucketRun && !looked: // it comes to the store at 10.3 s
				looked = true
				return fate{request: 1400 * time.Millisecond}
			case call.claims("a"):
				return fate{reply: 400 * time.Millisecond}
			}
			return fate{}
		})
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if at := c.executions("a")[0].at.Sub(day2000()); at < 10300*time.Millisecond || at > 10600*time.Millisecond {
			t.Errorf("the claim was answered after %v, which is not what this test is about", at)
		}
		equal(t, "history", c.history("a"), []string{"00:00:10#1 catch-up succeeded"})
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 catch-up"})
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
		time.Sleep(11 * time.Second)
		r1.stop()
		time.Sleep(3 * time.Second)
		before := c.entries("a")
		time.Sleep(4 * time.Second)
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
		time.Sleep(5100 * time.Millisecond)
		r1.stop()
		time.Sleep(5300 * time.Millisecond)
		equal(t, "history", c.history("a"), []string{"00:00:09#1 schedule succeeded", "00:00:10#1 schedule succeeded"})
	})
}

// The store has taken an end and lost it, and still has the run: its replica tells it again.
func TestEndsAreToldAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(2 * time.Second)}
		r1 := c.start("r1", nil, job)
		c.start("r2", nil, job)
		time.Sleep(11 * time.Second)
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
		time.Sleep(4 * time.Second)
		if n := posts.Load(); n != 2 {
			t.Errorf("%d posts, want one that is lost and one more", n)
		}
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule succeeded"})
	})
}

// The runner refuses what a loop that was left behind claims, since its replica may have said that it never started it,
// and what was claimed for a session that is over.
func TestRunnerRefuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before func(c *cluster, r *replica)
	}{
		{"claims of closed terms", func(_ *cluster, r *replica) { r.runner.close(1 << 52) }},
		{"sessions that are over", func(c *cluster, _ *replica) {
			c.script.follow(func(call) fate { return fate{lost: true} })
			time.Sleep(5 * time.Second)
		}},
		{"claims of a replica that stops", func(_ *cluster, r *replica) { r.runner.halt() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				r := c.start("r1", nil)
				rec := runRecord{Job: "a", Tick: day2000().Unix(), Attempt: 1, Token: 1 << 52, Number: 1, Replica: r.ID()}
				def := defined(t, Job{Name: "a", Spec: "@daily"})
				def.Do = func(context.Context, Run) error { t.Error("it was started"); return nil }
				session, release, err := r.elector.Hold()
				if err != nil {
					t.Fatal(err)
				}
				tt.before(c, r)
				r.runner.start(def, rec, session, release)
				if reports := r.runner.reports(); len(reports) != 1 || reports[0].entry.Outcome != NotStarted {
					t.Errorf("%d reports", len(reports))
				}
				c.script.follow(nil)
			})
		})
	}
}

func TestB55SessionOutlivesALongSleep(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(45 * time.Second)}
		r1 := c.start("r1", func(cfg *Config) { cfg.Lease = 5 * time.Second }, job)
		c.start("r2", func(cfg *Config) { cfg.Lease = 30 * time.Second }, job)
		time.Sleep(11 * time.Second)
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(48 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:20-00:00:50 ×4 overlap", "00:00:10#1 schedule succeeded"})
	})
}

func TestS1StartsFollowTheirClaims(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", func(cfg *Config) { cfg.Lease = 15 * time.Second }, Job{Name: "a", Spec: "*/10 * * * * *"})
		c.script.follow(func(call call) fate {
			if call.claims("a") && time.Since(day2000()) < 12*time.Second {
				return fate{lost: true}
			}
			return fate{}
		})
		time.Sleep(11900 * time.Millisecond)
		equal(t, "starts", c.started("a"), nil)
		time.Sleep(2 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		if at := c.executions("a")[0].at.Sub(day2000()); at < 12*time.Second {
			t.Errorf("it started after %v, before its claim was in the store", at)
		}
	})
}

// A leader that was paused past its lease cannot claim, and what it claimed in vain does not start.
func TestS1OnlyTheHolderClaims(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/10 * * * * *"}
		c.start("r1", nil, job)
		c.start("r2", nil, job)
		time.Sleep(9 * time.Second)
		c.script.follow(func(call call) fate {
			if call.replica != "r1" {
				return fate{}
			}
			if call.op == "commit" {
				return fate{request: 8 * time.Second} // sent in time, and arriving when r2 leads
			}
			return fate{lost: true}
		})
		time.Sleep(9 * time.Second)
		c.script.follow(nil)
		time.Sleep(4 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r2 00:00:10#1 catch-up", "r2 00:00:20#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 catch-up succeeded", "00:00:20#1 schedule succeeded"})
	})
}

func TestS3RerunsAreBounded(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		// Its replica stops each time, so that each attempt is interrupted.
		job := Job{Name: "a", Spec: "0 1 * * * *", OnInterrupt: InterruptRerun, Do: takes(time.Hour)}
		grace := func(cfg *Config) { cfg.Grace = 5 * time.Millisecond }
		for _, name := range []string{"r1", "r2", "r3", "r4"} {
			c.start(name, grace, job)
		}
		time.Sleep(61 * time.Second)
		for range 3 {
			for _, r := range c.replicas {
				if r.leads() {
					r.stop()
					break
				}
			}
			time.Sleep(10 * time.Second)
		}
		runs := c.executions("a")
		if len(runs) != 3 {
			t.Fatalf("%d attempts were started", len(runs))
		}
		if got := runs[1].at.Sub(runs[0].over).Round(10 * time.Millisecond); got != time.Second {
			t.Errorf("the second attempt came %v after the first interruption", got)
		}
		if got := runs[2].at.Sub(runs[1].over).Round(10 * time.Millisecond); got != 2*time.Second {
			t.Errorf("the third attempt came %v after the second interruption", got)
		}
		equal(t, "history", c.history("a"), []string{
			"00:01:00#1 schedule interrupted", "00:01:00#2 rerun interrupted", "00:01:00#3 rerun interrupted",
		})
	})
}

func TestS3NoRerunOutsideTheWindow(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/30 * * * * *", OnInterrupt: InterruptRerun, Window: 3500 * time.Millisecond, Do: takes(time.Minute)}
		r1 := c.start("r1", nil, job)
		c.start("r2", nil, job)
		time.Sleep(30*time.Second + 100*time.Millisecond)
		r1.kill()
		time.Sleep(10 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:30#1 schedule"})
		e := c.entries("a")[0]
		if e.Outcome != Interrupted || !strings.Contains(e.Detail+e.Note, "not run again: older than the window") {
			t.Errorf("%+v", e)
		}
	})
}

func TestS4RunsKnowWhatTheyAre(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *", Do: takes(time.Minute)})
		time.Sleep(12 * time.Second)
		token := r1.elector.Term().Token()
		run := c.executions("a")[0].run
		if run.Job != "a" || !run.Tick.Equal(day2000().Add(10*time.Second)) || run.Attempt != 1 || run.Reason != ReasonSchedule ||
			run.Token != token || run.Replica != r1.ID() || run.ID() != "a@2000-01-01T00:00:10Z" || !run.Valid() {
			t.Errorf("%+v, valid %v", run, run.Valid())
		}
		if (Run{}).Valid() {
			t.Error("a run of nobody is valid")
		}
	})
}

func TestS4ContextEndsBeforeTheSession(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var ended, aliveThen bool
		var cause error
		job := Job{Name: "a", Spec: "*/10 * * * * *", Do: func(ctx context.Context, run Run) error {
			<-ctx.Done()
			replicas, err := c.store.Replicas(context.Background(), "g")
			ended, cause, aliveThen = true, context.Cause(ctx), err == nil && len(replicas) > 0 && replicas[0].ID == run.Replica
			if run.Valid() {
				t.Error("a run whose context has ended with its session is valid")
			}
			return cause
		}}
		c.start("r1", nil, job)
		time.Sleep(11 * time.Second)
		c.script.follow(func(call) fate { return fate{lost: true} })
		time.Sleep(4 * time.Second)
		c.script.follow(nil)
		if !ended || !aliveThen || !errors.Is(cause, election.ErrExpired) {
			t.Errorf("ended %v with %v, session alive then %v", ended, cause, aliveThen)
		}
		time.Sleep(2 * time.Second)
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule interrupted"})
	})
}

// A loop that stands still ends the term, however well the lease is renewed.
func TestS7StandstillEndsTheTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/10 * * * * *"}
		r1 := c.start("r1", nil, job)
		r2 := c.start("r2", nil, job)
		time.Sleep(15 * time.Second)
		if !r1.leads() || r1.Check() != nil {
			t.Fatal("r1 does not lead", r1.Check())
		}
		// Reads of the ledger hang, renewals do not: a lookAround every minute is enough to stand still.
		c.script.follow(func(call call) fate {
			return fate{lost: call.replica == "r1" && call.op != "renew" && call.op != "release"}
		})
		time.Sleep(4 * time.Minute)
		if r1.leads() || !r2.leads() {
			t.Errorf("r1 leads: %v, r2 leads: %v", r1.leads(), r2.leads())
		}
		c.script.follow(nil)
		if !strings.Contains(c.log(), "scheduling loop stands still") {
			t.Error("nothing is said of the standstill")
		}
		time.Sleep(10 * time.Second)
		if got := c.started("a"); !strings.HasPrefix(got[len(got)-1], "r2 ") {
			t.Errorf("%v", got)
		}
	})
}
