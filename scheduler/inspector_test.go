package scheduler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

func TestNewInspectorChecksItsArguments(t *testing.T) {
	if _, err := NewInspector(nil, "g", "ann"); err == nil {
		t.Error("without a store")
	}
	if _, err := NewInspector(memstore.New(), "a b", "ann"); err == nil {
		t.Error("with an impossible group")
	}
}

func TestStatusOfAnEmptyGroup(t *testing.T) {
	in, err := NewInspector(memstore.New(), "g", "ann")
	if err != nil {
		t.Fatal(err)
	}
	st, err := in.Status(t.Context())
	if err != nil || st.Group != "g" || st.Leader != (store.Leader{}) || len(st.Jobs)+len(st.Replicas)+len(st.Running) > 0 {
		t.Errorf("%+v, %v", st, err)
	}
	for e, err := range in.History(t.Context(), "") {
		t.Errorf("%+v, %v", e, err)
	}
	for e, err := range in.History(t.Context(), "a") {
		if !errors.Is(err, ErrUnknownJob) {
			t.Errorf("%+v, %v", e, err)
		}
	}
}

func TestStatus(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		jobs := []Job{
			{Name: "b", Spec: "@every 7s"},
			{Name: "a", Spec: "CRON_TZ=Europe/Berlin 0 30 3 * * *"},
			{Name: "long", Spec: "*/5 * * * * *", Do: takes(time.Minute)},
			{Name: "foreign", Spec: "every thirteen", Schedule: everyNth(13)},
		}
		r1 := c.start("r1", nil, jobs...)
		c.start("r2", nil, jobs...)
		pass(16500 * time.Millisecond)
		st := status(t, c)
		if st.Leader.Replica != r1.ID() || st.Leader.Token != r1.elector.Term().Token() || st.Lease != 3*time.Second ||
			len(st.Replicas) != 2 {
			t.Errorf("%+v", st)
		}
		if len(st.Jobs) != 4 || len(st.Running) != 1 {
			t.Fatalf("%+v", st)
		}
		a, b, foreign, long := st.Jobs[0], st.Jobs[1], st.Jobs[2], st.Jobs[3]
		if a.Spec != "CRON_TZ=Europe/Berlin 0 30 3 * * *" || a.Zone != "Europe/Berlin" ||
			!a.Next.Equal(day2000().Add(2*time.Hour+30*time.Minute)) || a.Last != nil || a.Skipped != nil {
			t.Errorf("%+v", a)
		}
		if b.Last == nil || b.Last.Outcome != Succeeded || b.Next.Unix()%7 != 0 || time.Until(b.Next) > 7*time.Second {
			t.Errorf("%+v", b)
		}
		if !foreign.Next.IsZero() || foreign.Spec != "every thirteen" || foreign.Last == nil {
			t.Errorf("%+v", foreign)
		}
		if long.Last != nil || long.Skipped == nil || long.Skipped.Ticks != 2 || long.Skipped.Detail != skipOverlap {
			t.Errorf("%+v", long)
		}
		run := st.Running[0]
		if run.RunID != "long@2000-01-01T00:00:05Z" || run.Replica != r1.ID() || run.Attempt != 1 || run.Outcome != "" ||
			!run.Started.Equal(day2000().Add(5*time.Second)) {
			t.Errorf("%+v", run)
		}
	})
}

// A run that waits for its next attempt has no replica.
func TestStatusOfAWaitingRun(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "10 * * * * *", OnInterrupt: InterruptRerun, Do: takes(time.Minute)}
		r1 := c.start("r1", nil, job)
		c.start("r2", nil, job)
		pass(11 * time.Second)
		r1.kill()
		for len(c.entries("a")) == 0 {
			pass(10 * time.Millisecond)
		}
		st := status(t, c)
		if len(st.Running) != 1 || st.Running[0].Replica != "" || st.Running[0].Attempt != 2 || st.Running[0].Reason != ReasonRerun {
			t.Errorf("%+v", st.Running)
		}
		if last := st.Jobs[0].Last; last == nil || last.Outcome != Interrupted {
			t.Errorf("%+v", last)
		}
	})
}

// A tick is overdue where nobody has dealt with it, and no run of its job is the reason.
func TestStatusOfOverdueJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil,
			Job{Name: "each", Spec: "*/2 * * * * *"},
			Job{Name: "foreign", Spec: "every thirteen", Schedule: everyNth(13)},
			Job{Name: "later", Spec: "0 * * * * *"},
			Job{Name: "long", Spec: "*/4 * * * * *", Do: takes(time.Minute)})
		pass(4500 * time.Millisecond)
		r1.kill()
		overdue := func() (found []string) {
			for _, j := range status(t, c).Jobs {
				if !j.Overdue.IsZero() {
					found = append(found, j.Name+" since "+j.Overdue.Format(time.TimeOnly)+", after "+j.Watermark.Format(time.TimeOnly))
				}
			}
			return found
		}
		pass(6500 * time.Millisecond) // 11 s
		equal(t, "overdue", overdue(), nil)
		pass(time.Second)
		equal(t, "overdue", overdue(), []string{"each since 00:00:06, after 00:00:04"})
		c.start("r2", nil, Job{Name: "each", Spec: "*/2 * * * * *"})
		pass(time.Second)
		equal(t, "overdue", overdue(), nil)
	})
}

func TestHistoryOfAllJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "*/2 * * * * *"}, Job{Name: "b", Spec: "*/3 * * * * *"})
		pass(6500 * time.Millisecond)
		var got []string
		for _, e := range c.entries("") {
			got = append(got, e.RunID)
		}
		equal(t, "entries", got, []string{
			"a@2000-01-01T00:00:02Z", "b@2000-01-01T00:00:03Z", "a@2000-01-01T00:00:04Z", "b@2000-01-01T00:00:06Z",
			"a@2000-01-01T00:00:06Z",
		})
		in, err := NewInspector(c.store, "g", "ann")
		if err != nil {
			t.Fatal(err)
		}
		for e, err := range in.History(t.Context(), "a") { // the newest first, and no more than is asked for
			if err != nil || e.Tick.Second() != 6 {
				t.Errorf("%+v, %v", e, err)
			}
			break
		}
	})
}

func TestInspectorReadsWhatItCan(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r := c.start("r1", nil, Job{Name: "a", Spec: "* * * * * *"})
		pass(3500 * time.Millisecond)
		r.stop()
		c.put(store.Change{Bucket: historyBucket("a"), Key: "00002", Value: []byte("garbage")},
			store.Change{Bucket: bucketJob, Key: "broken", Value: []byte("garbage")},
			store.Change{Bucket: historyBucket("broken"), Key: "00001", Value: encode(historyRecord{formatVersion, Entry{
				RunID: "broken@2000-01-01T00:00:00Z", Job: "broken", Tick: day2000(), Attempt: 1, Ticks: 1, Outcome: Failed,
			}})},
			store.Change{Bucket: bucketRun, Key: "broken@x", Value: []byte("garbage")})
		in, err := NewInspector(c.store, "g", "ann")
		if err != nil {
			t.Fatal(err)
		}
		var ticks []int
		var problem error
		for e, err := range in.History(t.Context(), "a") {
			if problem = err; err == nil {
				ticks = append(ticks, e.Tick.Second())
			}
		}
		if !slices.Equal(ticks, []int{3, 1}) || problem == nil || !strings.Contains(problem.Error(), "history of a, 00002") {
			t.Errorf("%v, %v", ticks, problem)
		}
		for e, err := range in.History(t.Context(), "broken") {
			if err != nil || e.Outcome != Failed {
				t.Errorf("%+v, %v", e, err)
			}
		}
		st := status(t, c)
		if len(st.Jobs) != 2 || st.Jobs[1].Problem == "" || len(st.Running) != 1 || st.Running[0].RunID != "broken@x" ||
			st.Running[0].Detail == "" {
			t.Errorf("%+v", st)
		}
	})
}

func TestInspectorSaysWhatFails(t *testing.T) {
	fails := ""
	s := newScript()
	s.follow(func(call call) fate {
		if call.op == fails || call.op == "read" && call.about == fails {
			return fate{err: errReset}
		}
		return fate{}
	})
	st := memstore.New()
	in, err := NewInspector(&line.Line{Store: st, Replica: "i", Carrier: s}, "g", "ann")
	if err != nil {
		t.Fatal(err)
	}
	for _, fails = range []string{"leader", "replicas", bucketJob, bucketRun} {
		if _, err := in.Status(t.Context()); !errors.Is(err, errReset) || !strings.Contains(err.Error(), " of g: ") {
			t.Errorf("%s: %v", fails, err)
		}
	}
	fails = bucketJob
	for _, err := range in.History(context.Background(), "") {
		if !errors.Is(err, errReset) {
			t.Error(err)
		}
	}
}

func TestCreate(t *testing.T) {
	ctx, st := t.Context(), memstore.New()
	if err := Create(ctx, st, "g"); err != nil {
		t.Fatal(err)
	}
	read := func() (all []store.Record) {
		for r, err := range st.Read(ctx, "g", nil, bucketLedger) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, r)
		}
		return all
	}
	before := read()
	if err := Create(ctx, st, "g"); err != nil || len(before) != 1 || string(read()[0].Value) != string(before[0].Value) {
		t.Errorf("%v: %s became %s", err, before, read())
	}
	if _, err := st.Leader(ctx, "g"); !errors.Is(err, store.ErrNoLeader) {
		t.Errorf("it leads on: %v", err)
	}
	if replicas, err := st.Replicas(ctx, "g"); err != nil || len(replicas) != 0 {
		t.Errorf("it stays: %v, %v", replicas, err)
	}
	c := store.Candidate{Replica: store.Replica{ID: "r"}, Nonce: "n", TTL: time.Minute, Session: time.Minute, Start: true}
	if _, err := st.Acquire(ctx, "g", c); err != nil {
		t.Fatal(err)
	}
	var held *store.HeldError
	if err := Create(ctx, st, "g"); !errors.As(err, &held) {
		t.Errorf("while somebody leads: %v", err)
	}
}
