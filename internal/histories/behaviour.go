package histories

import (
	"context"
	"time"
)

// run does as a bad replica might, by the client's seed, until ctx ends.
func (c *client) run(ctx context.Context) {
	for pause(ctx, c.upTo(10*time.Millisecond)) {
		limit := 20*time.Millisecond + c.upTo(c.pace/2)
		switch {
		case c.chance(12):
			c.observe(limit)
		case c.lease.Token == 0:
			c.compete(limit)
		default:
			c.lead(limit)
		}
	}
}

func (c *client) upTo(d time.Duration) time.Duration { return time.Duration(c.random.Int64N(int64(d))) }

func (c *client) chance(percent int) bool { return c.random.IntN(100) < percent }

func (c *client) observe(limit time.Duration) {
	switch c.random.IntN(3) {
	case 0:
		c.read(limit)
	case 1:
		c.leader(limit)
	case 2:
		c.position(limit)
	}
}

// compete campaigns and now and then gives the campaign up, most often one that got no answer.
func (c *client) compete(limit time.Duration) {
	switch o := c.acquire(limit); o.outcome {
	case held:
		if c.chance(20) {
			c.release(limit)
		} else {
			pause(context.Background(), c.upTo(c.pace/4))
		}
	case unknown:
		if c.chance(40) {
			again := c.campaign
			if o := c.release(limit); o.outcome == done && c.chance(20) {
				c.campaign, again = again, c.campaign
				c.acquire(limit) // against the rules: it is refused
				c.campaign = again
			}
		} else if c.chance(10) {
			c.abandon() // without a word: a late grant lapses
		}
		pause(context.Background(), c.upTo(c.pace/4))
	case done:
	default:
		c.abandon()
	}
}

// lead acts under the lease, or under what was one, until it is told that it is lost, and sometimes longer.
func (c *client) lead(limit time.Duration) {
	var o operation
	switch n := c.random.IntN(100); {
	case n < 50:
		o = c.commit(limit)
	case n < 55 && !(c.dim && c.open): // against the rules: without an answer to the one before
		o = c.commitNumber(c.number+2, c.draw(), limit)
	case n < 58 && c.number > 0 && !c.dim: // delivered again, much later
		o = c.commitNumber(c.number, c.draw(), limit)
	case n < 75:
		o = c.renew(limit)
	case n < 87:
		o = c.readOwn(limit)
	case n < 92:
		o = c.acquire(limit)
	case n < 97:
		c.release(limit)
	}
	if (o.outcome == lost || o.outcome == ended || o.outcome == stale || o.outcome == held) && !c.chance(40) {
		c.abandon()
	}
}
