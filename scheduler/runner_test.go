package scheduler

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestB39PanicAndGoexitAreFailures(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "* * * * * *", Do: func(_ context.Context, run Run) error {
			switch run.Tick.Second() {
			case 1:
				panic("a bug")
			case 2:
				runtime.Goexit()
			case 3:
				panic(errors.New("an error"))
			case 4:
				return errors.New(strings.Repeat("long ", 10_000))
			case 5:
				return (*nilError)(nil)
			}
			return nil
		}})
		pass(6500 * time.Millisecond)
		equal(t, "history", c.history("a"), append(every(1, 1, 5, "schedule failed"), "00:00:06#1 schedule succeeded"))
		got := c.entries("a")
		for i, want := range []string{"panic: a bug\ngoroutine ", "runtime.Goexit", "panic: an error\ngoroutine ", "long long", "nil pointer"} {
			if !strings.Contains(got[i].Detail, want) || len(got[i].Detail) > maxDetail {
				t.Errorf("%q is not in %.200q", want, got[i].Detail)
			}
		}
		if !strings.Contains(got[0].Detail, "runner_test.go") {
			t.Errorf("the stack is not in %q", got[0].Detail)
		}
	})
}

// nilError is an error whose text cannot be had from a nil pointer.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func TestTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		causes := make(chan error, 1)
		c.start("r1", nil,
			Job{Name: "heeds", Spec: "*/10 * * * * *", Timeout: 2 * time.Second, Do: func(ctx context.Context, run Run) error {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				if !run.Valid() {
					t.Error("a timeout does not make a run invalid: nobody else may take it over")
				}
				return ctx.Err()
			}},
			Job{Name: "finishes", Spec: "*/10 * * * * *", Timeout: 2 * time.Second, Do: sleeps(5 * time.Second)},
		)
		pass(16 * time.Second)
		if cause := <-causes; !errors.Is(cause, context.DeadlineExceeded) {
			t.Errorf("the cause is %v", cause)
		}
		equal(t, "heeds", c.history("heeds"), []string{"00:00:10#1 schedule timed out"})
		if e := c.entries("heeds")[0]; e.Ended.Sub(e.Started) != 2*time.Second {
			t.Errorf("%+v", e)
		}
		equal(t, "finishes", c.history("finishes"), []string{"00:00:10#1 schedule succeeded"})
	})
}

func TestGraceOfAStoppingReplica(t *testing.T) {
	for _, tt := range []struct {
		name    string
		do      func(ended *time.Time, cause *error) Func
		took    time.Duration // from stop to the return of Run
		err     error
		history []string
	}{
		{"it ends by itself", func(*time.Time, *error) Func { return takes(4 * time.Second) }, 2 * time.Second, nil, []string{
			"00:00:10#1 schedule succeeded",
		}},
		{"it ends when its context does", func(ended *time.Time, cause *error) Func {
			return func(ctx context.Context, run Run) error {
				<-ctx.Done()
				*ended, *cause = time.Now(), context.Cause(ctx)
				return *cause
			}
		}, 8 * time.Second, nil, []string{"00:00:10#1 schedule interrupted"}},
		{"it finishes within what is left", func(*time.Time, *error) Func {
			return func(ctx context.Context, run Run) error { <-ctx.Done(); time.Sleep(time.Second); return nil }
		}, 9 * time.Second, nil, []string{"00:00:10#1 schedule succeeded"}},
		{"it ignores its context", func(*time.Time, *error) Func {
			return sleeps(15 * time.Second)
		}, 10 * time.Second, ErrUnfinished, []string{"00:00:10#1 schedule interrupted"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				var ended time.Time
				var cause error
				job := Job{Name: "a", Spec: "10 0 * * * *", Do: tt.do(&ended, &cause)}
				r1 := c.start("r1", func(cfg *Config) { cfg.Grace = 10 * time.Second }, job)
				c.start("r2", nil, job)
				pass(12 * time.Second)
				r1.cancel()
				<-r1.done
				r1.checked = true
				if !errors.Is(r1.err, tt.err) {
					t.Errorf("Run returned %v, want %v", r1.err, tt.err)
				}
				if took := time.Since(day2000().Add(12 * time.Second)); took != tt.took {
					t.Errorf("Run returned after %v, want %v", took, tt.took)
				}
				if !ended.IsZero() && (!errors.Is(cause, ErrStopping) || ended.Sub(day2000()) != 20*time.Second) {
					t.Errorf("the context ended at %v with %v", ended, cause)
				}
				pass(1500 * time.Millisecond)
				if tt.err != nil { // given up: the session is not left but lapses, and only then is the run over
					if len(c.entries("a")) > 0 || len(c.records(bucketRun)) != 1 {
						t.Errorf("history %v, open %v", c.history("a"), c.records(bucketRun))
					}
				}
				pass(5 * time.Second)
				equal(t, "history", c.history("a"), tt.history)
			})
		})
	}
}

func TestMaxRunning(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var running, most atomic.Int32
		do := func(ctx context.Context, run Run) error {
			n := running.Add(1)
			defer running.Add(-1)
			most.Store(max(n, most.Load()))
			return takes(700*time.Millisecond)(ctx, run)
		}
		var jobs []Job
		for _, name := range []string{"a", "b", "c", "d", "e"} {
			jobs = append(jobs, Job{Name: name, Spec: "*/10 * * * * *", CatchUp: CatchUpAll, Do: do})
		}
		jobs = append(jobs, Job{Name: "often", Spec: "* * * * * *", CatchUp: CatchUpAll, Overlap: OverlapAllow, Do: do})
		c.start("r1", func(cfg *Config) { cfg.MaxRunning = 2 }, jobs...)
		pass(59500 * time.Millisecond)
		if most.Load() != 2 {
			t.Errorf("%d at once", most.Load())
		}
		for _, j := range jobs[:5] { // the job that is due often does not keep the others from running
			equal(t, "history of "+j.Name, c.history(j.Name), []string{
				"00:00:10#1 schedule succeeded", "00:00:20#1 schedule succeeded", "00:00:30#1 schedule succeeded",
				"00:00:40#1 schedule succeeded", "00:00:50#1 schedule succeeded",
			})
		}
		if n := len(c.history("often")); n < 50 {
			t.Errorf("%d runs of the frequent job in a minute", n)
		}
	})
}

// A job that could fill all runs by itself does not keep others waiting: the oldest tick comes first.
func TestMaxRunningIsFair(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		jobs := []Job{{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll, Overlap: OverlapAllow, Do: takes(1990 * time.Millisecond)}}
		for _, name := range []string{"b", "c", "d", "e", "f"} {
			jobs = append(jobs, Job{Name: name, Spec: "*/10 * * * * *", CatchUp: CatchUpAll, Do: takes(700 * time.Millisecond)})
		}
		c.start("r1", func(cfg *Config) { cfg.MaxRunning = 2 }, jobs...)
		pass(2 * time.Minute)
		for _, j := range jobs[1:] {
			if n := len(c.executions(j.Name)); n < 9 {
				t.Errorf("job %s has run %d times of 12", j.Name, n)
			}
		}
	})
}

func TestRunAgainAndTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		s, err := New(c.store, Config{Group: "g", ID: "r1", Lease: 3 * time.Second, Seconds: true})
		if err != nil {
			t.Fatal(err)
		}
		var ticks []string
		if err := s.Add(Job{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll, Do: func(_ context.Context, run Run) error {
			ticks = append(ticks, run.Tick.Format("15:04:05")+" by "+run.Replica)
			return nil
		}}); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for range 3 {
			ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
			done := make(chan error)
			go func() { done <- s.Run(ctx) }()
			synctest.Wait()
			if err := s.Run(ctx); err == nil || !strings.Contains(err.Error(), "running already") {
				t.Errorf("a second Run: %v", err)
			}
			ids = append(ids, s.ID())
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
			cancel()
		}
		if len(ticks) != 7 || ids[0] == ids[1] || ids[1] == ids[2] || !strings.HasSuffix(ticks[6], ids[2]) {
			t.Errorf("ticks %v, IDs %v", ticks, ids)
		}
	})
}
