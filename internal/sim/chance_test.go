package sim

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/scheduler"
)

// chance is the script in which everything follows from a seed.
type chance struct {
	*scene
	release int       // of the binaries that are started
	outage  time.Time // nothing reaches the store until then
	healthy bool      // no faults now
	over    bool      // no more faults at all
	lossy   bool      // the store loses records
	faults  map[string]int
}

// Latencies of a healthy network.
const (
	leastDelay = 20 * time.Microsecond
	mostDelay  = 2 * time.Millisecond
)

// fate draws what becomes of a call.
func (c *chance) fate(n *node, call line.Call) fate {
	b := c.bus
	f := fate{request: b.between(leastDelay, mostDelay), reply: b.between(leastDelay, mostDelay)}
	if n.dead {
		return fate{lost: true}
	}
	if c.healthy {
		return f
	}
	now := time.Now()
	down := now.Before(c.outage) || now.Before(n.cut)
	if call.Op == "watch" || call.Op == "hint" {
		if down || b.chance(0.2) {
			return fate{err: errReset, fault: "reset"}
		}
		return f
	}
	if down {
		switch b.rand.IntN(3) {
		case 0:
			return fate{err: errReset, fault: "reset"}
		case 1:
			f.mute, f.fault = true, "reply lost"
			if f.lost = b.chance(0.9); f.lost {
				f.fault = "request lost"
			}
			return f
		}
		return fate{lost: true, fault: "request lost"}
	}
	if now.Before(n.slow) {
		f.reply += b.between(c.lease/20, c.lease/6)
	}
	if !b.chance(0.03) {
		return f
	}
	long := c.lease + time.Second
	switch b.rand.IntN(7) {
	case 0:
		f.err, f.fault = errReset, "reset"
	case 1:
		f.lost, f.fault = true, "request lost"
	case 2:
		f.mute, f.fault = true, "reply lost"
	case 3:
		f.request += b.between(0, long)
		f.fault = "request late"
	case 4:
		f.reply += b.between(0, long)
		f.fault = "reply late"
	case 5:
		f.again = b.between(0, 2*long)
		f.fault = "comes twice"
	case 6:
		f.request += b.between(0, 300*time.Millisecond)
		f.reply += b.between(0, 300*time.Millisecond)
		f.fault = "slow"
	}
	c.faults[f.fault]++
	return f
}

// plan draws how long a job's work takes: often little, sometimes longer than a session.
func (c *chance) plan(w *work) (long time.Duration, v verdict) {
	x := draw(c.seed, "work", w.run.ID(), w.run.Attempt)
	long = time.Duration(x % uint64(400*time.Millisecond))
	switch kind := x >> 32 % 40; {
	case w.job.slow && kind < 20 || kind < 2:
		long = time.Duration(x % uint64(12*time.Second))
	case kind < 6:
		long = time.Duration(x % uint64(2500*time.Millisecond))
	}
	switch x >> 40 % 64 {
	case 0:
		v.panics = true
	case 1:
		v.exits = true
	case 2:
		v.err = fmt.Errorf("for good: %w", backoff.Permanent(errors.New("failed")))
	case 3, 4, 5, 6, 7:
		v.err = errors.New("failed")
	}
	return long, v
}

func (c *chance) stubborn(w *work) bool {
	return draw(c.seed, "stubborn", w.run.ID(), w.run.Attempt)%8 == 0
}

// dooms reports whether the process is to be killed at that point; that is done once.
func (c *chance) dooms(n *node, point string) bool {
	if n.doom != point || c.healthy || n.dead {
		return false
	}
	n.doom = ""
	c.trace.say("%s is killed %s", n.name, point)
	c.replace(n)
	return true
}

func (c *chance) lacks(*node, *job) bool { return !c.healthy && c.bus.chance(0.05) }

func (c *chance) dress(n *node, cfg *scheduler.Config, _ *world.World) {
	n.setClock(c.bus.between(-200*time.Millisecond, 200*time.Millisecond), 0)
	cfg.MaxRunning = c.bus.rand.IntN(2) * 4
}

// points are where a process is killed; "at once" is where it is.
var points = []string{"at once", "at once", "before a commit", "after a commit", "at a start", "after an end", "before a post", "after a post"}

// harms are what the nemesis does.
var harms = []string{"kill", "kill", "kill", "drain", "deploy", "pause", "pause", "cut", "outage", "resign", "remove", "add", "clock", "skew",
	"store clock", "begin", "request", "request", "slow spell", "slow spell"}

// nemesis does harm, and comes back.
func (c *chance) nemesis() {
	if c.over {
		return
	}
	c.bus.after(c.bus.between(time.Second, 3*time.Second+3*c.lease/2), c.nemesis)
	if c.healthy {
		return
	}
	if len(c.nodes) == 0 {
		c.begin(c.release)
		return
	}
	n := c.nodes[c.bus.rand.IntN(len(c.nodes))]
	if leader := c.leader(); leader != nil && c.bus.chance(0.6) {
		n = leader
	}
	harm := harms[c.bus.rand.IntN(len(harms))]
	c.faults[harm]++
	c.harm(n, harm)
}

func (c *chance) harm(n *node, harm string) {
	b := c.bus
	long := b.between(100*time.Millisecond, 5*c.lease/2)
	say := c.trace.say
	switch harm {
	case "kill":
		n.doom = points[b.rand.IntN(len(points))]
		if n.doom == "at once" {
			c.kill(n)
			c.replace(n)
		}
	case "drain":
		say("%s is asked to stop", n.name)
		c.stop(n)
		c.replace(n)
	case "deploy":
		c.release++
		say("%s is asked to stop, for release %d", n.name, c.release)
		c.stop(n)
		c.replace(n)
	case "pause":
		c.pause(n, long)
	case "cut":
		c.cutOff(n, long)
	case "outage":
		say("the store cannot be reached for %v", long)
		c.outage = time.Now().Add(long)
	case "resign":
		say("%s resigns", n.name)
		_ = n.Resign(gone)
	case "remove":
		j := c.jobs[b.rand.IntN(len(c.jobs))]
		say("%s loses job %s", n.name, j.name)
		_ = n.Remove(j.name)
	case "add":
		say("%s gets all jobs", n.name)
		c.addAll(n)
	case "clock":
		c.jump(n, b.between(-20*time.Second, 20*time.Second))
	case "skew":
		rate := b.rand.Float64()*0.1 - 0.05
		say("%s's wall clock goes %.1f %% fast", n.name, 100*rate)
		n.setClock(n.wall(), rate)
	case "store clock":
		c.leases.expire(c.storeNow())
		_, _, _ = c.store.Position(context.Background(), group) // and so does the store
		switch {
		case c.lossy: // the clock is all that lets tokens grow then
			return
		case c.offset < -5*time.Second || b.chance(0.5):
			c.offset += b.between(0, 50*time.Millisecond) // no more than the guard is for
		default:
			c.offset -= b.between(0, 3*time.Second)
		}
		say("the store's clock is %v off", c.offset)
		c.store.SetClockOffset(c.offset)
	case "slow spell": // and then no reply at all
		say("replies to %s take long for %v", n.name, long)
		n.slow = time.Now().Add(long)
		b.after(long, func() {
			if !c.healthy && !n.dead && !n.over() {
				c.cutOff(n, b.between(c.lease/2, 3*c.lease/2))
			}
		})
	case "request":
		c.request()
	case "begin":
		if len(c.nodes) < 5 {
			c.begin(c.release)
		}
	}
}

// replace starts another process some time after one has gone.
func (c *chance) replace(*node) {
	if len(c.nodes) < 2 || c.bus.chance(0.7) {
		c.bus.after(c.bus.between(100*time.Millisecond, 2*c.lease), func() {
			if !c.healthy {
				c.begin(c.release)
			}
		})
	}
}

// heal ends all faults.
func (c *chance) heal() {
	c.trace.say("all faults end")
	c.healthy = true
	c.outage = time.Time{}
	for len(c.nodes) < 2 {
		c.begin(c.release)
	}
	for _, n := range c.nodes {
		n.doom, n.cut, n.paused, n.slow = "", time.Time{}, time.Time{}, time.Time{}
		n.setClock(n.wall()%(200*time.Millisecond), 0)
		c.addAll(n)
	}
	c.resumeAll()
}

// calm ends the faults for a while, in the midst of which the store loses records.
func (c *chance) calm() {
	if c.over {
		return
	}
	c.heal()
	c.bus.after(3*c.lease+time.Second, func() {
		restore, before := c.store.Snapshot(), c.leader()
		wipe := c.bus.chance(0.5)
		// Not more than that, so that the lease which the store remembers lasts until its leader renews it: whoever led first
		// after the loss of the lease, too, could not know of the ticks that were lost with it.
		c.bus.after(c.bus.between(0, c.lease/4), func() { c.lose(wipe, before, restore) })
		c.bus.after(20*time.Second+3*c.lease, func() {
			if c.over {
				return
			}
			c.trace.say("faults begin again")
			c.healthy = false
			c.bus.after(c.bus.between(20*time.Second, 60*time.Second), c.calm)
		})
	})
}

// lose has the store wiped, or put back to what it was before.
func (c *chance) lose(wipe bool, before *node, restore func()) {
	if c.over {
		return
	}
	switch {
	case wipe:
		c.faults["wipe"]++
		c.wipe()
	case before != nil && c.leader() == before: // else the lease that the store would remember is another
		c.faults["truncation"]++
		c.trace.say("the store loses its newest records")
		restore()
		c.forgotten()
	}
}

// gone is a context that has ended.
var gone = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()
