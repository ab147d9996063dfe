package sim

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/go-singleton/singleton/scheduler"
)

var errGone = errors.New("the process is gone")

// work is one attempt of a run that is being executed.
type work struct {
	node    *node
	job     *job
	run     scheduler.Run
	ctx     context.Context
	session int // which one of its replica
	ended   bool
	verdict verdict
	result  chan verdict
	heard   bool // that its context has ended
}

// verdict is how a job's work ends.
type verdict struct {
	err    error
	panics bool
	exits  bool // by runtime.Goexit
}

func (w *work) name() string { return attemptName(w.run.ID(), w.run.Attempt) }

func (w *work) brief() string {
	return brief(w.run.ID()) + " (attempt " + strconv.Itoa(w.run.Attempt) + ", " + string(w.run.Reason) + ")"
}

// work is what every job does. How long it takes, whether it heeds its context and how it ends is for the root to say.
func (s *scene) work(ctx context.Context, n *node, j *job, run scheduler.Run) error {
	w := &work{node: n, job: j, run: run, ctx: ctx, result: make(chan verdict, 1)}
	s.bus.put(n.name, "starts "+w.name(), func() { s.bus.reach(n, 0, func() { s.start(w) }) })
	var v verdict
	select {
	case v = <-w.result:
	case <-ctx.Done():
		s.bus.put(n.name, "cancels "+w.name(), func() { s.bus.reach(n, 0, func() { s.cancelled(w) }) })
		v = <-w.result
	}
	if v.exits {
		runtime.Goexit()
	}
	if v.panics {
		panic("a job's bug")
	}
	return v.err
}

// start is the first that a job's work does.
func (s *scene) start(w *work) {
	if w.node.dead {
		w.result <- verdict{err: errGone}
		return
	}
	key := w.name()
	s.trace.say("%s starts on %s", w.brief(), w.node.name)
	if old := s.started[key]; old != nil {
		s.fail("%s starts on %s and has started on %s", key, w.node.name, old.node.name)
	}
	if w.ctx.Err() == nil { // else its process stood still between the claim and the start, and may have been given up
		s.mayStart(w)
	}
	w.session = s.ledger.sessions[key]
	s.started[key] = w
	s.active[key] = w
	long, v := s.plan(w)
	if w.ctx.Err() != nil && !s.stubborn(w) {
		long, v = 0, verdict{err: context.Cause(w.ctx)}
	}
	s.bus.reach(w.node, long, func() { s.leave(w, v) })
	if s.dooms(w.node, "at a start") {
		s.kill(w.node)
	}
}

// mayStart judges whether a run may start.
func (s *scene) mayStart(w *work) {
	if err := s.ledger.claimed(w.run.ID(), w.run.Attempt, w.run.Token, w.run.Replica); err != nil && !s.shaken() {
		s.fail("%s starts on %s without its claim: %v", w.name(), w.node.name, err)
	}
	if ahead := time.Until(w.run.Tick); ahead > maxAhead {
		s.fail("%s starts %v too early", w.name(), ahead)
	}
	if !w.job.exclusive {
		return
	}
	for _, other := range s.working() {
		if other.job == w.job && s.leases.alive(other.run.Replica, other.session, s.storeNow()) && !s.shaken() {
			s.fail("%s starts on %s while %s goes on on %s", w.name(), w.node.name, other.name(), other.node.name)
		}
	}
}

// cancelled is what a job does whose context has ended: mostly it ends, too.
func (s *scene) cancelled(w *work) {
	if w.ended {
		return
	}
	w.heard = true
	s.trace.say("%s on %s hears that its context has ended: %v", w.brief(), w.node.name, context.Cause(w.ctx))
	if s.started[w.name()] != w {
		return // it has not even begun
	}
	if s.stubborn(w) {
		return
	}
	s.bus.reach(w.node, s.bus.between(time.Microsecond, 50*time.Millisecond), func() { s.leave(w, verdict{err: context.Cause(w.ctx)}) })
}

// leave is the end of a job's work.
func (s *scene) leave(w *work, v verdict) {
	if w.ended {
		return
	}
	w.ended, w.verdict = true, v
	delete(s.active, w.name())
	if !w.node.dead {
		how := "has done its work"
		switch {
		case v.panics:
			how = "panics"
		case v.exits:
			how = "calls Goexit"
		case v.err != nil:
			how = "ends with: " + v.err.Error()
		}
		s.trace.say("%s on %s %s", w.brief(), w.node.name, how)
	}
	w.result <- v
	if s.dooms(w.node, "after an end") {
		s.kill(w.node)
	}
}

// working returns the work that goes on, in order.
func (s *scene) working() []*work {
	all := make([]*work, 0, len(s.active))
	for _, w := range s.active {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *work) int { return cmp.Compare(a.name(), b.name()) })
	return all
}
