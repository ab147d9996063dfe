package redlock

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// simScene is a group of clients over model nodes.
type simScene struct {
	t        *testing.T
	seed     uint64
	plan     simPlan
	trace    *simTrace
	bus      *simBus
	judge    *simJudge
	nodes    []*simNode
	clients  []*simClient // that are meant to run
	all      []*simClient
	links    map[string]bool // that are cut: "c1>n2" and "n2>c1"
	healthy  bool            // no faults now
	faults   map[string]int
	failures []string
	refusals []string // to lead, by an operator's question
	lives    int
	runs     simRuns
	contents map[head]uint64 // of the states that nodes have had
}

// simPlan is what a scene is like.
type simPlan struct {
	nodes, clients int
	grants         int           // after which it ends; 0 is when its time is over
	skew           time.Duration // how far the clocks of nodes are off at the beginning, at most
	ttl            time.Duration
	hold           time.Duration // how long a term takes at most
	commits        int           // of a term, on average; 0 is none, and no ledger at all
	vanish         float64       // how many terms end without a release
	posts          bool
	sessions       bool
	quiet          float64       // how many calls meet no fault
	page           int           // records of a page
	real           bool          // clients run the real scheduler
	truncates      bool          // nodes lose their last writes
	pace           time.Duration // between two faults that last
	doubt          time.Duration // how long after a restart a server may still lack a lease or a session
	harms          []string
	loose          bool // clocks step further than is promised
}

func newSimScene(t *testing.T, seed uint64, plan simPlan, keep bool) *simScene {
	s := &simScene{
		t: t, seed: seed, plan: plan, trace: newSimTrace(keep), links: make(map[string]bool), faults: make(map[string]int),
		contents: make(map[head]uint64),
	}
	s.bus = newSimBus(seed, s.trace)
	s.judge = newSimJudge(s.fail)
	s.judge.loose = plan.loose
	s.runs = simRuns{started: make(map[string]*simRun), active: make(map[string]*simRun)}
	if plan.real {
		s.bus.check = s.leaders
	}
	for i := range plan.nodes {
		n := newSimNode(s, i)
		if plan.skew > 0 {
			n.setClock(s.bus.between(-plan.skew, plan.skew), 0)
			n.born = n.now().Add(-time.Hour)
		}
		s.nodes = append(s.nodes, n)
	}
	return s
}

func (s *simScene) fail(format string, args ...any) {
	if len(s.failures) == 10 {
		return // the first ones matter
	}
	text := time.Now().UTC().Format("15:04:05.000000 ") + fmt.Sprintf(format, args...)
	s.failures = append(s.failures, text)
}

func (s *simScene) broken() bool { return len(s.failures) > 0 }

// refused notes that a client refuses to lead until an operator decides.
func (s *simScene) refused(err error) {
	s.judge.mu.Lock()
	defer s.judge.mu.Unlock()
	s.refusals = append(s.refusals, err.Error())
}

// begin starts another process.
func (s *simScene) begin() *simClient {
	c := s.open()
	s.clients, s.all = append(s.clients, c), append(s.all, c)
	s.trace.say("%s begins", c.name)
	if s.plan.real {
		go c.serve()
	} else {
		go c.live()
	}
	return c
}

// open makes a process with a store.
func (s *simScene) open() *simClient {
	s.lives++
	c := &simClient{simScene: s, name: "c" + strconv.Itoa(s.lives), done: make(chan struct{})}
	c.rand = rand.New(rand.NewPCG(s.seed, simHash(c.name)))
	c.ctx, c.cancel = context.WithCancel(c.surroundings())
	c.store = c.connect()
	return c
}

// stop asks a process to end.
func (s *simScene) stop(c *simClient) {
	s.trace.say("%s is asked to stop", c.name)
	c.cancel()
	s.clients = slices.DeleteFunc(s.clients, func(o *simClient) bool { return o == c })
}

func (c *simClient) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// end stops all clients and lets what is on its way arrive.
func (s *simScene) end() {
	s.healthy = true // nobody begins any more
	for _, c := range s.all {
		c.cancel()
	}
	s.bus.run(time.Now().Add(10*time.Minute), func() bool {
		return !slices.ContainsFunc(s.all, func(c *simClient) bool { return !c.over() })
	})
	for _, c := range s.all {
		if !c.over() {
			s.fail("%s does not end", c.name)
		}
	}
	s.bus.run(time.Now().Add(time.Minute), func() bool { return len(s.bus.events) == 0 })
	s.bus.timer.Stop()
}

func simHash(text string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(text))
	return h.Sum64()
}
