package scheduler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

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
		Job{Name: "a/b", Spec: "61 * * * *", Overlap: 9, CatchUp: 9, OnInterrupt: 9, CatchUpMax: -1, Window: -1, Timeout: -1,
			Retry: Retry{Attempts: -1, Delay: -2, MaxDelay: -3}, Jitter: -4},
		Job{Name: "empty"},
		Job{Name: "both", Spec: "* * * * *", Do: work, CatchUp: CatchUpAll, Overlap: OverlapSkip},
		Job{Name: "long", Spec: strings.Repeat("1,", 600) + "1 * * * *", Do: work},
		Job{Name: "many", Spec: "* * * * *", Do: work, CatchUpMax: 10_001},
		Job{Name: "replace", Spec: "* * * * *", Do: work, CatchUp: CatchUpAll, Overlap: OverlapReplace},
		Job{Name: "often", Spec: "* * * * *", Do: work, Retry: Retry{Attempts: 101, Delay: time.Minute, MaxDelay: time.Second}},
		Job{Name: "soon", Spec: "* * * * *", Do: work, Retry: Retry{Attempts: 2, MaxDelay: time.Millisecond}},
		Job{Name: "once", Spec: "* * * * *", Do: work, Retry: Retry{Delay: time.Minute}},
	)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`"a/b"`, "Do is nil", "61", "Overlap 9", "CatchUp 9", "OnInterrupt 9", "CatchUpMax -1", "Window -1", "Timeout -1",
		`"empty"`, "Spec is empty", `"both"`, "OverlapReplace drop some", `"long"`, "1209 bytes", "CatchUpMax 10001",
		"Retry.Attempts -1", "Retry.Delay -2ns", "Retry.MaxDelay -3ns", "Jitter -4ns", `"replace": CatchUpAll`,
		"Retry.Attempts 101", "Retry.MaxDelay 1s is shorter than Retry.Delay, 1m0s", "Retry.MaxDelay 1ms is shorter than Retry.Delay, 1s",
		`"once": Retry has a delay and no attempts`,
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
	if err := s.Add(Job{Name: "b", Spec: "@daily", Do: work, CatchUp: CatchUpAll}, Job{Name: "a", Spec: "@daily", Do: work},
		Job{Name: "c", Spec: "@daily", Do: work, Retry: Retry{Attempts: 2}},
		Job{Name: "d", Spec: "@daily", Do: work, Retry: Retry{Attempts: 2, Delay: time.Hour}}); err != nil {
		t.Fatal(err)
	}
	got := s.Jobs()
	if len(got) != 4 || got[0].Name != "a" || got[1].Name != "b" || got[0].Overlap != OverlapSkip || got[1].Overlap != OverlapQueue ||
		got[0].CatchUpMax != 100 || got[0].Window != 24*time.Hour || got[0].CatchUp != CatchUpLatest || got[0].OnInterrupt != InterruptRecord ||
		got[0].Retry != (Retry{}) || got[2].Retry != (Retry{2, time.Second, 5 * time.Minute}) || got[3].Retry != (Retry{2, time.Hour, time.Hour}) {
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
		var self atomic.Pointer[replica]
		first := c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *", Do: func(ctx context.Context, run Run) error {
			if run.Tick.Second() != 10 {
				return nil
			}
			r := self.Load()
			r.add(Job{Name: "added", Spec: "* * * * * *"}, Job{Name: "b", Spec: "* * * * * *"})
			r.Jobs()
			time.Sleep(2500 * time.Millisecond)
			return errors.Join(r.Remove("b"), r.Check(), r.Resign(ctx), r.Remove("a"))
		}})
		self.Store(first)
		c.start("r2", nil, Job{Name: "a", Spec: "*/10 * * * * *"}, Job{Name: "added", Spec: "* * * * * *"})
		pass(13500 * time.Millisecond)
		equal(t, "a", c.history("a"), []string{"00:00:10#1 schedule succeeded"})
		equal(t, "added", c.history("added"), every(11, 1, 3, "schedule succeeded"))
		equal(t, "b", c.started("b"), []string{"r1 00:00:11#1 schedule", "r1 00:00:12#1 schedule"})
	})
}

func TestRemovedJobsGoOnRunning(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r := c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *", Do: takes(15 * time.Second)})
		pass(11 * time.Second)
		if err := r.Remove("a"); err != nil {
			t.Fatal(err)
		}
		pass(20 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule succeeded"})
		r.add(Job{Name: "a", Spec: "*/10 * * * * *"})
		pass(time.Second)
		// The next owner applies its CatchUp, and says why the others were skipped.
		equal(t, "history", c.history("a"), []string{
			"00:00:10#1 schedule succeeded", "00:00:20 overlap", "00:00:30#1 schedule succeeded",
		})
	})
}

func TestReplaceChangesJobsInOneStep(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r := c.start("r1", nil, Job{Name: "same", Spec: "* * * * * *"}, Job{Name: "changed", Spec: "*/2 * * * * *"},
			Job{Name: "gone", Spec: "*/2 * * * * *"}, Job{Name: "long", Spec: "*/5 * * * * *", Do: takes(4 * time.Second)})
		pass(6500 * time.Millisecond)
		same := Job{Name: "same", Spec: "* * * * * *", Do: work}
		if err := r.Replace(same, Job{Name: "bad", Spec: "61 * * * * *", Do: work}); err == nil || len(r.Jobs()) != 4 {
			t.Errorf("a bad job: %v, %d jobs", err, len(r.Jobs()))
		}
		if err := r.Replace(same, same); !errors.Is(err, ErrDuplicate) || len(r.Jobs()) != 4 {
			t.Errorf("a job twice: %v, %d jobs", err, len(r.Jobs()))
		}
		for range 5 { // whoever removes them first and adds them again then has them unowned in between
			if err := r.Replace(same, Job{Name: "changed", Spec: "*/3 * * * * *", Do: work}, Job{Name: "new", Spec: "*/3 * * * * *", Do: work},
				Job{Name: "long", Spec: "*/5 * * * * *", Do: work, Overlap: OverlapAllow}); err != nil {
				t.Fatal(err)
			}
			pass(100 * time.Millisecond)
		}
		pass(4 * time.Second)
		equal(t, "same", c.history("same"), every(1, 1, 11, "schedule succeeded"))
		equal(t, "changed", c.history("changed"), []string{
			"00:00:02#1 schedule succeeded", "00:00:04#1 schedule succeeded", "00:00:06#1 schedule succeeded", "00:00:09#1 schedule succeeded",
		})
		equal(t, "new", c.history("new"), []string{"00:00:09#1 schedule succeeded"})
		equal(t, "long", c.history("long"), []string{"00:00:05#1 schedule succeeded", "00:00:10#1 schedule succeeded"})
		equal(t, "gone", c.history("gone"), []string{"00:00:02#1 schedule succeeded", "00:00:04#1 schedule succeeded", "00:00:06#1 schedule succeeded"})
		for _, j := range status(t, c).Jobs {
			if j.Unowned.IsZero() == (j.Name == "gone") {
				t.Errorf("%s is unowned since %v", j.Name, j.Unowned)
			}
		}
	})
}

func TestUnownedJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		mine, other := Job{Name: "mine", Spec: "* * * * * *"}, Job{Name: "other", Spec: "0 * * * * *"}
		r1 := c.start("r1", nil, mine, other)
		pass(time.Minute + time.Second)
		r1.stop()
		r2 := c.start("r2", nil, mine)
		pass(3 * time.Minute)
		since := day2000().Add(time.Minute + time.Second)
		if got := status(t, c).Jobs[1]; got.Name != "other" || !got.Unowned.Equal(since) || !got.Next.IsZero() {
			t.Errorf("%+v", got)
		}
		equal(t, "history", c.history("other"), []string{"00:01:00#1 schedule succeeded"})
		r2.stop()
		r3 := c.start("r3", nil, mine, other)
		pass(30 * time.Second)
		equal(t, "history", c.history("other"), []string{
			"00:01:00#1 schedule succeeded", "00:02:00-00:03:00 ×2 unowned", "00:04:00#1 catch-up succeeded",
		})
		if got := status(t, c).Jobs[1]; !got.Unowned.IsZero() {
			t.Errorf("%+v", got)
		}
		r3.stop()
		// After a week without an owner it is dropped, with its history.
		c.start("r4", func(cfg *Config) { cfg.Lease = 10 * time.Minute }, Job{Name: "mine", Spec: "0 0 * * * *"})
		pass(7*24*time.Hour - time.Minute)
		if len(c.records(historyBucket("other"))) == 0 || len(c.records(bucketJob)) != 2 {
			t.Error("it is dropped too early")
		}
		pass(2 * time.Hour)
		if n := len(c.records(historyBucket("other"))); n != 0 || len(c.records(bucketJob)) != 1 {
			t.Errorf("%d entries, jobs %v", n, c.records(bucketJob))
		}
	})
}

func status(t *testing.T, c *cluster) Status {
	t.Helper()
	in, err := NewInspector(c.store, "g", "ann")
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
