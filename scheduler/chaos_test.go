package scheduler

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

var (
	chaosFirst = flag.Uint64("chaos.first", 1, "first seed of TestChaos")
	chaosSeeds = flag.Uint64("chaos.seeds", 12, "how many seeds TestChaos takes")
	chaosFor   = flag.Duration("chaos.for", 10*time.Minute, "virtual time of each seed")
	chaosLog   = flag.Bool("chaos.log", false, "print the logs of a seed that fails")
)

// TestChaos lets replicas run for ten virtual minutes under faults drawn from a seed, and checks each commit and each
// start against what is promised.
func TestChaos(t *testing.T) {
	for seed := *chaosFirst; seed < *chaosFirst+*chaosSeeds; seed++ {
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { newChaos(t, seed).play(*chaosFor) })
		}) {
			t.Logf("go test ./scheduler -run TestChaos -chaos.first %d -chaos.seeds 1 -chaos.log", seed)
			break
		}
	}
}

// TestChaosLoss is TestChaos with a store that is wiped, or loses its newest records, again and again: the replicas that
// remember live through it, and no tick is started twice.
func TestChaosLoss(t *testing.T) {
	for seed := *chaosFirst; seed < *chaosFirst+*chaosSeeds; seed++ {
		if !t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newChaos(t, seed)
				c.lossy = true
				c.play(*chaosFor)
			})
		}) {
			t.Logf("go test ./scheduler -run TestChaosLoss -chaos.first %d -chaos.seeds 1 -chaos.log", seed)
			break
		}
	}
}

// chaos is one group under faults.
type chaos struct {
	t       *testing.T
	seed    uint64
	bus     *bus
	store   *memstore.Store
	mirror  *mirror
	jobs    []Job
	reruns  map[string]bool
	lives   int
	nodes   []*node // that are meant to run
	all     []*node
	outage  time.Time // nothing reaches the store until then
	healthy bool      // no faults now
	over    bool      // no more faults at all
	lossy   bool      // the store loses records
	lost    time.Time // when it last did
	counts  map[string]int

	mu       sync.Mutex
	failures []string
	active   map[string]*chaosRun
	started  map[string]*chaosRun // by run and attempt
	logs     strings.Builder
}

// node is one life of a process.
type node struct {
	*Scheduler
	name    string
	chaos   *chaos
	cancel  context.CancelFunc
	dead    chan struct{} // closed when the process is killed
	killed  bool
	done    chan struct{}
	result  error
	stopped time.Time
	thawed  atomic.Int64 // it stands still until then, Unix ns
	cut     time.Time    // nothing of it reaches the store until then
	offset  atomic.Int64 // of its wall clock, ns
	doom    string       // what kills it: "", or a point of its next commit
}

func newChaos(t *testing.T, seed uint64) *chaos {
	c := &chaos{
		t:       t,
		seed:    seed,
		bus:     newBus(seed),
		store:   memstore.New(),
		reruns:  make(map[string]bool),
		counts:  make(map[string]int),
		active:  make(map[string]*chaosRun),
		started: make(map[string]*chaosRun),
	}
	c.bus.decide, c.bus.frozen = c.fate, func(replica string) time.Duration { return c.node(replica).stands() }
	known := make(map[string]*mirrorJob)
	add := func(period int, j Job) {
		if j.Schedule == nil && j.Spec == "" {
			j.Spec = fmt.Sprintf("@every %ds", period)
		}
		c.jobs = append(c.jobs, j)
		c.reruns[j.Name] = j.OnInterrupt == InterruptRerun
		known[j.Name] = &mirrorJob{
			due:       func(s int64) bool { return s%int64(period) == 0 },
			exclusive: j.Overlap != OverlapAllow,
		}
	}
	add(1, Job{Name: "all", Spec: "* * * * * *", CatchUp: CatchUpAll, CatchUpMax: 20, OnInterrupt: InterruptRerun})
	add(1, Job{Name: "skip"})
	add(5, Job{Name: "queue", Spec: "*/5 * * * * *", Overlap: OverlapQueue, OnInterrupt: InterruptRerun, Window: 8 * time.Second})
	add(2, Job{Name: "allow-all", CatchUp: CatchUpAll, Overlap: OverlapAllow, CatchUpMax: 3})
	add(3, Job{Name: "none", CatchUp: CatchUpNone, OnInterrupt: InterruptRerun})
	add(1, Job{Name: "allow", Overlap: OverlapAllow, OnInterrupt: InterruptRerun})
	add(7, Job{Name: "timeout", Timeout: 300 * time.Millisecond})
	add(4, Job{Name: "foreign", Spec: "every 4 s", Schedule: everyNth(4), CatchUp: CatchUpAll, CatchUpMax: 2})
	c.mirror = newMirror(c.fail, known)
	return c
}

// everyNth is a foreign schedule: multiples of so many seconds.
type everyNth int64

func (n everyNth) Next(t time.Time) time.Time {
	return time.Unix((t.Unix()/int64(n)+1)*int64(n), 0)
}

func (c *chaos) fail(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := time.Now().UTC().Format("15:04:05.000000 ") + fmt.Sprintf(format, args...)
	c.failures = append(c.failures, text)
	fmt.Fprintln(&c.logs, "FAILED", text)
}

// Write gathers the logs of all replicas.
func (c *chaos) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logs.Write(p)
}

func (c *chaos) say(format string, args ...any) {
	fmt.Fprintf(c, "%s ---- "+format+"\n", append([]any{time.Now().UTC().Format("15:04:05.000000")}, args...)...)
}

func (c *chaos) node(name string) *node {
	for _, n := range c.all {
		if n.name == name {
			return n
		}
	}
	return nil
}

// play runs the whole scene: faults, a quiet time, the end, and the reckoning.
func (c *chaos) play(long time.Duration) {
	for range 3 + c.bus.rand.IntN(3) {
		c.begin()
	}
	end := time.Now().Add(long)
	c.bus.after(c.bus.between(time.Second, 5*time.Second), "nemesis", c.nemesis)
	c.bus.after(0, "watch", c.watch)
	if c.lossy {
		c.bus.after(c.bus.between(20*time.Second, 40*time.Second), "calm", c.calm)
	}
	for time.Now().Before(end) && c.sound() {
		c.bus.run(time.Now().Add(time.Second))
	}
	c.over = true
	if c.sound() {
		c.heal()
		c.bus.run(time.Now().Add(90 * time.Second))
		c.settled()
	}
	c.healthy = true
	for _, n := range c.all {
		n.cancel()
	}
	for _, n := range c.all {
		for tries := 0; !n.over() && tries < 200; tries++ {
			c.bus.run(time.Now().Add(time.Second))
		}
		if !n.over() {
			c.fail("Run of %s does not return", n.name)
			break
		}
		if !n.killed && n.result != nil && !errors.Is(n.result, ErrUnfinished) {
			c.fail("Run of %s returned %v", n.name, n.result)
		}
	}
	c.bus.run(time.Now().Add(20 * time.Second)) // what is still on its way arrives
	c.reckon()
	if strings.Contains(c.logs.String(), "loop panicked") {
		c.fail("a leader's loop panicked")
	}
	if proof := min(len(c.started)/60, len(c.mirror.terms)); c.sound() && proof < int(long/time.Minute) {
		c.fail("%d starts in %d terms prove little", len(c.started), len(c.mirror.terms))
	}
	for _, f := range c.failures {
		c.t.Error(f)
	}
	if *chaosLog {
		c.t.Log("\n" + c.logs.String())
	}
	c.t.Logf("steps %d trace %x commits %d terms %d starts %d %v",
		c.bus.steps, c.bus.trace, c.mirror.commits, len(c.mirror.terms), len(c.started), c.counts)
}

func (c *chaos) sound() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.failures) == 0
}

// begin starts another process.
func (c *chaos) begin() *node {
	c.lives++
	n := &node{
		name: fmt.Sprintf("r%d", c.lives), chaos: c, dead: make(chan struct{}), done: make(chan struct{}),
	}
	n.offset.Store(int64(c.bus.between(-200*time.Millisecond, 200*time.Millisecond)))
	c.nodes, c.all = append(c.nodes, n), append(c.all, n)
	s, err := New(&line{Store: c.store, replica: n.name, carrier: chaosLine{c, n}}, Config{
		Group: "g", ID: n.name, Lease: 3 * time.Second, Grace: 4 * time.Second, History: 5000, Seconds: true,
		MaxRunning: c.bus.rand.IntN(2) * 4,
		Logger:     slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug})).With("r", n.name),
	})
	if err != nil {
		c.t.Fatal(err)
	}
	n.Scheduler = s
	for _, j := range c.jobs {
		if !c.bus.chance(0.05) {
			c.add(n, j)
		}
	}
	w := seededWorld(c.seed, n.name, func() time.Duration { return time.Duration(n.offset.Load()) })
	ctx, cancel := context.WithCancel(world.With(context.Background(), w))
	n.cancel = cancel
	c.say("%s begins", n.name)
	go func() {
		n.result = s.Run(ctx)
		n.stopped = time.Now()
		close(n.done)
	}()
	return n
}

func (c *chaos) add(n *node, j Job) {
	j.Do = func(ctx context.Context, run Run) error { return c.work(ctx, n, run) }
	if err := n.Add(j); err != nil {
		c.fail("Add on %s: %v", n.name, err)
	}
}

// stands returns how long the process still stands still.
func (n *node) stands() time.Duration { return time.Until(time.Unix(0, n.thawed.Load())) }

func (n *node) over() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// chaosLine puts the observation of commits between a replica and the bus.
type chaosLine struct {
	*chaos
	node *node
}

func (l chaosLine) hint(replica string, hint func()) { l.bus.hint(replica, hint) }

func (l chaosLine) carry(ctx context.Context, c call, deliver func(context.Context) (any, error)) (any, error) {
	if c.op != "commit" {
		return l.bus.carry(ctx, c, deliver)
	}
	return l.bus.carry(ctx, c, func(ctx context.Context) (any, error) {
		if l.node.doom == "before" {
			l.kill(l.node)
			return nil, errReset
		}
		token, number, _ := l.store.Position(ctx, "g")
		v, err := deliver(ctx)
		if now, next, _ := l.store.Position(ctx, "g"); now != token || next != number {
			l.mirror.apply(store.Lease{Replica: l.node.ID(), Token: now}, next, c.changes, time.Now())
		}
		if l.node.doom == "after" {
			l.kill(l.node)
		}
		return v, err
	})
}
