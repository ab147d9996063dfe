package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/schedule"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

func TestConfigProblemsAreReportedAtOnce(t *testing.T) {
	_, err := New(nil, Config{Group: "a b", ID: "{}", Lease: time.Millisecond, Grace: -1, History: 10_001, MaxRunning: -1})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"no store", "grace", "history", "max running", "group", "replica", "lease"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	s, err := New(memstore.New(), Config{Group: "g"})
	if err != nil {
		t.Fatal(err)
	}
	if c := s.cfg; c.Lease != 15*time.Second || c.Grace != 25*time.Second || c.History != 100 || c.MaxRunning != 0 || c.Logger == nil {
		t.Errorf("%+v", c)
	}
}

func TestJobProblemsAreReportedAtOnce(t *testing.T) {
	s, err := New(memstore.New(), Config{Group: "g"})
	if err != nil {
		t.Fatal(err)
	}
	err = s.Add(
		Job{Name: "good", Spec: "* * * * *", Do: work},
		Job{Name: "a/b", Spec: "61 * * * *", Overlap: 9, CatchUp: 9, OnInterrupt: 9, CatchUpMax: -1, Window: -1, Timeout: -1},
		Job{Name: "empty"},
		Job{Name: "both", Spec: "* * * * *", Do: work, CatchUp: CatchUpAll, Overlap: OverlapSkip},
		Job{Name: "long", Spec: strings.Repeat("1,", 600) + "1 * * * *", Do: work},
		Job{Name: "many", Spec: "* * * * *", Do: work, CatchUpMax: 10_001},
	)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`"a/b"`, "Do is nil", "61", "Overlap 9", "CatchUp 9", "OnInterrupt 9", "CatchUpMax -1", "Window -1", "Timeout -1",
		`"empty"`, "Spec is empty", `"both"`, "OverlapSkip drops some", `"long"`, "1209 bytes", "CatchUpMax 10001",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
	if jobs := s.Jobs(); len(jobs) != 0 {
		t.Errorf("some were added: %v", jobs)
	}
}

func TestJobsShowTheirDefaults(t *testing.T) {
	s, err := New(memstore.New(), Config{Group: "g"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Add(Job{Name: "b", Spec: "@daily", Do: work, CatchUp: CatchUpAll}, Job{Name: "a", Spec: "@daily", Do: work}); err != nil {
		t.Fatal(err)
	}
	got := s.Jobs()
	if len(got) != 2 || got[0].Name != "a" || got[1].Name != "b" || got[0].Overlap != OverlapSkip || got[1].Overlap != OverlapQueue ||
		got[0].CatchUpMax != 100 || got[0].Window != 24*time.Hour || got[0].CatchUp != CatchUpLatest || got[0].OnInterrupt != InterruptRecord {
		t.Errorf("%+v", got)
	}
}

func TestB38NamesAreUnique(t *testing.T) {
	s, err := New(memstore.New(), Config{Group: "g"})
	if err != nil {
		t.Fatal(err)
	}
	a := Job{Name: "a", Spec: "@daily", Do: work}
	if err := s.Add(a, a); !errors.Is(err, ErrDuplicate) || len(s.Jobs()) != 0 {
		t.Errorf("twice in one call: %v, %v", err, s.Jobs())
	}
	if err := s.Add(a); err != nil {
		t.Fatal(err)
	}
	if err := s.Add(Job{Name: "b", Spec: "@daily", Do: work}, a); !errors.Is(err, ErrDuplicate) || len(s.Jobs()) != 1 {
		t.Errorf("again: %v, %v", err, s.Jobs())
	}
	if err := s.Remove("b"); !errors.Is(err, ErrUnknownJob) {
		t.Errorf("Remove of what is not there: %v", err)
	}
	if err := s.Remove("a"); err != nil || len(s.Jobs()) != 0 {
		t.Errorf("Remove: %v", err)
	}
	if err := s.Add(a); err != nil {
		t.Errorf("Add after Remove: %v", err)
	}
}

func TestB38JobsMayCallTheirScheduler(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var r *replica
		r = c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *", Do: func(ctx context.Context, run Run) error {
			if run.Tick.Second() != 10 {
				return nil
			}
			r.add(Job{Name: "added", Spec: "* * * * * *"}, Job{Name: "b", Spec: "* * * * * *"})
			r.Jobs()
			time.Sleep(2500 * time.Millisecond)
			return errors.Join(r.Remove("b"), r.Check(), r.Resign(ctx), r.Remove("a"))
		}})
		c.start("r2", nil, Job{Name: "a", Spec: "*/10 * * * * *"}, Job{Name: "added", Spec: "* * * * * *"})
		time.Sleep(13500 * time.Millisecond)
		equal(t, "a", c.history("a"), []string{"00:00:10#1 schedule succeeded"})
		equal(t, "added", c.history("added"), every(11, 1, 3, "schedule succeeded"))
		equal(t, "b", c.started("b"), []string{"r1 00:00:11#1 schedule", "r1 00:00:12#1 schedule"})
	})
}

func TestRemovedJobsGoOnRunning(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r := c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *", Do: takes(15 * time.Second)})
		time.Sleep(11 * time.Second)
		if err := r.Remove("a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule succeeded"})
		r.add(Job{Name: "a", Spec: "*/10 * * * * *"})
		time.Sleep(time.Second)
		// The next owner applies its CatchUp, and says why the others were skipped.
		equal(t, "history", c.history("a"), []string{
			"00:00:10#1 schedule succeeded", "00:00:20 overlap", "00:00:30#1 schedule succeeded",
		})
	})
}

func TestUnownedJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		mine, other := Job{Name: "mine", Spec: "* * * * * *"}, Job{Name: "other", Spec: "0 * * * * *"}
		r1 := c.start("r1", nil, mine, other)
		time.Sleep(time.Minute + time.Second)
		r1.stop()
		r2 := c.start("r2", nil, mine)
		time.Sleep(3 * time.Minute)
		since := day2000().Add(time.Minute + time.Second)
		if got := status(t, c).Jobs[1]; got.Name != "other" || !got.Unowned.Equal(since) || !got.Next.IsZero() {
			t.Errorf("%+v", got)
		}
		equal(t, "history", c.history("other"), []string{"00:01:00#1 schedule succeeded"})
		r2.stop()
		r3 := c.start("r3", nil, mine, other)
		time.Sleep(30 * time.Second)
		equal(t, "history", c.history("other"), []string{
			"00:01:00#1 schedule succeeded", "00:02:00-00:03:00 ×2 unowned", "00:04:00#1 catch-up succeeded",
		})
		if got := status(t, c).Jobs[1]; !got.Unowned.IsZero() {
			t.Errorf("%+v", got)
		}
		r3.stop()
		// After a week without an owner it is dropped, with its history.
		c.start("r4", func(cfg *Config) { cfg.Lease = 10 * time.Minute }, Job{Name: "mine", Spec: "0 0 * * * *"})
		time.Sleep(7*24*time.Hour - time.Minute)
		if len(c.records(historyBucket("other"))) == 0 || len(c.records(bucketJob)) != 2 {
			t.Error("it is dropped too early")
		}
		time.Sleep(2 * time.Hour)
		if n := len(c.records(historyBucket("other"))); n != 0 || len(c.records(bucketJob)) != 1 {
			t.Errorf("%d entries, jobs %v", n, c.records(bucketJob))
		}
	})
}

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
		time.Sleep(6500 * time.Millisecond)
		equal(t, "history", c.history("a"), append(every(1, 1, 5, "schedule failed"), "00:00:06#1 schedule succeeded"))
		got := c.entries("a")
		for i, want := range []string{"panic: a bug\ngoroutine ", "runtime.Goexit", "panic: an error\ngoroutine ", "long long", "nil pointer"} {
			if !strings.Contains(got[i].Detail, want) || len(got[i].Detail) > maxDetail {
				t.Errorf("%q is not in %.200q", want, got[i].Detail)
			}
		}
		if !strings.Contains(got[0].Detail, "jobs_test.go") {
			t.Errorf("the stack is not in %q", got[0].Detail)
		}
	})
}

// nilError is an error whose text cannot be had from a nil pointer.
type nilError struct{ text string }

func (e *nilError) Error() string { return e.text }

func TestTimeout(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var cause error
		c.start("r1", nil,
			Job{Name: "heeds", Spec: "*/10 * * * * *", Timeout: 2 * time.Second, Do: func(ctx context.Context, run Run) error {
				<-ctx.Done()
				cause = context.Cause(ctx)
				if !run.Valid() {
					t.Error("a timeout does not make a run invalid: nobody else may take it over")
				}
				return ctx.Err()
			}},
			Job{Name: "finishes", Spec: "*/10 * * * * *", Timeout: 2 * time.Second, Do: sleeps(5 * time.Second)},
		)
		time.Sleep(16 * time.Second)
		if !errors.Is(cause, context.DeadlineExceeded) {
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
				time.Sleep(12 * time.Second)
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
				time.Sleep(1500 * time.Millisecond)
				if tt.err != nil { // given up: the session is not left but lapses, and only then is the run over
					if len(c.entries("a")) > 0 || len(c.records(bucketRun)) != 1 {
						t.Errorf("history %v, open %v", c.history("a"), c.records(bucketRun))
					}
				}
				time.Sleep(5 * time.Second)
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
		time.Sleep(59500 * time.Millisecond)
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
		time.Sleep(2 * time.Minute)
		for _, j := range jobs[1:] {
			if n := len(c.executions(j.Name)); n < 9 {
				t.Errorf("job %s has run %d times of 12", j.Name, n)
			}
		}
	})
}

// badSchedule is a schedule with a fault that shows at some instant.
type badSchedule struct {
	from time.Time
	next func(t time.Time) time.Time
}

func (b badSchedule) Next(t time.Time) time.Time {
	if t.Before(b.from) {
		return everyNth(1).Next(t)
	}
	return b.next(t)
}

func TestForeignSchedulesAreGuarded(t *testing.T) {
	for _, tt := range []struct {
		name string
		next func(t time.Time) time.Time
		want string
	}{
		{"panic", func(time.Time) time.Time { panic("a bug in Next") }, "schedule panicked: a bug in Next"},
		{"back", func(t time.Time) time.Time { return t.Add(-time.Hour) }, "schedule went back"},
		{"still", func(t time.Time) time.Time { return t }, "schedule went back"},
		{"goexit", func(time.Time) time.Time { runtime.Goexit(); return time.Time{} }, "ended its goroutine"},
		{"silent", nil, "does not answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				next := tt.next
				if next == nil {
					silent := make(chan struct{})
					defer close(silent)
					next = func(time.Time) time.Time { <-silent; return time.Time{} }
				}
				c.start("r1", nil,
					Job{Name: "bad", Spec: "bad", Schedule: badSchedule{day2000().Add(3 * time.Second), next}},
					Job{Name: "good", Spec: "* * * * * *", CatchUp: CatchUpAll},
				)
				time.Sleep(10500 * time.Millisecond)
				var good []string
				for _, e := range c.entries("good") { // some may be two seconds late: the loop has waited for an answer
					good = append(good, e.Tick.Format("15:04:05#1 ")+string(e.Outcome))
				}
				equal(t, "good", good, every(1, 1, 10, "succeeded"))
				jobs := status(t, c).Jobs
				if !strings.Contains(jobs[0].Problem, tt.want) || jobs[1].Problem != "" {
					t.Errorf("problems %q and %q, want %q", jobs[0].Problem, jobs[1].Problem, tt.want)
				}
				for _, line := range c.history("bad") {
					if !strings.Contains(line, "succeeded") {
						t.Errorf("history of bad: %v", c.history("bad"))
					}
				}
				if !strings.Contains(c.log(), "job is not scheduled any more") {
					t.Error("the log does not say it")
				}
			})
		})
	}
}

func TestForeignSchedules(t *testing.T) {
	for _, tt := range []struct {
		name     string
		schedule schedule.Schedule
		want     []string
	}{
		{"robfig", robfig("*/4 * * * * *"), []string{"00:00:04", "00:00:08"}},
		{"never", never{}, nil},
		{"sub-second", subSecond{}, []string{
			"00:00:01", "00:00:02", "00:00:03", "00:00:04", "00:00:05", "00:00:06", "00:00:07", "00:00:08", "00:00:09",
		}},
		{"ours, parsed elsewhere", mustParse("*/3 * * * * *"), []string{"00:00:03", "00:00:06", "00:00:09"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.start("r1", nil, Job{Name: "a", Spec: "label", Schedule: tt.schedule, CatchUp: CatchUpAll})
				time.Sleep(9500 * time.Millisecond)
				var got []string
				for _, e := range c.executions("a") {
					got = append(got, e.run.Tick.Format("15:04:05"))
				}
				equal(t, "ticks", got, tt.want)
				if spec := status(t, c).Jobs[0].Spec; spec != "label" {
					t.Errorf("the ledger calls it %q", spec)
				}
			})
		})
	}
}

// subSecond fires every 300 ms.
type subSecond struct{}

func (subSecond) Next(t time.Time) time.Time {
	return t.Truncate(time.Millisecond).Add(300 * time.Millisecond)
}

func mustParse(spec string) *schedule.Expr {
	e, err := schedule.Parse(spec, schedule.Options{Seconds: true})
	if err != nil {
		panic(err)
	}
	return e
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

func TestPermanentFaultsEndRun(t *testing.T) {
	fault := store.Permanent("give the user the right to write", errors.New("NOPERM"))
	for _, tt := range []struct {
		name  string
		fails func(call call) bool
	}{
		{"of commits", func(call call) bool { return call.op == "commit" }},
		{"of reads", func(call call) bool { return call.op == "read" }},
		{"of positions", func(call call) bool { return call.op == "position" }},
		{"of the subscription", func(call call) bool { return call.op == "watch" && call.about == "2" }},
		{"of everything", func(call) bool { return true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.script.follow(func(call call) fate {
					if tt.fails(call) {
						return fate{err: fault}
					}
					return fate{}
				})
				r := c.start("r1", nil, Job{Name: "a", Spec: "* * * * * *"})
				r.checked = true
				<-r.done
				if !errors.Is(r.err, store.ErrPermanent) || !strings.Contains(r.err.Error(), "NOPERM: give the user the right to write") {
					t.Errorf("Run returned %v", r.err)
				}
				if took := time.Since(day2000()); took > 5*time.Second {
					t.Errorf("after %v", took)
				}
			})
		})
	}
}

// Neither a running job nor an end that cannot be told keeps Run for longer than the grace.
func TestPermanentFaultWithRunningJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		grace := func(cfg *Config) { cfg.Grace = 10 * time.Second }
		r := c.start("r1", grace, Job{Name: "heeds", Spec: "*/10 * * * * *", Do: takes(time.Hour)},
			Job{Name: "ignores", Spec: "*/10 * * * * *", Do: sleeps(40 * time.Second)})
		r.checked = true
		time.Sleep(11 * time.Second)
		c.script.follow(func(call) fate { return fate{err: store.Permanent("use the new password", errors.New("WRONGPASS"))} })
		<-r.done
		if !errors.Is(r.err, store.ErrPermanent) || !errors.Is(r.err, ErrUnfinished) {
			t.Errorf("Run returned %v", r.err)
		}
		if took := time.Since(day2000()); took > 25*time.Second {
			t.Errorf("after %v", took)
		}
		time.Sleep(time.Minute)
	})
}

func TestCheckSeesAStandstill(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		gate := make(chan struct{})
		blocks := func(cfg *Config) { cfg.Logger = slog.New(gated{cfg.Logger.Handler(), gate}) }
		r := c.start("r1", blocks, Job{Name: "a", Spec: "*/10 * * * * *", Do: takes(15 * time.Second)})
		r2 := c.start("r2", nil, Job{Name: "a", Spec: "*/10 * * * * *"})
		time.Sleep(11 * time.Second)
		if err := r.Check(); err != nil {
			t.Error(err)
		}
		time.Sleep(130 * time.Second) // the leader's loop waits for a log handler
		if err := r.Check(); !errors.Is(err, errStandstill) {
			t.Errorf("Check: %v", err)
		}
		time.Sleep(25 * time.Second)
		if got := c.started("a"); !r2.leads() || len(got) < 2 || !strings.HasPrefix(got[1], "r2 ") {
			t.Errorf("nobody has taken over: %v", c.started("a"))
		}
		before := c.records(bucketJob)["a"]
		close(gate) // what the loop that was left behind still does changes nothing
		time.Sleep(time.Second)
		if err := r.Check(); err != nil || c.records(bucketJob)["a"] != before {
			t.Errorf("%v, job was %s, is %s", err, before, c.records(bucketJob)["a"])
		}
	})
}

// gated is a log handler that blocks on records of skipped ticks until its gate is open.
type gated struct {
	slog.Handler
	gate chan struct{}
}

func (g gated) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "ticks skipped" {
		<-g.gate
	}
	return g.Handler.Handle(ctx, r)
}

func (g gated) WithAttrs(a []slog.Attr) slog.Handler { return gated{g.Handler.WithAttrs(a), g.gate} }

// A follower that has never led sends nothing but what its elector sends.
func TestIdleFollowersSendNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		lease := func(cfg *Config) { cfg.Lease = 15 * time.Second }
		job := Job{Name: "a", Spec: "* * * * * *"}
		c.start("r1", lease, job)
		c.start("r2", lease, job)
		time.Sleep(10 * time.Minute)
		acquires, watches := c.script.count("r2", "acquire"), c.script.count("r2", "watch")
		if all := c.script.count("r2", ""); all != acquires+watches || watches != 2 || acquires > 60 {
			t.Errorf("%d calls in 40 leases, of them %d acquires and %d watches", all, acquires, watches)
		}
	})
}

// What a replica sends that has led and has nothing to tell: looks at the ledger's position, and compares once in a while.
func TestIdleReplicasThatHaveLed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		lease := func(cfg *Config) { cfg.Lease = 15 * time.Second }
		job := Job{Name: "a", Spec: "* * * * * *"}
		r1 := c.start("r1", lease, job)
		c.start("r2", lease, job)
		time.Sleep(time.Minute)
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		before := make(map[string]int)
		ops := []string{"acquire", "position", "read", "leader", "join", "post", "replicas", "commit", ""}
		for _, op := range ops {
			before[op] = c.script.count("r1", op)
		}
		time.Sleep(10 * time.Minute) // 40 leases
		got := make(map[string]int)
		for _, op := range ops {
			got[op] = c.script.count("r1", op) - before[op]
		}
		if got["join"]+got["post"]+got["replicas"]+got["commit"]+got["leader"] > 0 || got["position"] > 81 || got["read"] > 11 ||
			got[""] != got["acquire"]+got["position"]+got["read"] {
			t.Errorf("%v", got)
		}
	})
}

func status(t *testing.T, c *cluster) Status {
	t.Helper()
	in, err := NewInspector(c.store, "g")
	if err != nil {
		t.Fatal(err)
	}
	st, err := in.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(st.Jobs, func(a, b JobStatus) int { return strings.Compare(a.Name, b.Name) })
	return st
}
