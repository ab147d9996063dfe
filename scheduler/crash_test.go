package scheduler

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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
			pass(11 * time.Second)
			r1.kill()
			pass(8 * time.Second)
			equal(t, "starts", c.started("a"), tt.starts)
			equal(t, "history", c.history("a"), tt.history)
			runs := c.executions("a")
			if first, last := runs[0].run, runs[len(runs)-1].run; first.ID() != last.ID() || !first.Tick.Equal(last.Tick) {
				t.Errorf("%v and %v", first, last)
			}
		})
	}
}

// A leader that takes over while the session of a run still lives has to look for its end again and again.
func TestB42KilledReplicaThatLedBefore(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(4 * time.Second)}
		r1 := c.start("r1", nil, job)
		c.start("r2", nil, job)
		pass(11 * time.Second)
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(time.Second)
		r1.kill()
		pass(12 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule", "r2 00:00:10#2 rerun"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule interrupted", "00:00:10#2 rerun succeeded"})
	})
}

func TestB48JobThatKillsItsProcess(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var deaths atomic.Int32
		for _, name := range []string{"r1", "r2", "r3", "r4", "r5"} {
			var self atomic.Pointer[replica]
			r := c.start(name, nil, Job{Name: "a", Spec: "0 * * * * *", OnInterrupt: InterruptRerun, Do: func(context.Context, Run) error {
				deaths.Add(1)
				self.Load().kill()
				return errGone
			}})
			self.Store(r)
		}
		pass(110 * time.Second)
		if n := deaths.Load(); n != 3 {
			t.Errorf("%d replicas were killed", n)
		}
		equal(t, "history", c.history("a"), []string{
			"00:01:00#1 schedule interrupted", "00:01:00#2 rerun interrupted", "00:01:00#3 rerun interrupted",
		})
		if got := c.entries("a")[2].Detail; !strings.Contains(got, "not run again: its third interruption") {
			t.Errorf("the last entry says %q", got)
		}
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
		pass(61 * time.Second)
		for range 3 {
			for _, r := range c.replicas {
				if r.leads() {
					r.stop()
					break
				}
			}
			pass(10 * time.Second)
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
		pass(30*time.Second + 100*time.Millisecond)
		r1.kill()
		pass(10 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:30#1 schedule"})
		e := c.entries("a")[0]
		if e.Outcome != Interrupted || !strings.Contains(e.Detail+e.Note, "not run again: older than the window") {
			t.Errorf("%+v", e)
		}
	})
}

// A loop that stands still ends the term, however well the lease is renewed.
func TestS7StandstillEndsTheTerm(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/10 * * * * *"}
		r1 := c.start("r1", nil, job)
		r2 := c.start("r2", nil, job)
		pass(15 * time.Second)
		if !r1.leads() || r1.Check() != nil {
			t.Fatal("r1 does not lead", r1.Check())
		}
		// Reads of the ledger hang, renewals do not: a lookAround every minute is enough to stand still.
		c.script.follow(func(call call) fate {
			return fate{lost: call.replica == "r1" && call.op != "renew" && call.op != "release"}
		})
		pass(4 * time.Minute)
		if r1.leads() || !r2.leads() {
			t.Errorf("r1 leads: %v, r2 leads: %v", r1.leads(), r2.leads())
		}
		c.script.follow(nil)
		if !strings.Contains(c.log(), "scheduling loop stands still") {
			t.Error("nothing is said of the standstill")
		}
		pass(10 * time.Second)
		if got := c.started("a"); !strings.HasPrefix(got[len(got)-1], "r2 ") {
			t.Errorf("%v", got)
		}
	})
}
