package scheduler

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"
)

var errGone = errors.New("the process is gone")

// fate draws what becomes of a call.
func (c *chaos) fate(call call) fate {
	n := c.node(call.replica)
	const least, most = 20 * time.Microsecond, 2 * time.Millisecond
	f := fate{request: c.bus.between(least, most), reply: c.bus.between(least, most)}
	if n.killed {
		return fate{err: errGone}
	}
	if wait := n.stands(); wait > 0 {
		f.request += wait
	}
	if c.healthy {
		return f
	}
	now := time.Now()
	down := now.Before(c.outage) || now.Before(n.cut)
	if call.op == "watch" { // it returns at once
		if down || c.bus.chance(0.2) {
			return fate{err: errReset}
		}
		return f
	}
	if down {
		switch c.bus.rand.IntN(3) {
		case 0:
			return fate{err: errReset}
		case 1:
			f.mute = true // what was on its way
			f.lost = c.bus.chance(0.9)
			return f
		}
		return fate{lost: true}
	}
	if !c.bus.chance(0.03) {
		return f
	}
	kind := c.bus.rand.IntN(7)
	c.counts[[]string{"reset", "lost", "mute", "late request", "late reply", "duplicate", "slow"}[kind]]++
	switch kind {
	case 0:
		return fate{err: errReset}
	case 1:
		return fate{lost: true}
	case 2:
		f.mute = true
	case 3:
		f.request += c.bus.between(0, 4*time.Second)
	case 4:
		f.reply += c.bus.between(0, 4*time.Second)
	case 5:
		f.again = c.bus.between(0, 8*time.Second)
	case 6:
		f.request += c.bus.between(0, 300*time.Millisecond)
		f.reply += c.bus.between(0, 300*time.Millisecond)
	}
	return f
}

// nemesis does harm, and comes back.
func (c *chaos) nemesis() {
	if c.over {
		return
	}
	c.bus.after(c.bus.between(time.Second, 9*time.Second), "nemesis", c.nemesis)
	if c.healthy {
		return
	}
	if len(c.nodes) == 0 {
		c.begin()
		return
	}
	n := c.nodes[c.bus.rand.IntN(len(c.nodes))]
	if leader := c.leader(); leader != nil && c.bus.chance(0.6) {
		n = leader
	}
	kinds := []string{"kill", "kill before a commit", "kill after a commit", "stop", "freeze", "cut", "outage", "resign", "remove",
		"add", "clock", "begin"}
	kind := kinds[c.bus.rand.IntN(len(kinds))]
	c.counts[kind]++
	c.say("%s %s", kind, n.name)
	switch kind {
	case "kill":
		c.kill(n)
	case "kill before a commit":
		n.doom = "before"
	case "kill after a commit":
		n.doom = "after"
	case "stop":
		n.cancel()
		c.replace(n)
	case "freeze":
		n.thawed.Store(time.Now().Add(c.bus.between(100*time.Millisecond, 8*time.Second)).UnixNano())
	case "cut":
		n.cut = time.Now().Add(c.bus.between(100*time.Millisecond, 8*time.Second))
	case "outage":
		c.outage = time.Now().Add(c.bus.between(100*time.Millisecond, 6*time.Second))
	case "resign":
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = n.Resign(ctx)
	case "remove":
		_ = n.Remove(c.jobs[c.bus.rand.IntN(len(c.jobs))].Name)
	case "add":
		have := n.Jobs()
		for _, j := range c.jobs {
			if !slices.ContainsFunc(have, func(h Job) bool { return h.Name == j.Name }) {
				c.add(n, j)
			}
		}
	case "clock":
		n.offset.Store(int64(c.bus.between(-20*time.Second, 20*time.Second)))
	case "begin":
		if len(c.nodes) < 6 {
			c.begin()
		}
	}
}

// calm ends the faults for a while, in the midst of which the store loses records.
func (c *chaos) calm() {
	if c.over {
		return
	}
	c.heal()
	c.bus.after(10*time.Second, "snapshot", func() {
		restore, before := c.store.Snapshot(), c.leader()
		wipe := c.bus.chance(0.5)
		c.bus.after(c.bus.between(0, 2*time.Second), "loss", func() {
			switch {
			case c.over:
				return
			case wipe:
				c.say("wipe")
				c.counts["wipe"]++
				c.store.Wipe()
			case c.leader() == before && before != nil:
				c.say("rollback")
				c.counts["rollback"]++
				restore()
			default:
				return
			}
			c.lost = time.Now()
			c.mirror.reload(c.store)
		})
		c.bus.after(20*time.Second, "faults", func() {
			if c.over {
				return
			}
			c.say("faults again")
			c.healthy = false
			c.bus.after(c.bus.between(20*time.Second, 60*time.Second), "calm", c.calm)
		})
	})
}

func (c *chaos) leader() *node {
	l, err := c.store.Leader(context.Background(), "g")
	if err != nil {
		return nil
	}
	for _, n := range c.nodes {
		if strings.HasPrefix(l.Replica, n.name+"-") {
			return n
		}
	}
	return nil
}

// kill ends a process without a word.
func (c *chaos) kill(n *node) {
	if n.killed {
		return
	}
	c.say("%s is dead", n.name)
	c.mu.Lock()
	n.killed = true
	close(n.dead)
	maps.DeleteFunc(c.active, func(_ string, e *chaosRun) bool { return e.node == n })
	c.mu.Unlock()
	n.cancel()
	c.replace(n)
}

// replace takes a node from those that are meant to run, and starts another one later.
func (c *chaos) replace(n *node) {
	c.nodes = slices.DeleteFunc(c.nodes, func(m *node) bool { return m == n })
	if len(c.nodes) < 3 || c.bus.chance(0.7) {
		c.bus.after(c.bus.between(100*time.Millisecond, 6*time.Second), "begin", func() {
			if !c.healthy {
				c.begin()
			}
		})
	}
}

// heal ends all faults.
func (c *chaos) heal() {
	c.say("healed")
	c.healthy = true
	c.outage = time.Time{}
	for len(c.nodes) < 2 {
		c.begin()
	}
	for _, n := range c.nodes {
		n.doom, n.cut = "", time.Time{}
		n.offset.Store(0)
		n.thawed.Store(0)
		have := n.Jobs()
		for _, j := range c.jobs {
			if !slices.ContainsFunc(have, func(h Job) bool { return h.Name == j.Name }) {
				c.add(n, j)
			}
		}
	}
}
