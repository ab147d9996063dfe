package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// attempt runs the job "a" of group g, once an hour, as machine name.
func (c *cluster) attempt(name string, do Func) error {
	log := slog.New(slog.NewTextHandler(c, nil))
	return Once{Group: "g", Job: "a", ID: name, Logger: log}.Run(c.surroundings(name), &line.Line{Store: c.store, Replica: name, Carrier: c.script}, do)
}

func (c *cluster) surroundings(name string) context.Context {
	return world.With(context.Background(), world.Seeded(1, name, func() time.Duration { return 0 }))
}

// fleet has 20 machines start the job at once, and returns how many did it; whoever fails must have been told who has.
func (c *cluster) fleet(do Func) int {
	var all sync.WaitGroup
	var did atomic.Int64
	for i := range 20 {
		all.Go(func() {
			err := c.attempt(fmt.Sprintf("m%d", i), func(ctx context.Context, run Run) error {
				did.Add(1)
				return do(ctx, run)
			})
			if claimed, ok := errors.AsType[*ClaimedError](err); err != nil && (!ok || !strings.HasPrefix(claimed.Replica, "m")) {
				c.t.Errorf("m%d: %v", i, err)
			}
		})
	}
	all.Wait()
	return int(did.Load())
}

func TestOnceIsDoneByOneOfMany(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		for range 5 {
			if n := c.fleet(func(context.Context, Run) error { return nil }); n != 1 {
				t.Errorf("%d of 20 did it", n)
			}
			time.Sleep(time.Hour)
		}
		if got := c.history("a"); len(got) != 5 || !strings.HasSuffix(got[0], "#1 once succeeded") {
			t.Errorf("history %q", got)
		}
		st := status(t, c)
		if len(st.Jobs) != 1 || len(st.Running) > 0 || len(st.Replicas) > 0 || !st.Jobs[0].Once || st.Jobs[0].Spec != "once per 1h" ||
			!st.Jobs[0].Next.IsZero() || !st.Jobs[0].Overdue.IsZero() || st.Jobs[0].Last.Outcome != Succeeded {
			t.Errorf("status %+v", st)
		}
	})
}

func TestOnceIsDoneByOneOfManyWhateverIsLost(t *testing.T) {
	for _, tt := range []struct {
		op   string
		fate fate
	}{
		{"acquire", fate{mute: true}}, {"commit", fate{mute: true}}, {"release", fate{mute: true}}, {"read", fate{mute: true}},
		{"acquire", fate{lost: true}}, {"commit", fate{lost: true}}, {"release", fate{lost: true}},
		{"acquire", fate{err: errReset}}, {"commit", fate{err: errReset}}, {"join", fate{err: errReset}}, {"leave", fate{err: errReset}},
		{"commit", fate{request: 2 * time.Second}}, {"commit", fate{request: 7 * time.Second, reply: time.Second}},
		{"acquire", fate{again: 3 * time.Second}}, {"commit", fate{again: time.Minute}},
	} {
		t.Run(fmt.Sprintf("%s %+v", tt.op, tt.fate), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				var mu sync.Mutex
				harmed := map[string]bool{}
				c.script.follow(func(call call) fate { // the first of each machine
					mu.Lock()
					defer mu.Unlock()
					if call.op != tt.op || harmed[call.replica] || len(harmed) == 3 { // some are held up, not all for longer than they wait
						return fate{}
					}
					harmed[call.replica] = true
					return tt.fate
				})
				if n := c.fleet(func(context.Context, Run) error { time.Sleep(time.Minute); return nil }); n != 1 {
					t.Errorf("%d of 20 did it", n)
				}
				if len(harmed) == 0 {
					t.Error("nothing was harmed")
				}
				if got := c.entries("a"); len(got) != 1 || got[0].Outcome != Succeeded || len(c.records(bucketRun)) > 0 {
					t.Errorf("history %+v, open %v", got, c.records(bucketRun))
				}
			})
		})
	}
}

// A claim that is in the ledger, and of which no answer comes before the turn is over, is found in the next turn.
func TestOnceFindsItsOwnClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		began := time.Now()
		c.script.follow(func(call call) fate { return fate{mute: call.op == "commit" && time.Since(began) < onceLease} })
		did := 0
		if err := c.attempt("m1", func(context.Context, Run) error { did++; return nil }); err != nil || did != 1 {
			t.Errorf("done %d times, %v", did, err)
		}
		equal(t, "history", c.history("a"), []string{"00:00:00#1 once succeeded"})
		if len(c.records(bucketRun)) > 0 {
			t.Errorf("open %v", c.records(bucketRun))
		}
	})
}

func TestOnceCountsHalfOfPerFromTheClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		claimed := time.Now()
		if err := c.attempt("m1", func(_ context.Context, run Run) error {
			if run.Job != "a" || run.Attempt != 1 || run.Reason != ReasonOnce || !strings.HasPrefix(run.Replica, "m1-") || run.Token == 0 ||
				run.Tick.Location() != time.UTC || !run.Valid() {
				t.Errorf("%+v", run)
			}
			time.Sleep(29 * time.Minute)
			if !run.Valid() {
				t.Error("not valid although nobody can have claimed it")
			}
			time.Sleep(30 * time.Minute) // longer than half of Per
			if run.Valid() {
				t.Error("valid although others may claim it")
			}
			return errors.New("exit status 1")
		}); err == nil || err.Error() != "exit status 1" {
			t.Errorf("Run returned %v", err)
		}
		if err := c.attempt("m2", nothing); err != nil { // 59 minutes later
			t.Error(err)
		}
		time.Sleep(29 * time.Minute)
		taken, ok := errors.AsType[*ClaimedError](c.attempt("m3", nothing))
		if !ok || !strings.HasPrefix(taken.Replica, "m2-") || taken.Job != "a" || !taken.At.Equal(claimed.Add(59*time.Minute).UTC()) || taken.Ago != 29*time.Minute {
			t.Errorf("%+v", taken)
		}
		time.Sleep(time.Minute)
		if err := c.attempt("m3", nothing); err != nil {
			t.Error(err)
		}
		equal(t, "history", c.history("a"), []string{"00:00:00#1 once failed", "00:59:00#1 once succeeded", "01:29:00#1 once succeeded"})
	})
}

func nothing(context.Context, Run) error { return nil }

// A run that is still going on when the next one is claimed ends later: the newest claim counts, not the newest end.
func TestOnceCountsFromTheNewestClaim(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var long sync.WaitGroup
		long.Go(func() {
			if err := c.attempt("m1", func(context.Context, Run) error { time.Sleep(70 * time.Minute); return nil }); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(time.Hour)
		if err := c.attempt("m2", nothing); err != nil {
			t.Error(err)
		}
		long.Wait()
		if _, ok := errors.AsType[*ClaimedError](c.attempt("m3", nothing)); !ok {
			t.Error("claimed again 10 minutes later")
		}
		equal(t, "history", c.history("a"), []string{"01:00:00#1 once succeeded", "00:00:00#1 once succeeded"})
	})
}

// A process that dies over the work leaves its claim; who claims it next says what became of it.
func TestOnceThatDiesIsInterruptedAndWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		dead := &participant{Once: Once{Group: "g", Job: "a", Per: time.Hour, Keep: 100, Logger: slog.New(slog.DiscardHandler)}, store: c.store, world: world.From(c.surroundings("dead")), id: "m-dead"}
		if _, err := dead.claim(t.Context()); err != nil {
			t.Fatal(err)
		}
		if open := status(t, c).Running; len(open) != 1 || open[0].Replica != "m-dead" {
			t.Errorf("open runs %+v", open)
		}
		time.Sleep(29 * time.Minute)
		if n := c.fleet(nothing); n != 0 {
			t.Errorf("%d did it within half of Per", n)
		}
		time.Sleep(time.Minute)
		if n := c.fleet(nothing); n != 1 {
			t.Errorf("%d of 20 did it", n)
		}
		equal(t, "history", c.history("a"), []string{"00:00:00#1 once interrupted", "00:30:00#1 once succeeded"})
		// The dead one was only asleep.
		rec := &runRecord{Job: "a", Tick: day2000().Unix(), Attempt: 1, Reason: ReasonOnce, Token: 1, Replica: "m-dead"}
		e := entryOf(rec)
		e.Outcome, e.Ended = Succeeded, time.Now()
		if err := dead.end(t.Context(), rec, e); err != nil {
			t.Error(err)
		}
		if got := c.entries("a"); len(got) != 3 || !strings.Contains(got[2].Note, "taken for interrupted") {
			t.Errorf("history %+v", got)
		}
	})
}

func TestOnceKeepsItsSessionWhileItRuns(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		if err := c.attempt("m1", func(context.Context, Run) error {
			time.Sleep(time.Hour + time.Second)
			if err := c.attempt("m2", nothing); err != nil {
				t.Error(err)
			}
			return nil
		}); err != nil {
			t.Error(err)
		}
		equal(t, "history", c.history("a"), []string{"01:00:01#1 once succeeded", "00:00:00#1 once succeeded"})
	})
}

func TestOnceSaysWhyItWasNotDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		defer c.close()
		never := func(context.Context, Run) error { t.Error("it was done"); return nil }
		began := time.Now()
		c.script.follow(func(call) fate { return fate{err: errReset} })
		if err := c.attempt("m", never); !errors.Is(err, errReset) || time.Since(began) < onceLimit/2 || time.Since(began) > 2*onceLimit {
			t.Errorf("the store is away: %v after %v", err, time.Since(began))
		}
		c.script.follow(func(call) fate { return fate{err: store.Permanent("use the new password", errors.New("WRONGPASS"))} })
		began = time.Now()
		if err := c.attempt("m", never); !errors.Is(err, store.ErrPermanent) || time.Since(began) > time.Second {
			t.Errorf("wrong password: %v after %v", err, time.Since(began))
		}
		c.script.follow(nil)
		if err := c.attempt("m", nothing); err != nil { // a group that is new waits for nothing
			t.Error(err)
		}
		r := c.start("r1", nil, Job{Name: "b", Spec: "@daily"})
		pass(10 * time.Second)
		began = time.Now()
		if err := c.attempt("m", never); !errors.Is(err, ErrLed) || !strings.Contains(err.Error(), "(r1-") || time.Since(began) > 2*onceLease {
			t.Errorf("somebody leads: %v after %v", err, time.Since(began))
		}
		r.stop()
		began = time.Now()
		if err := (Once{Group: "g", Job: "b"}).Run(c.surroundings("m"), c.store, never); !errors.Is(err, ErrNotOnce) ||
			time.Since(began) > time.Second {
			t.Errorf("a job of the scheduler: %v after %v", err, time.Since(began))
		}
		c.put(store.Change{Bucket: bucketJob, Key: "x", Value: []byte("{}")})
		if err := (Once{Group: "g", Job: "x"}).Run(c.surroundings("m"), c.store, never); err == nil || !strings.Contains(err.Error(), "cannot be read") {
			t.Errorf("a record that is none: %v", err)
		}
		err := Once{Group: "a b", Job: "c d", Per: time.Second, Keep: -1, ID: "{}"}.Run(c.surroundings("m"), c.store, never)
		for _, want := range []string{"group", "job", "once per 1s", "history of -1", "replica"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
		ctx, cancel := context.WithCancelCause(c.surroundings("m"))
		cancel(errGone)
		if err := (Once{Group: "g", Job: "y"}).Run(ctx, c.store, never); !errors.Is(err, errGone) {
			t.Errorf("a context that has ended: %v", err)
		}
	})
}

func TestOnceSaysThatItsEndIsNotRecorded(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		failed := errors.New("exit status 1")
		err := c.attempt("m1", func(context.Context, Run) error {
			c.script.follow(func(call) fate { return fate{lost: true} })
			return failed
		})
		if !errors.Is(err, failed) || !errors.Is(err, ErrUnrecorded) {
			t.Errorf("Run returned %v", err)
		}
		c.script.follow(nil)
		time.Sleep(time.Hour)
		if err := c.attempt("m2", nothing); err != nil {
			t.Error(err)
		}
		if got := c.history("a"); len(got) != 2 || !strings.Contains(got[0], "#1 once interrupted") {
			t.Errorf("history %q", got)
		}
	})
}

// A clock of the store that was set back does not silence the work for as long.
func TestOnceAfterTheStoresClockWasSetBack(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		if err := c.attempt("m1", nothing); err != nil {
			t.Error(err)
		}
		ahead := strings.Replace(c.records(bucketJob)["a"], `"at":"2000-01-01T00`, `"at":"2000-01-08T00`, 1)
		c.put(store.Change{Bucket: bucketJob, Key: "a", Value: []byte(ahead)})
		if n := c.fleet(nothing); n != 1 {
			t.Errorf("%d of 20 did it", n)
		}
		if n := c.fleet(nothing); n != 0 {
			t.Errorf("%d did it again", n)
		}
	})
}
