package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

const group = "g"

// scene is one group of replicas with its store, and those who watch.
type scene struct {
	t      *testing.T
	seed   uint64
	trace  *trace
	bus    *bus
	store  *memstore.Store
	leases *leases
	ledger *ledger
	jobs   []*job
	script

	lease, grace time.Duration
	offset       time.Duration // of the store's clock
	lost         time.Time     // when the store has last lost records
	operator     *operator
	lives        int
	nodes        []*node // that are meant to run
	living       []*node // whose Run has not returned, or was not looked at since
	all          []*node
	started      map[string]*work // by run and attempt
	active       map[string]*work
	failures     []string
	seen         map[string]int // what the history shows
}

// script says what happens to a scene: by chance, or as it is written.
type script interface {
	fate(n *node, c line.Call) fate                       // of a call
	plan(w *work) (time.Duration, verdict)                // how long a job's work takes, and how it ends
	stubborn(w *work) bool                                // whether it does not heed its context
	dooms(n *node, point string) bool                     // whether the process is killed at that point
	lacks(n *node, j *job) bool                           // whether it has no such job
	dress(n *node, cfg *scheduler.Config, w *world.World) // makes its surroundings
}

func newScene(t *testing.T, seed uint64, keep bool) *scene {
	s := &scene{
		t: t, seed: seed, trace: newTrace(keep), store: memstore.New(), jobs: jobs(),
		started: make(map[string]*work), active: make(map[string]*work), seen: make(map[string]int),
	}
	s.bus = newBus(seed, s.trace)
	s.bus.check, s.bus.look = s.check, s.look
	s.leases = newLeases(s.fail)
	s.ledger = newLedger(s.jobs, s.fail)
	s.ledger.term = s.trace.term
	s.operator = s.newOperator()
	if keep {
		s.ledger.tell = func(text string) {
			s.trace.kept = append(s.trace.kept, traceLine{time.Now(), "  ledger: " + text, false})
		}
	}
	s.ledger.session = func(replica string) int { return s.leases.births[replica] }
	return s
}

func (s *scene) fail(format string, args ...any) {
	text := time.Now().UTC().Format("15:04:05.000000 ") + fmt.Sprintf(format, args...)
	if len(s.failures) == 20 {
		return // the first ones matter
	}
	s.failures = append(s.failures, text)
	s.trace.say("FAILED: "+format, args...)
}

func (s *scene) sound() bool  { return len(s.failures) == 0 }
func (s *scene) broken() bool { return len(s.failures) > 0 }

// storeNow is the store's clock.
func (s *scene) storeNow() time.Time { return time.Now().Add(s.offset) }

// shaken reports whether the store has lost records so recently that replicas may not know yet.
func (s *scene) shaken() bool { return !s.lost.IsZero() && time.Since(s.lost) < s.lease+2*time.Second }

// arrive lets a call reach the store.
func (s *scene) arrive(n *node, c line.Call, name string, deliver func(context.Context) (any, error)) (any, error) {
	ctx := context.Background()
	if s.dooms(n, "before a "+c.Op) {
		s.kill(n)
		return nil, errGone
	}
	token, number, _ := s.store.Position(ctx, group)
	v, err := deliver(ctx)
	if c.Op == "acquire" && err == nil {
		s.trace.elected(v.(store.Lease).Token)
	}
	s.trace.note(true, name, "of", n.name, "arrives:", s.trace.digest(v, err))
	s.leases.observe(c, v, err, s.storeNow())
	if c.Op == "acquire" && err == nil {
		s.trace.say("%s is granted %s", n.name, s.trace.term(v.(store.Lease).Token))
	}
	now, next, _ := s.store.Position(ctx, group)
	switch {
	case now == token && next == number:
	case c.Op != "commit" || err != nil || c.Lease.Token != now || c.Number != next || now < token || now == token && next != number+1 ||
		now > token && next != 1 || !s.leases.holds(now, s.storeNow()):
		s.fail("%s of %s, answered with %v, moves the ledger from %d %d to %d %d", name, n.name, err, token, number, now, next)
	default:
		s.ledger.apply(c.Lease, c.Number, c.Changes, time.Now())
	}
	if s.dooms(n, "after a "+c.Op) {
		s.kill(n)
	}
	return v, err
}

// wipe has the store forget everything.
func (s *scene) wipe() {
	s.trace.say("the store is wiped")
	s.store.Wipe()
	s.forgotten()
}

// forgotten follows a store that has lost records.
func (s *scene) forgotten() {
	s.lost = time.Now()
	s.leases.reload(s.store, s.storeNow())
	s.ledger.reload(s.store)
}

// look returns when a lease or a session ends on which something may live.
func (s *scene) look() (next time.Time) {
	now := s.storeNow()
	consider := func(end time.Time) {
		if end.After(now) && (next.IsZero() || end.Before(next)) {
			next = end
		}
	}
	if s.leases.held {
		consider(s.leases.end)
	}
	for _, w := range s.active {
		consider(s.leases.sessions[w.run.Replica])
	}
	if !next.IsZero() {
		next = next.Add(-s.offset)
	}
	return next
}

// check judges what must hold at each moment.
func (s *scene) check() {
	if s.bus.steps%100 == 0 {
		s.living = slices.DeleteFunc(s.living, func(n *node) bool { return n.dead || n.over() })
	}
	if s.shaken() {
		return
	}
	now := s.storeNow()
	var leader *node
	var term *election.Term
	for _, n := range s.living {
		t := n.term()
		if t == nil {
			continue
		}
		if !s.leases.holds(t.Token(), now) {
			s.fail("the context of %s's %s has not ended, its lease has", n.name, s.trace.term(t.Token()))
		}
		if term != nil && term.Valid() && t.Valid() {
			s.fail("%s and %s lead: %s and %s", leader.name, n.name, s.trace.term(term.Token()), s.trace.term(t.Token()))
		}
		leader, term = n, t
	}
	for _, w := range s.active {
		if s.leases.alive(w.run.Replica, w.session, now) {
			continue
		}
		if w.ctx.Err() == nil || w.run.Valid() {
			s.fail("%s on %s is alive, its session %s is not", w.name(), w.node.name, w.run.Replica)
		}
	}
}

// leader returns the node that holds the lease, or nil.
func (s *scene) leader() *node {
	if !s.leases.held || !s.storeNow().Before(s.leases.end) {
		return nil
	}
	for _, n := range s.nodes {
		if strings.HasPrefix(s.leases.lease.Replica, n.name+"-") {
			return n
		}
	}
	return nil
}

// end stops all replicas and judges what they leave behind.
func (s *scene) end() {
	s.operator.node.cancel()
	for _, n := range s.all {
		n.cancel()
	}
	limit := time.Now().Add(s.grace + 6*s.lease + 4*time.Minute) // a loop that stands still is left behind after two
	s.bus.run(limit, func() bool {
		return s.operator.going == 0 && !slices.ContainsFunc(s.all, func(n *node) bool { return !n.over() })
	})
	for _, n := range s.all {
		s.stopped(n)
	}
	s.bus.run(time.Now().Add(20*time.Second), func() bool { return len(s.bus.events) == 0 }) // what is still on its way arrives
	s.bus.timer.Stop()
}

// reckon compares the history with what was seen.
func (s *scene) reckon() {
	told := make(map[string]entryRecord)
	all := s.ledger.read(s.store)
	for _, name := range slices.Sorted(maps.Keys(s.ledger.jobs)) {
		bucket := all["history/"+name]
		for _, key := range slices.Sorted(maps.Keys(bucket)) {
			e, err := decode[entryRecord](bucket[key])
			switch {
			case err != nil:
				s.fail("history of %s: %v", name, err)
			case e.Outcome == skipped:
			case told[e.attempt()].Job != "":
				s.fail("%s stands twice in history", e.attempt())
			default:
				told[e.attempt()] = e
				s.ended(e)
			}
		}
	}
	if s.lost.IsZero() {
		s.attempts(told, all["run"])
	}
	for _, key := range slices.Sorted(maps.Keys(s.started)) {
		run, _, _ := strings.Cut(key, "#")
		if s.ledger.claims[run] == nil {
			s.fail("%s was never claimed", key)
		}
	}
}

// ended compares an entry with what the job's work did.
func (s *scene) ended(e entryRecord) {
	w := s.started[e.attempt()]
	if e.Permanent {
		s.seen["permanent errors"]++
	}
	if strings.Contains(e.Note, "not run again: replaced") {
		s.seen["waits dropped"]++
	}
	switch e.Outcome {
	case cancelled:
		if w == nil && manual(e.RunID) {
			return // it was waiting for another run to end
		}
		if w == nil || !w.ended || w.verdict == (verdict{}) {
			s.fail("%s was not cancelled, history says: %s", e.attempt(), e.Outcome)
			return
		}
		switch cause := context.Cause(w.ctx); {
		case errors.Is(cause, scheduler.ErrReplaced):
			s.seen["runs replaced"]++
		case errors.Is(cause, scheduler.ErrCancelled):
			s.seen["runs cancelled"]++
		default:
			s.fail("%s was not cancelled but ended for %v, history says: %s", e.attempt(), cause, e.Outcome)
		}
	case notStarted:
		if w != nil {
			s.fail("%s has started, history says: %s", e.attempt(), e.Outcome)
		}
	case succeeded, failed, timedOut:
		switch {
		case w == nil || !w.ended:
			s.fail("%s has not ended, history says: %s", e.attempt(), e.Outcome)
		case (w.verdict == verdict{}) != (e.Outcome == succeeded):
			s.fail("%s ended with %+v, history says: %s", e.attempt(), w.verdict, e.Outcome)
		}
	}
}

// attempts judges that each claim has its entry, and that each attempt follows from the one before.
func (s *scene) attempts(told map[string]entryRecord, open map[string][]byte) {
	for _, run := range slices.Sorted(maps.Keys(s.ledger.claims)) {
		last := len(s.ledger.claims[run])
		_, isOpen := open[run]
		failures := 0
		for attempt := 1; attempt <= last; attempt++ {
			key := attemptName(run, attempt)
			e, ok := told[key]
			if !ok && (!isOpen || attempt < last) {
				s.fail("%s was claimed and is neither open nor in history", key)
			}
			name, _, _ := strings.Cut(run, "@")
			job := s.ledger.jobs[name]
			tried := e.Outcome == failed || e.Outcome == timedOut
			if (e.Outcome == interrupted && job.rerun || tried && job.failures > 0) && !isOpen && attempt == last &&
				!strings.Contains(e.Detail+e.Note, "not run again") && !s.ledger.success[run] {
				s.fail("%s is not run again: %+v", key, e)
			}
			if ok && attempt > 1 {
				s.follows(told[attemptName(run, attempt-1)], e, failures, job)
			}
			if tried {
				failures++
			}
		}
	}
}

// follows judges that an attempt may follow the one before it, when so many of its run have failed.
func (s *scene) follows(before, e entryRecord, failures int, j *job) {
	switch {
	case before.Outcome == interrupted && e.Reason == string(scheduler.ReasonRerun):
	case before.Outcome == notStarted && e.Reason == before.Reason:
	case (before.Outcome == failed || before.Outcome == timedOut) && e.Reason == string(scheduler.ReasonRetry) && !before.Permanent &&
		failures < j.failures:
		s.seen["retries"]++
	default:
		s.fail("%s follows an attempt that has %s: %+v after %+v", e.attempt(), before.Outcome, e, before)
	}
}

var errReset = errors.New("connection reset")
