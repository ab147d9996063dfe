package scheduler

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

func (a *asker) resign() *Request { a.cluster.t.Helper(); return a.post(a.Resign) }
func (a *asker) forget(job string) *Request {
	a.cluster.t.Helper()
	return a.post(func(ctx context.Context) (*Request, error) { return a.Forget(ctx, job) })
}

func (a *asker) reset(job string) *Request {
	a.cluster.t.Helper()
	return a.post(func(ctx context.Context) (*Request, error) { return a.Reset(ctx, job) })
}

func TestReset(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll}
		r1 := c.start("r1", nil, job)
		pass(1500 * time.Millisecond)
		r1.stop()
		pass(10 * time.Second)
		ann := c.asker("ann")
		without := c.start("without", nil, Job{Name: "b", Spec: "@yearly"})
		ann.want(ann.reset("a"), "done")
		ann.want(ann.reset("c"), `refused: there is no job "c"`)
		without.stop()
		c.start("r2", nil, job)
		pass(1500 * time.Millisecond)
		got := c.history("a")
		if len(got) < 3 || got[0] != "00:00:01#1 schedule succeeded" || got[1] != "00:00:02-00:00:11 ×10 reset" ||
			!strings.HasSuffix(got[2], "#1 schedule succeeded") && !strings.HasSuffix(got[2], "#1 catch-up succeeded") {
			t.Errorf("%v", got)
		}
	})
}

// The leader's clock goes back by an hour: a reset leaves what was dealt with.
func TestS1ResetNeverMovesAWatermarkBack(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil, Job{Name: "a", Spec: "* * * * * *"})
		ann := c.asker("ann")
		pass(5500 * time.Millisecond)
		before := status(t, c).Jobs[0].Watermark
		r1.offset.Store(int64(-time.Hour))
		ann.want(ann.reset("a"), "done")
		if got := status(t, c).Jobs[0].Watermark; got.Before(before) {
			t.Errorf("the watermark goes back from %v to %v", before, got)
		}
	})
}

func TestForget(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil, Job{Name: "a", Spec: "* * * * * *"}, Job{Name: "b", Spec: "* * * * * *", Do: takes(time.Minute)})
		ann := c.asker("ann")
		pass(2500 * time.Millisecond)
		ann.want(ann.forget("a"), `refused: the leader has job "a": remove it there first`)
		for _, job := range []string{"a", "b"} {
			if err := r1.Remove(job); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Second)
		ann.want(ann.forget("b"), "refused: run b@2000-01-01T00:00:01Z is open: cancel it first")
		ann.want(ann.cancel("b@2000-01-01T00:00:01Z"), "done")
		pass(time.Second)
		for _, job := range []string{"a", "b"} {
			ann.want(ann.forget(job), "done")
		}
		ann.want(ann.forget("a"), `refused: there is no job "a"`)
		for _, bucket := range []string{bucketJob, bucketRun, historyBucket("a"), historyBucket("b")} {
			if records := c.records(bucket); len(records) > 0 {
				t.Errorf("%s: %v", bucket, records)
			}
		}
		r1.add(Job{Name: "a", Spec: "* * * * * *"}) // it is new
		pass(1500 * time.Millisecond)
		if got := c.history("a"); len(got) != 2 && len(got) != 1 {
			t.Errorf("%v", got)
		}
	})
}

// A record that cannot be read is dropped, and the job starts anew.
func TestForgetUnreadableRecord(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.put(store.Change{Bucket: bucketJob, Key: "a", Value: []byte("garbage")})
		c.start("r1", nil, Job{Name: "a", Spec: "* * * * * *"})
		ann := c.asker("ann")
		pass(1500 * time.Millisecond)
		ann.want(ann.trigger("a"), `refused: the record of job "a" cannot be read: forget it to start anew`)
		equal(t, "before", c.started("a"), nil)
		ann.want(ann.forget("a"), "done")
		pass(1500 * time.Millisecond)
		if got := c.started("a"); len(got) == 0 {
			t.Error("it does not start")
		}
	})
}

func TestResignByRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "2 * * * * *", Do: takes(5 * time.Second)}
		c.start("r1", nil, job)
		r2 := c.start("r2", nil, job)
		ann := c.asker("ann")
		pass(3 * time.Second)
		c.script.follow(func(call call) fate {
			if call.op == "post" {
				return fate{again: 3 * time.Second}
			}
			return fate{}
		})
		ann.want(ann.resign(), "done")
		pass(100 * time.Millisecond)
		if !r2.leads() {
			t.Error("r2 does not lead")
		}
		pass(6 * time.Second)
		if !r2.leads() {
			t.Error("r2 has resigned, too")
		}
		equal(t, "history", c.history("a"), []string{"00:00:02#1 schedule succeeded"})
	})
}

func TestCancelByRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var cause error
		job := Job{Name: "a", Spec: "2 * * * * *", Overlap: OverlapQueue, OnInterrupt: InterruptRerun, Do: func(ctx context.Context, _ Run) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		}}
		r1 := c.start("r1", nil, job)
		c.start("r2", nil, job)
		ann := c.asker("ann")
		pass(3 * time.Second)
		waits := ann.trigger("a")
		e, err := waits.Accepted(ann.ctx)
		if err != nil {
			t.Fatal(err)
		}
		ann.want(ann.cancel(e.RunID), "done") // it has not begun
		ann.want(waits, "cancelled")
		if err := r1.Resign(t.Context()); err != nil { // the run goes on, on a replica that does not lead
			t.Fatal(err)
		}
		ann.want(ann.cancel("a@2000-01-01T00:00:02Z"), "done")
		pass(2 * time.Second)
		if cause != ErrCancelled {
			t.Errorf("the cause is %v", cause)
		}
		ann.want(ann.cancel("a@2000-01-01T00:00:02Z"), "refused: no run a@2000-01-01T00:00:02Z is open")
		equal(t, "history", c.history("a"), []string{"00:00:03#1 manual cancelled", "00:00:02#1 schedule cancelled"})
		for _, e := range c.entries("a") {
			if !strings.HasPrefix(e.Detail, "cancelled by ann") {
				t.Errorf("%+v", e)
			}
		}
		if _, err := ann.Cancel(ann.ctx, "a"); err == nil || !strings.Contains(err.Error(), "is no run ID") {
			t.Errorf("%v", err)
		}
	})
}

// Whoever asks for a run of a job, with a store that loses it on the way, is not left waiting for ever.
func TestWaitAfterTheLossOfData(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "@yearly", Do: takes(time.Minute)})
		ann := c.asker("ann")
		r := ann.trigger("a")
		if _, err := r.Accepted(ann.ctx); err != nil {
			t.Fatal(err)
		}
		pass(5 * time.Second)
		c.store.Wipe()
		if got := ann.told(r); got != "interrupted" {
			t.Errorf("%q", got)
		}
	})
}

// A request that a store has lost the records of is not acted on again when it comes to light.
func TestB57RequestsAreRemembered(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "@yearly", Overlap: OverlapAllow})
		c.start("r2", nil, Job{Name: "a", Spec: "@yearly", Overlap: OverlapAllow})
		ann := c.asker("ann")
		pass(time.Second)
		c.script.follow(func(call call) fate {
			if call.op == "post" && call.replica == "ann" {
				return fate{again: 30 * time.Second}
			}
			return fate{}
		})
		ann.want(ann.trigger("a"), "succeeded")
		pass(time.Second)
		c.store.Wipe()
		pass(time.Minute)
		if got := c.started("a"); len(got) != 1 {
			t.Errorf("%v", got)
		}
	})
}
