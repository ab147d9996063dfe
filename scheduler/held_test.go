package scheduler

import (
	"context"
	"strings"
	"testing"
	"time"
)

// A replica that stops, and whose last end cannot be told at first, keeps its session: else the run would be called
// interrupted, and be run again.
func TestS2SessionIsHeldUntilTheEndIsTold(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(5 * time.Second)}
		r1 := c.start("r1", func(cfg *Config) { cfg.Grace = time.Minute }, job)
		c.start("r2", nil, job)
		c.script.follow(func(call call) fate { return fate{lost: call.replica == "r1" && call.op == "post"} })
		pass(11 * time.Second)
		r1.cancel()
		pass(25 * time.Second)
		c.script.follow(nil)
		r1.stop()
		pass(time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule succeeded"})
	})
}

// A success that becomes known between an interruption and the next attempt ends the wait for it.
func TestS3LateSuccessEndsTheWaitForTheNextAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "10 0 * * * *", OnInterrupt: InterruptRerun,
			Do: func(context.Context, Run) error { time.Sleep(2 * time.Second); return nil }}
		c.start("r1", nil, job)
		c.start("r2", nil, job)
		pass(10500 * time.Millisecond)
		c.script.follow(func(call call) fate {
			if call.replica == "r1" {
				return fate{err: errGone}
			}
			return fate{}
		})
		for len(c.history("a")) == 0 { // until the run is interrupted
			pass(10 * time.Millisecond)
		}
		c.script.follow(nil)
		pass(20 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule interrupted"})
		if got := c.entries("a")[0].Note; !strings.HasPrefix(got, "ended late: succeeded") {
			t.Errorf("note %q", got)
		}
	})
}
