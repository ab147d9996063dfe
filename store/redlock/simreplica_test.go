package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/scheduler"
)

// simReplica is what a client is that runs the real scheduler.
type simReplica struct {
	term   atomic.Pointer[election.Term] // the last that it was elected for
	result error
}

// simJob is a job of these replicas.
type simJob struct {
	scheduler.Job
	every time.Duration
	long  time.Duration // how long its work takes at most
}

func simJobs() []simJob {
	return []simJob{
		{scheduler.Job{Name: "each", Spec: "* * * * * *"}, time.Second, 400 * time.Millisecond},
		{scheduler.Job{Name: "slow", Spec: "*/5 * * * * *"}, 5 * time.Second, 9 * time.Second},
		{scheduler.Job{Name: "again", Spec: "*/10 * * * * *", OnInterrupt: scheduler.InterruptRerun}, 10 * time.Second, 6 * time.Second},
	}
}

// simRuns follows the work of all replicas.
type simRuns struct {
	started map[string]*simRun // by run and attempt
	active  map[string]*simRun
}

type simRun struct {
	scheduler.Run
	who   string
	ctx   context.Context
	ended time.Time // zero while it goes on
	err   error
}

// serve is the life of a client that runs the real scheduler.
func (c *simClient) serve() {
	defer close(c.done)
	defer c.disconnect()
	sched, err := scheduler.New(c.store, scheduler.Config{
		Group: simGroup, ID: c.name, Lease: c.plan.ttl, Grace: c.plan.ttl, History: 2000, Seconds: true,
		Callbacks: election.Callbacks{Elected: func(t *election.Term) { c.replica.term.Store(t) }},
	})
	for _, j := range simJobs() {
		j.Do = func(ctx context.Context, run scheduler.Run) error { return c.do(ctx, j, run) }
		err = errors.Join(err, sched.Add(j.Job))
	}
	if err == nil {
		err = sched.Run(c.ctx)
	}
	c.replica.result = err
}

// do is the work of all jobs.
func (c *simClient) do(ctx context.Context, j simJob, run scheduler.Run) error {
	w := &simRun{Run: run, who: c.name, ctx: ctx}
	name := simName(run.ID(), run.Attempt)
	c.works(ctx, name, 0)
	c.begins(w)
	long := time.Duration(simHash(fmt.Sprint(c.seed, run.ID(), run.Attempt)) % uint64(j.long))
	if simHash(fmt.Sprint(c.seed, run.ID()))%4 > 0 {
		long %= 400 * time.Millisecond
	}
	if !c.works(ctx, name, long) {
		w.err = context.Cause(ctx)
	}
	c.ends(w)
	return w.err
}

// works is a stretch of work: it goes on after that time, or when ctx ends, as soon as the root says so.
func (c *simClient) works(ctx context.Context, name string, d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	c.turn("works on " + name)
	return ctx.Err() == nil
}

// simName is what an attempt is called.
func simName(id string, attempt int) string { return fmt.Sprintf("%s#%d", id, attempt) }

// begins judges that a run may start: once for each attempt, and alone of its job.
func (c *simClient) begins(w *simRun) {
	c.judge.mu.Lock()
	defer c.judge.mu.Unlock()
	key := simName(w.ID(), w.Attempt)
	if c.dead || w.ctx.Err() != nil {
		return
	}
	if old := c.runs.started[key]; old != nil {
		c.fail("%s starts on %s and has started on %s", key, c.name, old.who)
	}
	for _, other := range c.runs.active {
		if other.Job == w.Job && other.ended.IsZero() && other.ctx.Err() == nil && other.Valid() {
			c.fail("%s starts on %s beside %s on %s", key, c.name, simName(other.ID(), other.Attempt), other.who)
		}
	}
	c.runs.started[key], c.runs.active[key] = w, w
}

func (c *simClient) ends(w *simRun) {
	c.judge.mu.Lock()
	defer c.judge.mu.Unlock()
	w.ended = time.Now()
	delete(c.runs.active, simName(w.ID(), w.Attempt))
}

// leaders judges that at most one replica leads.
func (s *simScene) leaders() {
	var leader *simClient
	for _, c := range s.all {
		t := c.replica.term.Load()
		if c.dead || t == nil || t.Context().Err() != nil || !t.Valid() {
			continue
		}
		if leader != nil {
			s.fail("%s and %s lead", leader.name, c.name)
		}
		leader = c
		if n := t.Token(); n > s.judge.highest {
			s.judge.highest = n
			s.judge.grants++
			s.trace.say("%s leads with token %s", c.name, simToken(n))
		} else if n < s.judge.highest {
			s.fail("%s leads with token %d after %d", c.name, n, s.judge.highest)
		}
	}
}

// reckon compares the history with what was seen, once everything has been quiet for a while.
func (s *simScene) reckon(since time.Time) {
	c := s.open()
	histories, ended := make(map[string][]scheduler.Entry), make(chan error, 1)
	go func() {
		i, err := scheduler.NewInspector(c.store, simGroup, "judge")
		for _, j := range simJobs() {
			if err != nil {
				break
			}
			for e, failed := range i.History(c.ctx, j.Name) {
				histories[j.Name], err = append(histories[j.Name], e), errors.Join(err, failed)
			}
		}
		c.disconnect()
		ended <- err
	}()
	s.bus.run(time.Now().Add(time.Minute), func() bool { return len(ended) > 0 })
	if len(ended) == 0 {
		s.fail("the history cannot be read")
		return
	}
	if err := <-ended; err != nil {
		s.fail("the history cannot be read: %v", err)
		return
	}
	told := make(map[string]scheduler.Entry)
	for _, j := range simJobs() {
		s.account(j, histories[j.Name], since, told)
	}
	for _, key := range slices.Sorted(maps.Keys(s.runs.started)) {
		w := s.runs.started[key]
		e, there := told[key]
		switch {
		case !there && !w.ended.IsZero() && w.ended.Before(since):
			s.fail("%s ended on %s, and history does not say so", key, w.who)
		case there && e.Outcome == scheduler.NotStarted:
			s.fail("%s started on %s, and history says that it has not", key, w.who)
		case there && e.Outcome == scheduler.Succeeded && (w.ended.IsZero() || w.err != nil):
			s.fail("%s did not succeed on %s, history says that it has", key, w.who)
		}
	}
}

// behind is how far the clock of a server is behind, at most: a leader claims no tick that lies ahead of what a majority says, so
// that those wait which have come due by its own.
func (s *simScene) behind() (most time.Duration) {
	for _, n := range s.nodes {
		most = max(most, -n.wall())
	}
	return most
}

// lately tells whether a run of a tick goes on, or has ended a moment ago.
func (s *simScene) lately(j simJob, tick int64, since time.Time) bool {
	for _, w := range s.runs.started {
		if w.Job == j.Name && w.Tick.Unix() == tick && (w.ended.IsZero() || w.ended.After(since)) {
			return true
		}
	}
	return false
}

// account judges that the history of a job says of each tick once what became of it.
func (s *simScene) account(j simJob, entries []scheduler.Entry, since time.Time, told map[string]scheduler.Entry) {
	slices.SortFunc(entries, func(a, b scheduler.Entry) int { return cmp.Compare(a.Sequence, b.Sequence) })
	dealt := make(map[int64]string)
	for _, e := range entries {
		what := string(e.Outcome)
		if e.Outcome != scheduler.Skipped {
			told[simName(e.RunID, e.Attempt)] = e
			what = e.RunID
			if e.Outcome == scheduler.Succeeded && s.runs.started[simName(e.RunID, e.Attempt)] == nil {
				s.fail("history tells of %s, which never started", simName(e.RunID, e.Attempt))
			}
		}
		for at := e.Tick; !at.After(e.LastTick); at = at.Add(j.every) {
			if old := dealt[at.Unix()]; old != "" && old != what {
				s.fail("the tick %v of %s is dealt with twice: %s and %s", at, j.Name, old, what)
			}
			dealt[at.Unix()] = what
		}
	}
	if len(dealt) == 0 {
		s.fail("the history of %s is empty", j.Name)
		return
	}
	ticks := slices.Sorted(maps.Keys(dealt))
	due := min(since.Unix(), max(since.Add(-s.behind()).Unix(), ticks[len(ticks)-1]))
	for at := ticks[0]; at < due; at += int64(j.every / time.Second) {
		if dealt[at] == "" && !s.lately(j, at, since) {
			s.fail("nobody knows what became of the tick %v of %s", time.Unix(at, 0).UTC(), j.Name)
			return
		}
	}
}
