package sim

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/scheduler"
)

// node is one life of a process. Its fields belong to the root, save where it says so.
type node struct {
	*scheduler.Scheduler
	name    string
	release int // of the binary it runs
	cancel  context.CancelFunc
	dead    bool
	done    chan struct{} // closed when Run has returned
	result  error
	paused  time.Time // it stands still until then
	cut     time.Time // nothing of it reaches the store until then
	slow    time.Time // replies take long until then, hardly any too long
	doom    string    // the point at which it is killed: "" is none

	clock sync.Mutex // of the wall clock; the process reads it
	off   time.Duration
	rate  float64 // how much faster it goes
	since time.Time

	current atomic.Pointer[election.Term] // the last that it was elected for
}

// wall is how far the process's wall clock is off.
func (n *node) wall() time.Duration {
	n.clock.Lock()
	defer n.clock.Unlock()
	return n.off + time.Duration(n.rate*float64(time.Since(n.since)))
}

// setClock puts the wall clock off, and lets it go faster by a rate from now on.
func (n *node) setClock(off time.Duration, rate float64) {
	n.clock.Lock()
	defer n.clock.Unlock()
	n.off, n.rate, n.since = off, rate, time.Now()
}

// stands returns how long the process still stands still.
func (n *node) stands() time.Duration {
	if n.paused.IsZero() || n.dead {
		return 0
	}
	return time.Until(n.paused)
}

func (n *node) over() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// term returns the term that the process may believe in: one whose context has not ended.
func (n *node) term() *election.Term {
	t := n.current.Load()
	if t == nil || n.dead || t.Context().Err() != nil {
		return nil
	}
	return t
}

// begin starts another process.
func (s *scene) begin(release int) *node {
	s.lives++
	n := &node{name: "r" + strconv.Itoa(s.lives), release: release, done: make(chan struct{}), since: time.Now()}
	s.nodes, s.living, s.all = append(s.nodes, n), append(s.living, n), append(s.all, n)
	way := carrier{s, n}
	w := world.Seeded(s.seed, n.name, n.wall)
	cfg := scheduler.Config{
		Group: group, ID: n.name, Lease: s.lease, Grace: s.grace, History: 2000, Seconds: true, Logger: s.trace.logger(n.name),
		Callbacks: election.Callbacks{Elected: func(t *election.Term) { n.current.Store(t) }},
	}
	s.dress(n, &cfg, w)
	w.Turn = way.turn
	sched, err := scheduler.New(&line.Line{Store: s.store, Replica: n.name, Carrier: way}, cfg)
	if err != nil {
		s.t.Fatal(err)
	}
	n.Scheduler = sched
	if s.trace.say("%s begins", n.name); release > 0 {
		s.trace.say("%s is of release %d", n.name, release)
	}
	for _, j := range s.jobs {
		if !s.lacks(n, j) {
			s.add(n, j)
		}
	}
	ctx, cancel := context.WithCancel(world.With(context.Background(), w))
	n.cancel = cancel
	go func() {
		n.result = sched.Run(ctx)
		close(n.done)
	}()
	return n
}

// add gives a process a job, as its release has it.
func (s *scene) add(n *node, j *job) {
	b := j.builds[int(draw(s.seed, "build", j.name, n.release)%uint64(len(j.builds)))].job
	b.Do = func(ctx context.Context, run scheduler.Run) error { return s.work(ctx, n, j, run) }
	if err := n.Add(b); err != nil {
		s.fail("Add on %s: %v", n.name, err)
	}
}

// addAll gives a process all jobs that it lacks.
func (s *scene) addAll(n *node) {
	have := n.Jobs()
	for _, j := range s.jobs {
		if !slices.ContainsFunc(have, func(h scheduler.Job) bool { return h.Name == j.name }) {
			s.add(n, j)
		}
	}
}

// kill ends a process without a word: nothing of it reaches the store any more, and its work is no more.
func (s *scene) kill(n *node) {
	if n.dead {
		return
	}
	s.trace.say("%s is dead", n.name)
	n.dead = true
	n.current.Store(nil) // it believes nothing any more
	s.stop(n)
	for _, w := range s.working() {
		if w.node == n {
			s.leave(w, verdict{err: errGone})
		}
	}
}

// stop asks a process to end.
func (s *scene) stop(n *node) {
	n.cancel()
	s.nodes = slices.DeleteFunc(s.nodes, func(m *node) bool { return m == n })
}

// pause lets a process stand still.
func (s *scene) pause(n *node, d time.Duration) {
	s.trace.say("%s pauses for %v", n.name, d)
	n.paused = time.Now().Add(d)
}

// cutOff lets nothing of a process reach the store.
func (s *scene) cutOff(n *node, d time.Duration) {
	s.trace.say("%s is cut off for %v", n.name, d)
	n.cut = time.Now().Add(d)
}

// jump puts a process's wall clock off.
func (s *scene) jump(n *node, off time.Duration) {
	s.trace.say("%s's wall clock jumps to %v off", n.name, off)
	n.setClock(off, 0)
}

// stopped judges how a process has ended.
func (s *scene) stopped(n *node) {
	switch {
	case !n.over():
		s.fail("Run of %s does not return", n.name)
	case !n.dead && n.result != nil && !errors.Is(n.result, scheduler.ErrUnfinished):
		s.fail("Run of %s returned %v", n.name, n.result)
	}
}
