package scheduler

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

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
		pass(34 * time.Second)
		before := c.records(bucketJob)["a"]
		pass(2 * time.Second) // the held bytes arrive
		if after := c.records(bucketJob)["a"]; after != before || len(c.records(bucketRun)) != 0 {
			t.Errorf("the job was %s, is %s, open runs %v", before, after, c.records(bucketRun))
		}
		pass(5 * time.Second)
		equal(t, "history", c.history("a"), every(10, 10, 4, "schedule succeeded"))
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
		pass(10*time.Second + 100*time.Millisecond)
		c.takeLease(t, r1)
		pass(6 * time.Second)
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
		pass(143 * time.Second)
		if len(c.records(bucketRun)) > 0 {
			t.Fatal("the claim has come too early for this test")
		}
		pass(2 * time.Second)
		if len(c.records(bucketRun)) == 0 {
			t.Fatal("the claim has not come")
		}
		pass(25 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r2 00:00:10#2 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule not started", "00:00:10#2 schedule succeeded"})
	})
}

// The replica leads again before it has compared its runs with the ledger's.
func TestB52ClaimWithoutAnAnswerIsFoundByItsReplica(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *"})
		c.script.follow(func(call call) fate { return fate{mute: call.claims("a"), lost: call.op == "leader"} })
		pass(10*time.Second + 100*time.Millisecond)
		c.takeLease(t, r1)
		pass(time.Second)
		c.script.follow(func(call call) fate { return fate{lost: call.op == "leader"} })
		pass(5 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#2 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule not started", "00:00:10#2 schedule succeeded"})
	})
}

// A claim whose answer is still to come is not "never started": here it is read by a look that began before the term.
func TestB52ClaimThatIsOnItsWay(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *"})
		pass(9 * time.Second) // the cool-down after it takes 1 to 1.25 s
		looked := false
		c.script.follow(func(call call) fate {
			switch {
			case call.op == "read" && call.about == bucketRun && !looked: // it comes to the store at 10.4 s
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
		pass(5 * time.Second)
		if at := c.executions("a")[0].at.Sub(day2000()); at < 10400*time.Millisecond || at > 10700*time.Millisecond {
			t.Errorf("the claim was answered after %v, which is not what this test is about", at)
		}
		equal(t, "history", c.history("a"), []string{"00:00:10#1 catch-up succeeded"})
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 catch-up"})
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
			pass(5 * time.Second)
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
				r.runner.mu.Lock()
				told := append(slices.Collect(maps.Values(r.runner.ended)), r.runner.past...) // the leader may have it already
				r.runner.mu.Unlock()
				if len(told) != 1 || told[0].entry.Outcome != NotStarted {
					t.Errorf("%d reports", len(told))
				}
				c.script.follow(nil)
			})
		})
	}
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
		pass(11900 * time.Millisecond)
		equal(t, "starts", c.started("a"), nil)
		pass(2 * time.Second)
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
		pass(9 * time.Second)
		c.script.follow(func(call call) fate {
			if call.replica != "r1" {
				return fate{}
			}
			if call.op == "commit" {
				return fate{request: 8 * time.Second} // sent in time, and arriving when r2 leads
			}
			return fate{lost: true}
		})
		pass(9 * time.Second)
		c.script.follow(nil)
		pass(4 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r2 00:00:10#1 catch-up", "r2 00:00:20#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 catch-up succeeded", "00:00:20#1 schedule succeeded"})
	})
}

// Two rows of skipped ticks with claimed ticks between them, which have not ended, stay two rows.
func TestS2RowsDoNotGoOnOverClaimedTicks(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "* * * * * *", Overlap: OverlapAllow, CatchUp: CatchUpAll, CatchUpMax: 1, Do: takes(time.Minute)})
		pass(5500 * time.Millisecond)
		for range 2 { // a claim waits for three seconds, and the ticks behind it are too many
			c.script.follow(func(call call) fate { return fate{lost: call.op == "commit"} })
			pass(3 * time.Second)
			c.script.follow(nil)
			pass(time.Second)
		}
		if rows := c.history("a"); len(rows) != 2 || !strings.HasSuffix(rows[0], "cap") || !strings.HasSuffix(rows[1], "cap") {
			t.Errorf("rows %v", rows)
		}
	})
}
