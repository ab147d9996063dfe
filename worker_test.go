//go:build unix

package singleton_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

// shift is the schedulers of a group and what they have run.
type shift struct {
	*group
	inspect *scheduler.Inspector
	started chan scheduler.Run // in order; what a test has waited for is gone

	mu  sync.Mutex
	ran []scheduler.Run // in order
}

// newShift makes the ledger too, so that the first leader does not wait for replicas that remember one.
func newShift(g *group) *shift {
	g.t.Helper()
	st := g.open()
	eventually(g.t, "a ledger", func() bool {
		err := scheduler.Create(g.t.Context(), st, g.name)
		if err != nil {
			g.t.Log(err) // on a busy machine
		}
		return err == nil
	})
	inspect, err := scheduler.NewInspector(st, g.name, "test")
	if err != nil {
		g.t.Fatal(err)
	}
	return &shift{group: g, inspect: inspect, started: make(chan scheduler.Run, 10_000)}
}

// worker is a scheduler that runs.
type worker struct {
	*scheduler.Scheduler
	shift   *shift
	elected chan *election.Term
	stop    context.CancelFunc // ends the context of Run
	done    chan struct{}      // closed when Run has returned
	err     error              // by then
}

// work starts a scheduler with jobs; their work may be nil.
func (s *shift) work(st store.Store, cfg scheduler.Config, jobs ...scheduler.Job) *worker {
	s.t.Helper()
	w := &worker{shift: s, elected: make(chan *election.Term, 1000), done: make(chan struct{})}
	cfg.Group, cfg.Seconds, cfg.Logger = s.name, true, s.log().With("r", cfg.ID)
	if cfg.Lease == 0 {
		cfg.Lease = lease
	}
	cfg.Callbacks.Elected = func(term *election.Term) { w.elected <- term }
	var err error
	if w.Scheduler, err = scheduler.New(st, cfg); err != nil {
		s.t.Fatal(err)
	}
	for _, j := range jobs {
		do := j.Do
		j.Do = func(ctx context.Context, run scheduler.Run) error {
			s.note(run)
			if do == nil {
				return nil
			}
			return do(ctx, run)
		}
		if err := w.Add(j); err != nil {
			s.t.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(context.Background())
	w.stop = stop
	go func() {
		defer close(w.done)
		w.err = w.Run(ctx)
	}()
	s.t.Cleanup(func() {
		stop()
		<-w.done
	})
	return w
}

func (s *shift) note(run scheduler.Run) {
	s.mu.Lock()
	s.ran = append(s.ran, run)
	s.mu.Unlock()
	s.started <- run
}

// end stops the worker, waits for it, and checks what Run has returned.
func (w *worker) end() {
	w.shift.t.Helper()
	w.stop()
	receive(w.shift.t, w.done, "the return of Run")
	if w.err != nil {
		w.shift.t.Errorf("Run returned %v", w.err)
	}
}

// run waits until a run of job starts whose tick is later than after.
func (s *shift) run(job string, after time.Time) scheduler.Run {
	s.t.Helper()
	for {
		if run := receive(s.t, s.started, "a run of "+job); run.Job == job && run.Tick.After(after) {
			return run
		}
	}
}

// ticks returns the ticks of a job in the order in which its runs have started.
func (s *shift) ticks(job string) (ticks []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range s.ran {
		if run.Job == job {
			ticks = append(ticks, run.Tick)
		}
	}
	return ticks
}

// history returns the entries of a job, oldest first.
func (s *shift) history(job string) (entries []scheduler.Entry) {
	s.t.Helper()
	for e, err := range s.inspect.History(s.t.Context(), job) {
		if err != nil {
			s.t.Fatal(err)
		}
		entries = append(entries, e)
	}
	slices.Reverse(entries)
	return entries
}

// entry waits until a job's history has an entry of that kind.
func (s *shift) entry(job, what string, is func(scheduler.Entry) bool) (found scheduler.Entry) {
	s.t.Helper()
	eventually(s.t, "an entry of "+job+" in the history: "+what, func() bool {
		entries := s.history(job)
		i := slices.IndexFunc(entries, is)
		if i >= 0 {
			found = entries[i]
		}
		return i >= 0
	})
	return found
}

// accounted waits until the history of an every-second job has come to a tick, and checks that it says of each tick
// before what became of it: once that it was skipped, or once of each attempt, of which only the last one counts.
func (s *shift) accounted(job string, last time.Time) {
	s.t.Helper()
	s.entry(job, last.String(), func(e scheduler.Entry) bool { return !e.LastTick.Before(last) })
	said := map[time.Time][]scheduler.Entry{}
	first := last
	for _, e := range s.history(job) {
		if e.Request != "" { // it has no tick
			continue
		}
		if e.Tick.Before(first) {
			first = e.Tick
		}
		for tick := e.Tick; !tick.After(e.LastTick); tick = tick.Add(time.Second) {
			said[tick] = append(said[tick], e)
		}
	}
	for tick := first; !tick.After(last); tick = tick.Add(time.Second) {
		if !conclusive(said[tick]) {
			s.t.Errorf("%s: of the tick %v the history says %+v", job, tick, said[tick])
		}
	}
}

// conclusive reports whether the entries of a tick say once and for all what became of it.
func conclusive(entries []scheduler.Entry) bool {
	for i, e := range entries {
		again := e.Outcome == scheduler.NotStarted || e.Outcome == scheduler.Interrupted
		if e.Outcome == scheduler.Skipped && len(entries) > 1 || e.Outcome != scheduler.Skipped && e.Attempt != i+1 ||
			i < len(entries)-1 && !again {
			return false
		}
	}
	return len(entries) > 0
}

// inOrder checks that the ticks of an every-second job have started once each, in order, and with gaps false all of
// them.
func inOrder(t *testing.T, ticks []time.Time, gaps bool) {
	t.Helper()
	for i := range ticks[1:] {
		before, tick := ticks[i], ticks[i+1]
		if !tick.After(before) || !gaps && tick.Sub(before) != time.Second {
			t.Errorf("%v started after %v", tick, before)
		}
	}
}

// pass waits until the wall clock has come to an instant.
func pass(t *testing.T, until time.Time) {
	t.Helper()
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	receive(t, timer.C, until.String())
}
