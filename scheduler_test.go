//go:build unix

package singleton_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/scheduler"
)

const everySecond = "* * * * * *"

// TestS1AndB30AndB43EachTickStartsOnceAndOnlyWhenClaimed: two replicas, a job shorter than the differences of their
// timers, and a leadership that is lost and regained five times.
func TestS1AndB30AndB43EachTickStartsOnceAndOnlyWhenClaimed(t *testing.T) {
	t.Parallel()
	s := newShift(newGroup(t))
	job := scheduler.Job{Name: "tick", Spec: everySecond, CatchUp: scheduler.CatchUpAll,
		Do: func(ctx context.Context, run scheduler.Run) error {
			status, err := s.inspect.Status(ctx)
			if err != nil {
				return err
			}
			if !slices.ContainsFunc(status.Running, func(e scheduler.Entry) bool {
				return e.RunID == run.ID() && e.Attempt == run.Attempt && e.Token == run.Token && e.Replica == run.Replica
			}) {
				t.Errorf("%s started, and its claim is not in Redis: %+v", run.ID(), status.Running)
			}
			return nil
		}}
	a := s.work(s.store(s.server.Addr()), scheduler.Config{ID: "a", Lease: long}, job)
	b := s.work(s.store(s.server.Addr()), scheduler.Config{ID: "b", Lease: long}, job)
	first := s.run("tick", time.Time{})
	for range 5 {
		select {
		case <-a.elected:
			if err := a.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		case <-b.elected:
			if err := b.Resign(t.Context()); err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Fatal("nobody leads")
		}
	}
	last := s.run("tick", first.Tick.Add(5*time.Second))
	s.accounted("tick", last.Tick)
	inOrder(t, s.ticks("tick"), false)
	for _, e := range s.history("tick") {
		if e.Outcome != scheduler.Succeeded || e.Attempt != 1 {
			t.Errorf("%+v", e)
		}
	}
}

// replaced runs a replica, lets ticks pass while there is none, and starts another one with a job that is new, one whose
// ticks have changed, and one with another spelling and timeout. It returns when all have run since.
func replaced(t *testing.T) (s *shift, back time.Time) {
	s = newShift(newGroup(t))
	st := s.store(s.server.Addr())
	a := s.work(st, scheduler.Config{ID: "a", Lease: long},
		scheduler.Job{Name: "all", Spec: everySecond, CatchUp: scheduler.CatchUpAll},
		scheduler.Job{Name: "latest", Spec: everySecond},
		scheduler.Job{Name: "none", Spec: everySecond, CatchUp: scheduler.CatchUpNone},
		scheduler.Job{Name: "changed", Spec: everySecond, CatchUp: scheduler.CatchUpAll})
	var last time.Time
	for _, job := range []string{"all", "latest", "none", "changed"} {
		last = s.run(job, last.Add(-1)).Tick
	}
	a.end()
	pass(t, last.Add(4*time.Second))
	back = time.Now()
	s.work(st, scheduler.Config{ID: "b", Lease: long},
		scheduler.Job{Name: "all", Spec: "*/1 * 0-23 * * *", CatchUp: scheduler.CatchUpAll, Timeout: time.Minute},
		scheduler.Job{Name: "latest", Spec: everySecond},
		scheduler.Job{Name: "none", Spec: everySecond, CatchUp: scheduler.CatchUpNone},
		scheduler.Job{Name: "changed", Spec: "*/2 * * * * *", CatchUp: scheduler.CatchUpAll},
		scheduler.Job{Name: "new", Spec: everySecond, CatchUp: scheduler.CatchUpAll})
	s.run("new", back)
	s.run("changed", back)
	return s, back
}

func TestS2TicksThatNobodyCouldStartStandInTheHistoryWithTheReason(t *testing.T) {
	t.Parallel()
	s, back := replaced(t)
	second := back.Truncate(time.Second)
	for job, reason := range map[string]string{"latest": "late", "none": "late", "changed": "redefined"} {
		missed := s.entry(job, "skipped: "+reason, func(e scheduler.Entry) bool {
			return e.Outcome == scheduler.Skipped && e.Detail == reason
		})
		s.accounted(job, missed.LastTick)
	}
	s.accounted("all", second)
	s.accounted("latest", second)
	s.accounted("none", second)
}

func TestS3AndB42AndB50InterruptedRunIsRunAgainOnlyWhereAskedFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		onInterrupt scheduler.Interrupt
		signal      syscall.Signal
	}{
		"killed, Record":  {scheduler.InterruptRecord, syscall.SIGKILL},
		"killed, Rerun":   {scheduler.InterruptRerun, syscall.SIGKILL},
		"stopped, Record": {scheduler.InterruptRecord, syscall.SIGSTOP},
		"stopped, Rerun":  {scheduler.InterruptRerun, syscall.SIGSTOP},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShift(newGroup(t))
			rerun := c.onInterrupt == scheduler.InterruptRerun
			other := s.child(order{ID: "a", Rerun: rerun})
			id := other.hear()
			s.work(s.store(s.server.Addr()), scheduler.Config{ID: "b"},
				scheduler.Job{Name: "long", Spec: everySecond, OnInterrupt: c.onInterrupt})
			other.signal(c.signal)

			attempt := func(n int) scheduler.Entry {
				return s.entry("long", fmt.Sprintf("attempt %d of %s", n, id), func(e scheduler.Entry) bool {
					return e.RunID == id && e.Attempt == n
				})
			}
			first := attempt(1)
			if first.Outcome != scheduler.Interrupted {
				t.Errorf("%+v, want %s", first, scheduler.Interrupted)
			}
			if rerun {
				second := attempt(2)
				if !second.Tick.Equal(first.Tick) || second.Outcome != scheduler.Succeeded ||
					second.Reason != scheduler.ReasonRerun || second.Token <= first.Token {
					t.Errorf("%+v after %+v", second, first)
				}
			}
			if c.signal == syscall.SIGSTOP { // it goes on, and tells that its run has succeeded
				other.signal(syscall.SIGCONT)
				s.entry("long", "a note", func(e scheduler.Entry) bool { return e.RunID == id && e.Attempt == 1 && e.Note != "" })
				other.kill()
			}
			s.accountedOnce(id, rerun)
		})
	}
}

// accountedOnce waits until the job has run twice more, and checks that a run whose first attempt was interrupted has
// another one only with rerun, and that no tick was started by two replicas otherwise.
func (s *shift) accountedOnce(id string, rerun bool) {
	s.t.Helper()
	after := s.run("long", time.Time{}).Tick
	s.run("long", s.run("long", after).Tick)
	attempts := 1
	if rerun {
		attempts = 2
	}
	found := 0
	for _, e := range s.history("long") {
		if e.RunID == id {
			found++
		}
	}
	if found != attempts {
		s.t.Errorf("%d attempts of %s in the history, want %d", found, id, attempts)
	}
	inOrder(s.t, s.ticks("long"), true)
	if again := slices.ContainsFunc(s.ticks("long"), func(tick time.Time) bool {
		return "long@"+tick.Format(time.RFC3339) == id
	}); again != rerun {
		s.t.Errorf("that %s was run again is %v", id, again)
	}
}

func TestS4RunKnowsWhatItIsAndItsContextEndsBeforeItsSessionCan(t *testing.T) {
	t.Parallel()
	s := newShift(newGroup(t))
	way := s.proxy()
	type end struct {
		at    time.Time
		cause error
		valid bool
	}
	ends := make(chan end, 100)
	a := s.work(s.store(way.Addr()), scheduler.Config{ID: "a", Lease: long}, scheduler.Job{Name: "long", Spec: everySecond,
		Do: func(ctx context.Context, run scheduler.Run) error {
			if !run.Valid() {
				t.Error("a run begins that is not valid")
			}
			<-ctx.Done()
			ends <- end{time.Now(), context.Cause(ctx), run.Valid()}
			return ctx.Err()
		}})
	id, term := a.ID(), receive(t, a.elected, "a leader")
	run := s.run("long", time.Time{})
	if run.Job != "long" || run.Attempt != 1 || run.Reason != scheduler.ReasonSchedule || run.Token != term.Token() ||
		run.Replica != id || run.ID() != "long@"+run.Tick.Format(time.RFC3339) || run.Tick.Nanosecond() != 0 {
		t.Errorf("%+v of replica %s, token %d", run, id, term.Token())
	}
	s.renewals(1)
	way.Requests.Drop()
	pauses := watchPauses(t)
	session := time.UnixMilli(int64(s.admin.ZScore(t.Context(), s.key("sessions"), id).Val()))
	e := receive(t, ends, "the end of the run's context")
	before(t, e.at, session, pauses)
	if !errors.Is(e.cause, election.ErrExpired) || e.valid {
		t.Errorf("cause %v, want %v; valid is %v", e.cause, election.ErrExpired, e.valid)
	}
	way.Requests.Pass()
	s.entry("long", "interrupted", func(e scheduler.Entry) bool {
		return e.RunID == run.ID() && e.Outcome == scheduler.Interrupted
	})
}

func TestS5AndB41StoppingHandsOverAtOnceWhileItsRunGoesOn(t *testing.T) {
	t.Parallel()
	s := newShift(newGroup(t))
	finish := make(chan struct{})
	job := func(do scheduler.Func) scheduler.Job { return scheduler.Job{Name: "long", Spec: everySecond, Do: do} }
	cfg := func(id string) scheduler.Config { return scheduler.Config{ID: id, Lease: far, Grace: patience} }
	a := s.work(s.store(s.server.Addr()), cfg("a"), job(func(ctx context.Context, _ scheduler.Run) error {
		select {
		case <-finish:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}))
	long := s.run("long", time.Time{})
	b := s.work(s.store(s.server.Addr()), cfg("b"), job(nil))
	eventually(t, "a follower", func() bool {
		return s.admin.ZCard(t.Context(), s.key("sessions")).Val() > 1
	})
	early := s.mark(0)
	a.stop()
	term := receive(t, b.elected, "another leader")
	if !early() {
		t.Error("the follower has waited for the end of the lease")
	}
	overlap := func(e scheduler.Entry) bool {
		return e.Outcome == scheduler.Skipped && e.Token == term.Token() && e.Ticks >= 2
	}
	if e := s.entry("long", "overlap", overlap); e.Detail != "overlap" {
		t.Errorf("%+v, want overlap", e)
	}
	status, err := s.inspect.Status(t.Context())
	if err != nil || len(status.Running) != 1 || status.Running[0].RunID != long.ID() || status.Running[0].Replica != long.Replica {
		t.Errorf("running: %+v, %v; want %s", status.Running, err, long.ID())
	}
	select {
	case <-a.done:
		t.Error("Run has returned before the job")
	default:
	}
	close(finish)
	receive(t, a.done, "the return of Run")
	if a.err != nil {
		t.Errorf("Run returned %v", a.err)
	}
	end := s.entry("long", "the end of the run", func(e scheduler.Entry) bool { return e.RunID == long.ID() })
	if end.Outcome != scheduler.Succeeded || end.Replica != long.Replica || end.Attempt != 1 {
		t.Errorf("%+v, want that %s has succeeded", end, long.Replica)
	}
	next := s.run("long", long.Tick)
	if next.Token != term.Token() {
		t.Errorf("the next run has token %d, want %d", next.Token, term.Token())
	}
	s.accounted("long", next.Tick)
	inOrder(t, s.ticks("long"), true)
}

func TestS6WhatIsNewOrChangedStartsFromNowAndNothingElseCountsAsAChange(t *testing.T) {
	t.Parallel()
	s, back := replaced(t)
	s.accounted("all", back.Truncate(time.Second))
	for _, e := range s.history("all") { // another spelling and timeout have lost no tick
		if e.Outcome == scheduler.Skipped {
			t.Errorf("%+v", e)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range s.ran {
		fresh := strings.HasPrefix(run.Replica, "b-") && (run.Job == "new" || run.Job == "changed")
		if fresh && !run.Tick.After(back) {
			t.Errorf("%s ran for the tick %v, before it was there at %v", run.Job, run.Tick, back)
		}
	}
}
