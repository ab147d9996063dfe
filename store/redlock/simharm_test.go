package redlock

import (
	"slices"
	"time"

	"github.com/go-singleton/singleton/internal/hub"
)

// Harms that last, or that take something away. Nodes lose data only so far as is promised to be borne: those that may
// lack something are always a minority.
var (
	simLinkHarms   = []string{"cut", "cut requests", "cut replies", "cut off"}
	simClientHarms = []string{"pause", "pause", "kill", "stop"}
	simNodeHarms   = []string{"hang", "restart", "restart"}
	simDataHarms   = []string{"restart empty", "restart truncated"}
	simClockHarms  = []string{"clock rate", "clock step", "clock back"}
)

// nemesis does some harm, and comes again.
func (s *simScene) nemesis() {
	if s.healthy {
		return
	}
	harm := s.plan.harms[s.bus.rand.IntN(len(s.plan.harms))]
	s.harm(harm)
	s.bus.after(s.bus.between(0, 2*s.plan.pace), s.nemesis)
}

func (s *simScene) harm(harm string) {
	b := s.bus
	long := b.between(s.plan.ttl/20, 5*s.plan.ttl/2)
	c := s.clients[b.rand.IntN(len(s.clients))]
	n := s.nodes[b.rand.IntN(len(s.nodes))]
	s.faults[harm]++
	switch harm {
	case "cut":
		s.cut(long, c.name+">"+n.name, n.name+">"+c.name)
	case "cut requests":
		s.cut(long, c.name+">"+n.name)
	case "cut replies":
		s.cut(long, n.name+">"+c.name)
	case "cut off":
		var all []string
		for _, n := range s.nodes {
			all = append(all, c.name+">"+n.name, n.name+">"+c.name)
		}
		s.cut(long, all...)
	case "pause":
		s.trace.say("%s pauses for %v", c.name, long)
		c.paused = time.Now().Add(long)
	case "kill":
		s.trace.say("%s is dead", c.name)
		c.dead = true
		s.stop(c)
		s.replace()
	case "stop":
		s.stop(c)
		s.replace()
	case "hang":
		s.trace.say("%s hangs for %v", n.name, long)
		n.hung = time.Now().Add(long)
	case "restart", "restart empty", "restart truncated":
		s.restart(n, harm, long)
	case "clock rate":
		if time.Since(n.stepped) < 2*s.plan.ttl {
			return
		}
		rate := b.rand.Float64()*0.18 - 0.09
		s.trace.say("%s's clock goes %.1f %% fast", n.name, 100*rate)
		n.setClock(n.wall(), rate)
	case "clock step": // no more than is promised, in all
		if n.rate == 0 && time.Since(n.stepped) > 2*s.plan.ttl {
			step := b.between(0, simGuard(s.plan.ttl))
			s.trace.say("%s's clock steps by %v", n.name, step)
			n.setClock(n.wall()+step, 0)
			n.stepped = time.Now()
		}
	case "clock back":
		step := b.between(0, s.plan.ttl)
		s.trace.say("%s's clock steps back by %v", n.name, step)
		n.setClock(n.wall()-step, 0)
		n.stepped = time.Now()
	case "clock leap":
		step := b.between(-20*s.plan.ttl, 20*s.plan.ttl)
		s.trace.say("%s's clock leaps by %v", n.name, step)
		n.setClock(n.wall()+step, n.rate)
	}
}

// cut lets nothing through for a while, one way each.
func (s *simScene) cut(long time.Duration, links ...string) {
	s.trace.say("%v are cut for %v", links, long)
	for _, l := range links {
		s.links[l] = true
	}
	s.bus.after(long, func() {
		for _, l := range links {
			delete(s.links, l)
		}
	})
}

// replace starts another process some time after one has gone.
func (s *simScene) replace() {
	if len(s.clients) == 0 {
		s.begin()
		return
	}
	s.bus.after(s.bus.between(0, s.plan.ttl), func() {
		if !s.healthy {
			s.begin()
		}
	})
}

// suspect tells whether a node may lack something: a lease, a session, a token, or records, also where it has never had any.
func (n *simNode) suspect() bool {
	g := n.data.groups[simGroup]
	if g == nil || g.vouched != n.run() || n.plan.commits > 0 && g.marker != n.run() {
		return true
	}
	return time.Since(n.restarted) < n.plan.doubt
}

// suspect counts the nodes that may lack something.
func (s *simScene) suspect() (count int) {
	for _, n := range s.nodes {
		if n.suspect() {
			count++
		}
	}
	return count
}

// restart ends a server's process and starts another one a while later.
func (s *simScene) restart(n *simNode, how string, long time.Duration) {
	may := n.suspect() && s.suspect() <= (len(s.nodes)-1)/2 || s.suspect() < (len(s.nodes)-1)/2
	if n.down || !n.durable && !may {
		return
	}
	if n.durable {
		how = "restart"
	}
	s.trace.say("%s goes down for %v: %s", n.name, long, how)
	n.down, n.hung = true, time.Time{}
	n.life++
	n.fall()
	switch {
	case how == "restart empty":
		n.data = simData{groups: make(map[string]*simNodeGroup), staged: make(map[string]simStaged)}
		n.before = nil
	case how == "restart truncated" && len(n.before) > 0:
		n.data = n.before[s.bus.rand.IntN(len(n.before))]
		n.before = nil
	}
	n.restarted = time.Now().Add(long)
	s.bus.after(long, func() {
		n.down, n.born = false, n.now()
		n.stand()
		s.trace.say("%s is up as %s", n.name, n.run())
	})
}

// fall tells the watchers that their subscription has ended, and stand that it is there again.
func (n *simNode) fall()  { n.announce(hub.Falls) }
func (n *simNode) stand() { n.announce(hub.Stands) }

func (n *simNode) announce(kind hub.Kind) {
	n.watchers = slices.DeleteFunc(n.watchers, func(w *simWatcher) bool { return w.over() })
	for _, w := range n.watchers {
		w.link.notify(w, hub.Notice{Kind: kind})
	}
}

// heal ends all faults.
func (s *simScene) heal() {
	s.trace.say("all faults end")
	s.healthy = true
	clear(s.links)
	for len(s.clients) < 2 {
		s.begin()
	}
	for _, c := range s.all {
		c.paused = time.Time{}
	}
	for _, n := range s.nodes {
		n.hung = time.Time{}
		n.setClock(n.wall(), 0)
	}
}
