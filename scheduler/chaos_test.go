package scheduler

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"slices"
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

// chaosRun is a job's work being done.
type chaosRun struct {
	node  *node
	run   Run
	ctx   context.Context
	ended bool
	err   error
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

// work is what every job does: it takes a while that follows from the seed, and mostly heeds its context.
func (c *chaos) work(ctx context.Context, n *node, run Run) error {
	e := &chaosRun{node: n, run: run, ctx: ctx}
	if !c.enter(e) {
		return errGone
	}
	h := fnv.New64a()
	fmt.Fprint(h, c.seed, run.ID(), run.Attempt)
	draw := h.Sum64()
	long := time.Duration(draw % uint64(400*time.Millisecond))
	switch {
	case draw>>32%40 == 0:
		long = time.Duration(draw % uint64(12*time.Second))
	case draw>>32%10 == 0:
		long = time.Duration(draw % uint64(2500*time.Millisecond))
	}
	var err error
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
		if draw>>40%8 == 0 {
			err = errors.New("failed")
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
		if draw>>44%10 == 0 { // it does not heed
			select {
			case <-timer.C:
				err = nil
			case <-n.dead:
			}
		}
	case <-n.dead:
		err = errGone
	}
	for {
		wait := n.stands()
		if wait <= 0 {
			break
		}
		select {
		case <-time.After(wait + time.Duration(draw%uint64(time.Millisecond))): // one after the other, so that it can be replayed
		case <-n.dead:
			return errGone
		}
	}
	if draw>>50%64 == 0 && err == nil {
		defer func() { panic("a job's bug") }()
		err = errors.New("panic")
	}
	c.leave(e, err)
	return err
}

func name(run Run) string { return fmt.Sprintf("%s#%d", run.ID(), run.Attempt) }

// enter notes the start of a run and checks that it may start.
func (c *chaos) enter(e *chaosRun) bool {
	var problems []string
	c.mu.Lock()
	if e.node.killed {
		c.mu.Unlock()
		return false
	}
	key := name(e.run)
	if old := c.started[key]; old != nil {
		problems = append(problems, fmt.Sprintf("%s starts on %s and has started on %s", key, e.node.name, old.node.name))
	}
	if err := c.mirror.claimed(e.run); err != nil && (c.lost.IsZero() || time.Since(c.lost) > time.Second) {
		problems = append(problems, fmt.Sprintf("%s starts on %s without its claim: %v", key, e.node.name, err))
	}
	if c.mirror.jobs[e.run.Job].exclusive {
		for _, other := range c.active {
			if other.run.Job == e.run.Job && !other.sessionOver() {
				problems = append(problems, fmt.Sprintf("%s starts on %s while %s goes on on %s",
					key, e.node.name, name(other.run), other.node.name))
			}
		}
	}
	if ahead := time.Until(e.run.Tick); ahead > maxAhead {
		problems = append(problems, fmt.Sprintf("%s starts %v too early", key, ahead))
	}
	c.started[key], c.active[key] = e, e
	c.mu.Unlock()
	for _, p := range problems {
		c.fail("%s", p)
	}
	return true
}

func (c *chaos) leave(e *chaosRun, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.ended, e.err = true, err
	delete(c.active, name(e.run))
}

// sessionOver reports whether the run's session is over, or its Run has given it up.
func (e *chaosRun) sessionOver() bool {
	return !e.run.Valid() || errors.Is(context.Cause(e.ctx), ErrStopping) && e.node.over()
}

// watch checks again and again that no run is alive whose session is over.
func (c *chaos) watch() {
	replicas, _ := c.store.Replicas(context.Background(), "g")
	c.mu.Lock()
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(c.active)) {
		if !c.lost.IsZero() && time.Since(c.lost) < 3*time.Second {
			break // the replicas learn of the end of their sessions when they refresh them
		}
		e := c.active[key]
		alive := slices.ContainsFunc(replicas, func(r store.Replica) bool { return r.ID == e.run.Replica })
		if !alive && (e.ctx.Err() == nil || e.run.Valid()) {
			problems = append(problems, fmt.Sprintf("%s on %s is alive, its session %s is not", key, e.node.name, e.run.Replica))
		}
	}
	c.mu.Unlock()
	for _, p := range problems {
		c.fail("%s", p)
	}
	c.bus.after(50*time.Millisecond, "watch", c.watch)
}

// settled checks that, some time after all faults, every job is up to date.
func (c *chaos) settled() {
	now := time.Now().Unix()
	for _, j := range c.jobs {
		mark, ok := c.mirror.watermark(j.Name)
		if !ok {
			c.fail("job %s is not in the ledger", j.Name)
		} else if late := now - mark; late > 40 {
			c.fail("job %s is %ds behind", j.Name, late)
		}
	}
}

// reckon compares the history, as everyone may read it, with what was seen.
func (c *chaos) reckon() {
	in, err := NewInspector(c.store, "g")
	if err != nil {
		c.t.Fatal(err)
	}
	told := make(map[string]Entry)
	for e, err := range in.History(context.Background(), "") {
		if err != nil {
			c.fail("history: %v", err)
			return
		}
		if e.Outcome == Skipped {
			continue
		}
		key := fmt.Sprintf("%s#%d", e.RunID, e.Attempt)
		if _, ok := told[key]; ok {
			c.fail("%s stands twice in history", key)
		}
		told[key] = e
		started := c.started[key]
		switch e.Outcome {
		case NotStarted:
			if started != nil {
				c.fail("%s has started, history says: %s", key, e.Outcome)
			}
		case Succeeded, Failed, TimedOut:
			switch {
			case started == nil || !started.ended:
				c.fail("%s has not ended, history says: %s", key, e.Outcome)
			case (started.err == nil) != (e.Outcome == Succeeded):
				c.fail("%s ended with %v, history says: %s", key, started.err, e.Outcome)
			}
		}
	}
	for run, attempts := range c.mirror.claims {
		for attempt := range attempts {
			key := fmt.Sprintf("%s#%d", run, attempt)
			_, open := c.mirror.records[bucketRun][run]
			e, ok := told[key]
			if c.lossy {
				continue
			}
			if !ok && (!open || attempt < len(attempts)) {
				c.fail("%s was claimed and is neither open nor in history", key)
			}
			if e.Outcome == Interrupted && c.reruns[e.Job] && !open && attempt == len(attempts) &&
				!strings.Contains(e.Detail+e.Note, "not run again") && !c.mirror.known[run] {
				c.fail("%s is not run again: %+v", key, e)
			}
			if ok && attempt > 1 {
				before := told[fmt.Sprintf("%s#%d", run, attempt-1)]
				if before.Outcome != Interrupted && before.Outcome != NotStarted {
					c.fail("%s follows an attempt that has %s: %+v", key, before.Outcome, e)
				}
			}
		}
	}
	for key := range c.started {
		run, _, _ := strings.Cut(key, "#")
		if c.mirror.claims[run] == nil {
			c.fail("%s was never claimed", key)
		}
	}
}
