//go:build unix

package singleton_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

// trigger waits for a line, asks for runs of "allow" and "skip" in turn, all at once, and says what became of each.
func (o order) trigger(st store.Store) error {
	in, err := scheduler.NewInspector(st, o.Group, o.ID)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	bufio.NewScanner(os.Stdin).Scan()
	var wg sync.WaitGroup
	for n := range o.Triggers {
		wg.Go(func() {
			job := [...]string{"allow", "skip"}[n%2]
			r, err := in.Trigger(context.Background(), job, time.Time{})
			if err != nil {
				fmt.Println("lost", job, err)
				return
			}
			e, err := r.Wait(context.Background())
			switch {
			case errors.Is(err, scheduler.ErrRefused):
				fmt.Println(r.ID, job, "refused", err)
			case err != nil:
				fmt.Println(r.ID, job, "lost", err)
			default:
				fmt.Println(r.ID, job, e.Outcome, e.RunID)
			}
		})
	}
	wg.Wait()
	fmt.Println("done")
	return nil
}

// TestThousandTriggersAreAccountedFor: ten processes ask for a thousand runs at once, and leadership changes meanwhile. Each
// request has come to one run, or to a refusal with its reason.
func TestThousandTriggersAreAccountedFor(t *testing.T) {
	t.Parallel()
	s := newShift(newGroup(t))
	jobs := []scheduler.Job{
		{Name: "allow", Spec: "0 0 0 1 1 *", Overlap: scheduler.OverlapAllow},
		{Name: "skip", Spec: "0 0 0 1 1 *"},
	}
	cfg := scheduler.Config{ID: "a", Lease: far, History: 2000}
	a := s.work(s.store(s.server.Addr()), cfg, jobs...)
	receive(t, a.elected, "leadership")
	cfg.ID = "b"
	b := s.work(s.store(s.server.Addr()), cfg, jobs...)
	var children []*child
	for n := range 10 {
		c := s.child(order{ID: fmt.Sprint("p", n), Triggers: 100})
		c.expect("ready")
		children = append(children, c)
	}
	for _, c := range children {
		c.say("go")
	}
	receive(t, s.started, "a run")
	if err := a.Resign(t.Context()); err != nil {
		t.Error(err)
	}
	receive(t, b.elected, "leadership of the other")
	ran, counts := make(map[string]int), make(map[string]int)
	answers := make(map[string]string) // by request
	for _, c := range children {
		for line := c.hear(); line != "done"; line = c.hear() {
			f := strings.Fields(line)
			counts[f[1]+" "+f[2]]++
			answers[f[0]] = f[2]
			if f[2] == "lost" {
				t.Error(line)
			}
			if f[2] == "refused" && !strings.Contains(line, "overlap: run skip@") {
				t.Errorf("no reason: %s", line)
			}
		}
	}
	s.mu.Lock()
	for _, run := range s.ran {
		ran[run.Request]++
	}
	s.mu.Unlock()
	told := make(map[string]int)
	for _, job := range jobs {
		for _, e := range s.history(job.Name) {
			if told[e.Request]++; e.Outcome != scheduler.Succeeded {
				t.Errorf("%+v", e)
			}
		}
	}
	for id, answer := range answers {
		want := 0
		if answer == string(scheduler.Succeeded) {
			want = 1
		}
		if ran[id] != want || told[id] != want {
			t.Errorf("%s: answer %s, %d runs, %d entries", id, answer, ran[id], told[id])
		}
	}
	if len(answers) != 1000 || counts["allow succeeded"] != 500 || counts["skip succeeded"] == 0 ||
		counts["skip succeeded"]+counts["skip refused"] != 500 {
		t.Errorf("%d answers: %v", len(answers), counts)
	}
	t.Log(counts)
}

// TestTriggerOfALeaderThatIsKilledTellsTheTruth: the leader dies by SIGKILL while the run goes on.
func TestTriggerOfALeaderThatIsKilledTellsTheTruth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rerun   bool
		outcome scheduler.Outcome
		attempt int
	}{
		"record": {false, scheduler.Interrupted, 1},
		"rerun":  {true, scheduler.Succeeded, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShift(newGroup(t))
			a := s.child(order{ID: "a", Manual: true, Rerun: c.rerun})
			leads := func(id string) {
				eventually(t, "leadership of "+id, func() bool {
					st, err := s.inspect.Status(t.Context())
					return err == nil && strings.HasPrefix(st.Leader.Replica, id+"-") && len(st.Jobs) == 1
				})
			}
			leads("a")
			s.child(order{ID: "b", Manual: true, Rerun: c.rerun})
			r, err := s.inspect.Trigger(t.Context(), "long", time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			run := a.hear()
			a.kill()
			e, err := r.Wait(t.Context())
			if err != nil || e.Outcome != c.outcome || e.Attempt != c.attempt || e.RunID != run || !strings.HasSuffix(run, "+"+r.ID) {
				t.Errorf("%+v, %v, want the end of %s", e, err, run)
			}
		})
	}
}

// TestB37AndB54RequestsOutliveTheirLeader: a pause, a trigger and a resume, and a leader that is killed between each.
func TestB37AndB54RequestsOutliveTheirLeader(t *testing.T) {
	t.Parallel()
	s := newShift(newGroup(t))
	job := func() scheduler.Job {
		return scheduler.Job{Name: "tick", Spec: everySecond, CatchUp: scheduler.CatchUpAll}
	}
	done := func(r *scheduler.Request, err error) scheduler.Entry {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.Wait(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	a := s.work(s.store(s.server.Addr()), scheduler.Config{ID: "a"}, job())
	s.run("tick", time.Time{})
	done(s.inspect.Pause(t.Context(), "tick", scheduler.Pause{Reason: "why"}))
	paused := time.Now()
	b := s.work(s.store(s.server.Addr()), scheduler.Config{ID: "b"}, job())
	a.end()
	e := done(s.inspect.Trigger(t.Context(), "tick", time.Time{}))
	if e.Outcome != scheduler.Succeeded || e.Reason != scheduler.ReasonManual {
		t.Errorf("%+v", e)
	}
	isPaused := func(e scheduler.Entry) bool { return e.Outcome == scheduler.Skipped && e.Detail == "paused" }
	s.entry("tick", "paused", isPaused)
	b.end()
	resume, err := s.inspect.Resume(t.Context(), "tick") // while nobody leads
	if err != nil {
		t.Fatal(err)
	}
	s.work(s.store(s.server.Addr()), scheduler.Config{ID: "c"}, job())
	done(resume, nil)
	resumed := time.Now()
	s.accounted("tick", s.run("tick", resumed).Tick)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, run := range s.ran {
		if run.Request == "" && run.Tick.After(paused) && run.Tick.Before(resumed.Add(-time.Second)) {
			t.Errorf("%s has started while paused", run.ID())
		}
	}
}
