package scheduler

import (
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
		time.Sleep(11 * time.Second)
		r1.cancel()
		time.Sleep(25 * time.Second)
		c.script.follow(nil)
		r1.stop()
		time.Sleep(time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule succeeded"})
	})
}
