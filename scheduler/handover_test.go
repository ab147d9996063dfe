package scheduler

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
)

func TestB40LongRunIsNotStartedElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(18 * time.Second)}
		short := func(cfg *Config) { cfg.Lease = time.Second }
		r1 := c.start("r1", short, job)
		c.start("r2", short, job)
		pass(15 * time.Second)
		if err := r1.Resign(t.Context()); err != nil { // the run goes on, on r1's session
			t.Fatal(err)
		}
		pass(14 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:20 overlap", "00:00:10#1 schedule succeeded"})
	})
}

func TestB41StopWithALongJob(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "0 */5 * * * *", Do: takes(10*time.Minute - time.Second)}
		r1 := c.start("r1", func(cfg *Config) { cfg.Grace = 15 * time.Minute }, job)
		r2 := c.start("r2", nil, job)
		pass(5*time.Minute + time.Second)
		r1.cancel()
		pass(100 * time.Millisecond)
		if !r2.leads() {
			t.Error("r2 does not lead")
		}
		pass(9*time.Minute + 57*time.Second)
		select {
		case <-r1.done:
			t.Error("r1 has returned before its job has ended")
		default:
		}
		r1.stop()
		pass(500 * time.Millisecond)
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
		pass(2500 * time.Millisecond)
		r1.cancel()
		pass(time.Millisecond)
		if l, err := c.store.Leader(t.Context(), "g"); err != nil || !strings.HasPrefix(l.Replica, "r2") {
			t.Errorf("a millisecond later %v leads, %v", l, err)
		}
		r1.stop()
		if at := time.Since(day2000()); at != 4900*time.Millisecond {
			t.Errorf("r1 has returned after %v", at)
		}
		pass(50 * time.Millisecond)
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
		pass(10*time.Second + 100*time.Millisecond)
		r1.stop()
		pass(time.Second)
		equal(t, "starts", c.started("a"), []string{"r2 00:00:10#2 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule not started", "00:00:10#2 schedule succeeded"})
	})
}

func TestB43FiveTerms(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll}
		r1 := c.start("r1", nil, job)
		for range 5 {
			pass(3300 * time.Millisecond)
			if err := r1.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(1500 * time.Millisecond)
		}
		pass(300 * time.Millisecond)
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

func TestB55SessionOutlivesALongSleep(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(45 * time.Second)}
		r1 := c.start("r1", func(cfg *Config) { cfg.Lease = 5 * time.Second }, job)
		c.start("r2", func(cfg *Config) { cfg.Lease = 30 * time.Second }, job)
		pass(11 * time.Second)
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(48 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:20-00:00:50 ×4 overlap", "00:00:10#1 schedule succeeded"})
	})
}

func TestS4RunsKnowWhatTheyAre(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *", Do: takes(time.Minute)})
		pass(12 * time.Second)
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
		type end struct {
			cause error
			alive bool // the session, in the store
		}
		ends := make(chan end, 1)
		job := Job{Name: "a", Spec: "*/10 * * * * *", Do: func(ctx context.Context, run Run) error {
			<-ctx.Done()
			replicas, err := c.store.Replicas(context.Background(), "g")
			ends <- end{context.Cause(ctx), err == nil && len(replicas) > 0 && replicas[0].ID == run.Replica}
			if run.Valid() {
				t.Error("a run whose context has ended with its session is valid")
			}
			return context.Cause(ctx)
		}}
		c.start("r1", nil, job)
		pass(11 * time.Second)
		c.script.follow(func(call) fate { return fate{lost: true} })
		pass(4 * time.Second)
		c.script.follow(nil)
		select {
		case e := <-ends:
			if !e.alive || !errors.Is(e.cause, election.ErrExpired) {
				t.Errorf("%+v", e)
			}
		default:
			t.Error("the run goes on")
		}
		pass(2 * time.Second)
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule interrupted"})
	})
}
