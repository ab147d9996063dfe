//go:build unix

package singleton_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-singleton/singleton/scheduler"
)

// attempts waits until a run has so many attempts in history, and checks that they are numbered without a gap.
func (s *shift) attempts(run string, n int) (all []scheduler.Entry) {
	s.t.Helper()
	job, _, _ := strings.Cut(run, "@")
	eventually(s.t, fmt.Sprintf("%d attempts of %s in the history", n, run), func() bool {
		all = nil
		for _, e := range s.history(job) {
			if e.RunID == run {
				all = append(all, e)
			}
		}
		return len(all) >= n
	})
	for i, e := range all {
		if e.Attempt != i+1 {
			s.t.Errorf("attempt %d stands where attempt %d belongs: %+v", e.Attempt, i+1, e)
		}
	}
	return all
}

// TestRetriesGoOnThroughChangesOfTheLeader: after each attempt that fails another replica leads.
func TestRetriesGoOnThroughChangesOfTheLeader(t *testing.T) {
	t.Parallel()
	s := newShift(newGroup(t))
	const delay = time.Second
	job := scheduler.Job{Name: "retry", Spec: everySecond, Retry: scheduler.Retry{Attempts: 5, Delay: delay, MaxDelay: delay},
		Do: func(_ context.Context, run scheduler.Run) error {
			if run.Attempt < 5 {
				return errors.New("not yet")
			}
			return nil
		}}
	a := s.work(s.store(s.server.Addr()), scheduler.Config{ID: "a", Lease: long}, job)
	b := s.work(s.store(s.server.Addr()), scheduler.Config{ID: "b", Lease: long}, job)
	first := receive(t, s.started, "a run")
	for n := 1; n < 5; n++ {
		s.attempts(first.ID(), n)
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
	all := s.attempts(first.ID(), 5)
	tokens := map[uint64]bool{}
	for i, e := range all {
		tokens[e.Token] = true
		want, why := scheduler.Failed, scheduler.ReasonRetry
		if i == 0 {
			why = first.Reason
		}
		if i == 4 {
			want = scheduler.Succeeded
		}
		if e.Outcome != want || e.Reason != why {
			t.Errorf("%+v, want that it has %s, because of %s", e, want, why)
		}
		if i > 0 && e.Started.Sub(all[i-1].Ended) < delay {
			t.Errorf("attempt %d came %v after the end of the one before", e.Attempt, e.Started.Sub(all[i-1].Ended))
		}
	}
	if len(tokens) < 4 {
		t.Errorf("only %d terms have claimed the five attempts", len(tokens))
	}
}

// TestRetryOfARunWhoseProcessWasKilled: its process is killed when its attempt has failed, and before the next one is due.
func TestRetryOfARunWhoseProcessWasKilled(t *testing.T) {
	t.Parallel()
	s := newShift(newGroup(t))
	other := s.child(order{ID: "a", Fails: true})
	id := other.hear()
	s.attempts(id, 1)
	other.kill()
	b := s.work(s.store(s.server.Addr()), scheduler.Config{ID: "b"}, scheduler.Job{Name: "long", Spec: everySecond, Retry: failing})
	all := s.attempts(id, 2)
	term := receive(t, b.elected, "another leader")
	if all[0].Outcome != scheduler.Failed || all[1].Outcome != scheduler.Succeeded || all[1].Reason != scheduler.ReasonRetry ||
		all[1].Token != term.Token() || all[1].Started.Sub(all[0].Ended) < failing.Delay {
		t.Errorf("%+v", all)
	}
}

// TestReplaceStartsWhenTheRunHasEndedWhereverItGoesOn: each tick replaces the run before it, which goes on where the leader
// was.
func TestReplaceStartsWhenTheRunHasEndedWhereverItGoesOn(t *testing.T) {
	t.Parallel()
	s := newShift(newGroup(t))
	var active atomic.Int32
	var mu sync.Mutex
	causes := map[string]error{}
	job := scheduler.Job{Name: "replace", Spec: everySecond, Overlap: scheduler.OverlapReplace, OnInterrupt: scheduler.InterruptRerun,
		Do: func(ctx context.Context, run scheduler.Run) error {
			if active.Add(1) > 1 {
				t.Errorf("%s starts beside another run", run.ID())
			}
			defer active.Add(-1)
			<-ctx.Done()
			mu.Lock()
			defer mu.Unlock()
			causes[run.ID()] = context.Cause(ctx)
			return context.Cause(ctx)
		}}
	a := s.work(s.store(s.server.Addr()), scheduler.Config{ID: "a", Lease: long}, job)
	b := s.work(s.store(s.server.Addr()), scheduler.Config{ID: "b", Lease: long}, job)
	elsewhere := 0
	var last scheduler.Run
	for range 4 {
		run := s.run("replace", last.Tick)
		leader := a
		if strings.HasPrefix(run.Replica, "b-") {
			leader = b
		}
		if err := leader.Resign(t.Context()); err != nil {
			t.Error(err)
		}
		if last = s.run("replace", run.Tick); last.Replica != run.Replica {
			elsewhere++
		}
		ends := s.attempts(run.ID(), 1)
		mu.Lock()
		cause := causes[run.ID()]
		mu.Unlock()
		if e := ends[0]; len(ends) > 1 || e.Outcome != scheduler.Cancelled || !strings.HasPrefix(e.Detail, "replaced by the tick of ") ||
			!errors.Is(cause, scheduler.ErrReplaced) {
			t.Errorf("%+v, cause %v", ends, cause)
		}
	}
	if elsewhere == 0 {
		t.Error("no run was replaced by one of another replica")
	}
}

// TestJitterIsTheSameWhoeverLeads: the delay of a tick follows from its name.
func TestJitterIsTheSameWhoeverLeads(t *testing.T) {
	t.Parallel()
	s := newShift(newGroup(t))
	const most = time.Second - 1
	job := scheduler.Job{Name: "jitter", Spec: everySecond, Jitter: time.Minute,
		Do: func(_ context.Context, run scheduler.Run) error {
			sum := sha256.Sum256([]byte(run.ID()))
			delay := time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(most+1))
			if now := time.Now(); now.Before(run.Tick.Add(delay)) {
				t.Errorf("%s starts at %v, %v too early", run.ID(), now, run.Tick.Add(delay).Sub(now))
			}
			return nil
		}}
	a := s.work(s.store(s.server.Addr()), scheduler.Config{ID: "a", Lease: long}, job)
	b := s.work(s.store(s.server.Addr()), scheduler.Config{ID: "b", Lease: long}, job)
	var last scheduler.Run
	for range 4 {
		for range 2 {
			last = s.run("jitter", last.Tick)
		}
		leader := a
		if strings.HasPrefix(last.Replica, "b-") {
			leader = b
		}
		if err := leader.Resign(t.Context()); err != nil {
			t.Error(err)
		}
	}
	last = s.run("jitter", last.Tick)
	s.accounted("jitter", last.Tick)
	inOrder(t, s.ticks("jitter"), true)
}

// failing is the policy of the job in a child whose order says that it fails.
var failing = scheduler.Retry{Attempts: 2, Delay: 6 * time.Second}
