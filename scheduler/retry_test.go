package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/go-singleton/singleton/store"
)

func TestRetryDelaysDoubleUpToTheLongest(t *testing.T) {
	const run = "report@2026-11-29T12:00:00Z"
	for _, tt := range []struct {
		retry Retry
		n     int
		least time.Duration
		most  time.Duration
	}{
		{Retry{}, 1, time.Second, 1100 * time.Millisecond},
		{Retry{}, 2, 2 * time.Second, 2200 * time.Millisecond},
		{Retry{}, 9, 256 * time.Second, 281_600 * time.Millisecond},
		{Retry{}, 10, 300 * time.Second, 300 * time.Second},
		{Retry{}, 99, 300 * time.Second, 300 * time.Second},
		{Retry{Delay: 10 * time.Second}, 1, 10 * time.Second, 11 * time.Second},
		{Retry{Delay: 10 * time.Second, MaxDelay: 15 * time.Second}, 2, 15 * time.Second, 15 * time.Second},
		{Retry{Delay: 10 * time.Second, MaxDelay: 10 * time.Second}, 1, 10 * time.Second, 10 * time.Second},
		{Retry{Delay: time.Hour}, 3, time.Hour, time.Hour},
		{Retry{MaxDelay: math.MaxInt64}, 70, math.MaxInt64, math.MaxInt64},
		{Retry{Delay: math.MaxInt64}, 1, math.MaxInt64, math.MaxInt64},
	} {
		tt.retry.Attempts = 100
		got := tt.retry.complete().delay(run, tt.n)
		if got < tt.least || got > tt.most {
			t.Errorf("%+v waits %v after attempt %d, want %v to %v", tt.retry, got, tt.n, tt.least, tt.most)
		}
		if again := tt.retry.complete().delay(run, tt.n); again != got {
			t.Errorf("%+v waits %v, and then %v, after attempt %d", tt.retry, got, again, tt.n)
		}
	}
}

// Jobs that have failed together do not come back together, and whoever leads comes to the same delays.
func TestRetryDelaysFollowFromTheRun(t *testing.T) {
	r := Retry{Attempts: 5, Delay: 10 * time.Second}.complete()
	var least, most time.Duration = time.Hour, 0
	for i := range 100 {
		d := r.delay(fmt.Sprintf("job-%d@2026-11-29T12:00:00Z", i), 1)
		least, most = min(least, d), max(most, d)
	}
	if most-least < 900*time.Millisecond {
		t.Errorf("the delays of a hundred jobs lie between %v and %v", least, most)
	}
	const want = 10_892_314_414
	if got := r.delay("report@2026-11-29T12:00:00Z", 1); got != want {
		t.Errorf("the delay is %d, and was %d in other versions", got, want)
	}
}

// fails is a job's work that fails so many times.
func fails(times int, with error) Func {
	return func(_ context.Context, run Run) error {
		if run.Attempt <= times {
			return with
		}
		return nil
	}
}

var errFails = errors.New("no such host")

// gaps returns how long after the end of the one before it each attempt of a run started.
func gaps(runs []execution) (all []time.Duration) {
	for i := 1; i < len(runs); i++ {
		all = append(all, runs[i].at.Sub(runs[i-1].over))
	}
	return all
}

// near fails unless the delays are those of the policy for the first run of the job.
func near(t *testing.T, c *cluster, job string, r Retry) {
	t.Helper()
	runs := c.executions(job)
	for i, gap := range gaps(runs) {
		want := r.complete().delay(runs[0].run.ID(), i+1)
		if gap < want || gap > want+20*time.Millisecond {
			t.Errorf("attempt %d came %v after the one before, want %v", i+2, gap, want)
		}
	}
}

func TestFailedRunsAreTriedAgain(t *testing.T) {
	policy := Retry{Attempts: 3, Delay: 2 * time.Second}
	permanent := fmt.Errorf("wrapped: %w", backoff.Permanent(errFails))
	for _, tt := range []struct {
		name    string
		job     Job
		history []string
		note    string // of the last entry
	}{
		{
			"until one succeeds", Job{Do: fails(2, errFails)},
			[]string{"00:01:00#1 schedule failed", "00:01:00#2 retry failed", "00:01:00#3 retry succeeded"}, "",
		},
		{
			"as often as asked for", Job{Do: fails(9, errFails)},
			[]string{"00:01:00#1 schedule failed", "00:01:00#2 retry failed", "00:01:00#3 retry failed"},
			"not run again: 3 attempts have failed",
		},
		{
			"when they time out", Job{Do: takes(time.Hour), Timeout: 3 * time.Second},
			[]string{"00:01:00#1 schedule timed out", "00:01:00#2 retry timed out", "00:01:00#3 retry timed out"},
			"not run again: 3 attempts have failed",
		},
		{
			"when they panic", Job{Do: func(_ context.Context, r Run) error {
				if r.Attempt == 1 {
					panic("a job's bug")
				}
				return nil
			}},
			[]string{"00:01:00#1 schedule failed", "00:01:00#2 retry succeeded"}, "",
		},
		{
			"until the error is permanent", Job{Do: func(_ context.Context, r Run) error {
				if r.Attempt == 2 {
					return permanent
				}
				return errFails
			}},
			[]string{"00:01:00#1 schedule failed", "00:01:00#2 retry failed"}, "not run again: its error is permanent",
		},
		{
			"within the window", Job{Do: fails(9, errFails), Window: 4 * time.Second},
			[]string{"00:01:00#1 schedule failed", "00:01:00#2 retry failed"}, "not run again: older than the window",
		},
		{
			"counted from when it was due", Job{Do: fails(2, errFails), Window: 7 * time.Second, Jitter: 30 * time.Second},
			[]string{"00:01:00#1 schedule failed", "00:01:00#2 retry failed", "00:01:00#3 retry succeeded"}, "",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				tt.job.Name, tt.job.Spec, tt.job.Retry = "a", "0 1 * * * *", policy
				c.start("r1", nil, tt.job)
				pass(3 * time.Minute)
				equal(t, "history", c.history("a"), tt.history)
				near(t, c, "a", policy)
				runs := c.executions("a")
				if last := c.entry(t, "a", len(tt.history)-1); last.Note != tt.note || last.Permanent != strings.Contains(tt.note, "permanent") {
					t.Errorf("%+v", last)
				}
				for i, r := range runs {
					if r.run.ID() != runs[0].run.ID() || r.run.Attempt != i+1 || !r.run.Tick.Equal(runs[0].run.Tick) {
						t.Errorf("%+v", r.run)
					}
				}
				if open := c.records(bucketRun); len(open) > 0 {
					t.Errorf("open: %v", open)
				}
			})
		})
	}
}

// A retry that would come too late is not waited for: the job's next tick starts.
func TestRetryOutsideTheWindowIsNotWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "10,20 0 0 * * *", Retry: Retry{Attempts: 2, Delay: 30 * time.Second},
			Window: 25 * time.Second, Do: fails(1, errFails)})
		pass(time.Minute)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule", "r1 00:00:20#1 schedule"})
	})
}

// The ends of a replica that does not lead, and what its errors mean, are told through the inbox.
func TestRetryOfARunOnAnotherReplica(t *testing.T) {
	for _, tt := range []struct {
		with   error
		starts []string
	}{
		{errFails, []string{"r1 00:01:00#1 schedule", "r2 00:01:00#2 retry"}},
		{backoff.Permanent(errFails), []string{"r1 00:01:00#1 schedule"}},
	} {
		inBubble(t, func(t *testing.T, c *cluster) {
			job := Job{Name: "a", Spec: "0 1 * * * *", Retry: Retry{Attempts: 2}}
			slow := job
			slow.Do = func(context.Context, Run) error { time.Sleep(5 * time.Second); return tt.with }
			r1 := c.start("r1", nil, slow)
			c.start("r2", nil, job)
			pass(61 * time.Second)
			if err := r1.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(20 * time.Second)
			equal(t, "starts", c.started("a"), tt.starts)
		})
	}
}

// Attempts and the time of the next one live in the ledger: ten leaders come and go between two attempts, politely or not.
func TestRetrySurvivesTenLeaders(t *testing.T) {
	policy := Retry{Attempts: 4, Delay: time.Minute, MaxDelay: 10 * time.Minute}
	for _, how := range []string{"stop", "kill", "resign"} {
		t.Run(how, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				job := Job{Name: "a", Spec: "0 1 0 * * *", Retry: policy, Do: fails(3, errFails)}
				c.start("r1", nil, job)
				c.start("r2", nil, job)
				pass(61 * time.Second)
				next, terms := 3, 0
				for range 3 {
					for range 10 {
						before := c.leader(t)
						switch how {
						case "stop":
							before.stop()
						case "kill":
							before.kill()
						case "resign":
							if err := before.Resign(t.Context()); err != nil {
								t.Fatal(err)
							}
						}
						if how != "resign" {
							c.start(fmt.Sprint("r", next), nil, job)
							next++
						}
						pass(4 * time.Second)
						if c.leader(t) != before {
							terms++
						}
					}
					waits := c.waiting(t, "a")
					pass(time.Until(waits.NotBefore) - 1)
					if got := len(c.executions("a")); got != waits.Attempt-1 {
						t.Errorf("%d attempts were started before attempt %d was due", got, waits.Attempt)
					}
					pass(100 * time.Millisecond)
				}
				if terms != 30 {
					t.Errorf("%d leaders have followed others", terms)
				}
				equal(t, "history", c.history("a"), []string{
					"00:01:00#1 schedule failed", "00:01:00#2 retry failed", "00:01:00#3 retry failed", "00:01:00#4 retry succeeded",
				})
				near(t, c, "a", policy)
			})
		})
	}
}

// waiting returns the only open run of a job, which waits for its next attempt.
func (c *cluster) waiting(t *testing.T, job string) *runRecord {
	t.Helper()
	for key, value := range c.records(bucketRun) {
		rec, err := decodeRun(store.Record{Key: key, Value: []byte(value)})
		if err != nil || rec.Job != job || !rec.waits() {
			t.Fatalf("%+v, %v", rec, err)
		}
		return rec
	}
	t.Fatal("no run is open")
	return nil
}

// A manual run is tried again like any other, and its answer is that of its last attempt: lateness counts from when it was
// asked for, whatever its tick.
func TestManualRunIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "@yearly", Retry: Retry{Attempts: 3, Delay: 5 * time.Second}, Window: time.Minute, Do: fails(2, errFails)}
		c.start("r1", nil, job)
		c.start("r2", nil, job)
		pass(time.Second)
		ann := c.asker("ann")
		r := ann.post(func(ctx context.Context) (*Request, error) {
			return ann.Trigger(ctx, "a", day2000().Add(-48*time.Hour))
		})
		pass(2 * time.Second)
		c.leader(t).stop()
		ann.want(r, "succeeded")
		equal(t, "history", c.history("a"), []string{"00:00:00#1 manual failed", "00:00:00#2 retry failed", "00:00:00#3 retry succeeded"})
		near(t, c, "a", job.Retry)
	})
}

// Who cancels a run ends it for good, whether it goes on or waits for its retry.
func TestCancelledRunIsNotTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		name    string
		after   time.Duration
		history []string
	}{
		{"while it goes on", 11 * time.Second, []string{"00:00:10#1 schedule cancelled"}},
		{"while it waits", 17 * time.Second, []string{"00:00:10#1 schedule failed"}},
		{"while it goes on again", 24 * time.Second, []string{"00:00:10#1 schedule failed", "00:00:10#2 retry cancelled"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.start("r1", nil, Job{Name: "a", Spec: "10 0 0 * * *", Retry: Retry{Attempts: 3, Delay: 8 * time.Second},
					Do: func(ctx context.Context, run Run) error {
						if err := takes(5*time.Second)(ctx, run); err != nil {
							return err
						}
						return errFails
					}})
				pass(tt.after)
				ann := c.asker("ann")
				ann.want(ann.cancel("a@2000-01-01T00:00:10Z"), "done")
				pass(time.Minute)
				equal(t, "history", c.history("a"), tt.history)
				last := c.entry(t, "a", len(tt.history)-1)
				if !strings.Contains(last.Detail+last.Note, "cancelled by ann") || len(c.records(bucketRun)) > 0 {
					t.Errorf("%+v, open %v", last, c.records(bucketRun))
				}
			})
		})
	}
}

// The limits of failures and of interruptions are separate, and attempts are numbered through.
func TestRetryAndRerunCountApart(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "0 1 0 * * *", OnInterrupt: InterruptRerun, Retry: Retry{Attempts: 3, Delay: 5 * time.Second},
			Do: func(ctx context.Context, run Run) error {
				if run.Attempt%2 == 1 {
					return takes(time.Hour)(ctx, run) // until its replica dies
				}
				return errFails
			}}
		for n := range 3 {
			c.start(fmt.Sprint("r", n+1), nil, job)
		}
		pass(61 * time.Second)
		for range 4 {
			if open := c.records(bucketRun); len(open) == 0 {
				break
			}
			c.leader(t).kill()
			c.start(fmt.Sprint("r", len(c.replicas)+1), nil, job)
			pass(30 * time.Second)
		}
		equal(t, "history", c.history("a"), []string{
			"00:01:00#1 schedule interrupted", "00:01:00#2 rerun failed", "00:01:00#3 retry interrupted", "00:01:00#4 rerun failed",
			"00:01:00#5 retry interrupted",
		})
		if last := c.entry(t, "a", 4); !strings.Contains(last.Detail, "not run again: its third interruption") {
			t.Errorf("%+v", last)
		}
	})
}

func TestInterruptedRetryIsNotRunAgainByDefault(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "0 1 0 * * *", Retry: Retry{Attempts: 5}, Do: func(ctx context.Context, run Run) error {
			if run.Attempt == 1 {
				return errFails
			}
			return takes(time.Hour)(ctx, run)
		}}
		c.start("r1", nil, job)
		c.start("r2", nil, job)
		pass(70 * time.Second)
		c.leader(t).kill()
		pass(time.Minute)
		equal(t, "history", c.history("a"), []string{"00:01:00#1 schedule failed", "00:01:00#2 retry interrupted"})
	})
}

// A run that waits for its retry is open.
func TestRunThatWaitsForItsRetryIsOpen(t *testing.T) {
	retry := Retry{Attempts: 2, Delay: 25 * time.Second}
	for _, tt := range []struct {
		name    string
		overlap Overlap
		catchUp CatchUp
		history []string
		note    string // of the first entry
	}{
		{"skip", OverlapSkip, CatchUpLatest, []string{
			"00:00:10#1 schedule failed", "00:00:20-00:00:30 ×2 overlap", "00:00:10#2 retry succeeded", "00:00:40#1 schedule succeeded",
		}, ""},
		{"queue", OverlapQueue, CatchUpLatest, []string{
			"00:00:10#1 schedule failed", "00:00:10#2 retry succeeded", "00:00:20 overlap", "00:00:30#1 schedule succeeded",
			"00:00:40#1 schedule succeeded",
		}, ""},
		{"all", OverlapQueue, CatchUpAll, []string{
			"00:00:10#1 schedule failed", "00:00:10#2 retry succeeded", "00:00:20#1 catch-up succeeded", "00:00:30#1 schedule succeeded",
			"00:00:40#1 schedule succeeded",
		}, ""},
		{"allow", OverlapAllow, CatchUpLatest, []string{
			"00:00:10#1 schedule failed", "00:00:20#1 schedule succeeded", "00:00:30#1 schedule succeeded", "00:00:10#2 retry succeeded",
			"00:00:40#1 schedule succeeded",
		}, ""},
		{"replace", OverlapReplace, CatchUpLatest, []string{
			"00:00:10#1 schedule failed", "00:00:20#1 schedule succeeded", "00:00:30#1 schedule succeeded", "00:00:40#1 schedule succeeded",
		}, "not run again: replaced by the tick of 2000-01-01T00:00:20Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *", Overlap: tt.overlap, CatchUp: tt.catchUp, Retry: retry,
					Do: func(_ context.Context, run Run) error {
						if run.Tick.Second() == 10 && run.Attempt == 1 {
							return errFails
						}
						return nil
					}})
				pass(45 * time.Second)
				equal(t, "history", c.history("a"), tt.history)
				if first := c.entry(t, "a", 0); first.Note != tt.note {
					t.Errorf("%+v", first)
				}
			})
		})
	}
}

// A leader whose binary lacks the job cannot tell whether an attempt is to follow, and says so.
func TestFailureWhileTheLeaderLacksTheJob(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil, Job{Name: "a", Spec: "0 1 0 * * *", Retry: Retry{Attempts: 3},
			Do: func(context.Context, Run) error { time.Sleep(10 * time.Second); return errFails }})
		c.start("r2", nil)
		pass(61 * time.Second)
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(20 * time.Second)
		equal(t, "history", c.history("a"), []string{"00:01:00#1 schedule failed"})
		if e := c.entry(t, "a", 0); e.Note != "not run again: the leader does not have the job" || len(c.records(bucketRun)) > 0 {
			t.Errorf("%+v, open %v", e, c.records(bucketRun))
		}
	})
}

// The claim of a retry has no answer, and its term ends: the attempt was never started, the next one is, and none of it
// counts as a failure.
func TestLostClaimOfARetry(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "0 1 0 * * *", Retry: Retry{Attempts: 3, Delay: 2 * time.Second}, Do: func(_ context.Context, run Run) error {
			if run.Attempt == 4 {
				return nil
			}
			return errFails
		}}
		r1 := c.start("r1", nil, job)
		r2 := c.start("r2", nil, job)
		pass(61 * time.Second)
		c.script.follow(func(call call) fate { return fate{mute: call.replica == "r1" && call.claims("a")} })
		pass(time.Until(c.waiting(t, "a").NotBefore) + 100*time.Millisecond)
		c.takeLease(t, r1)
		c.script.follow(nil)
		pass(20 * time.Second)
		if r1.leads() || !r2.leads() {
			t.Error("r2 does not lead")
		}
		equal(t, "history", c.history("a"), []string{
			"00:01:00#1 schedule failed", "00:01:00#2 retry not started", "00:01:00#3 retry failed", "00:01:00#4 retry succeeded",
		})
		equal(t, "starts", c.started("a"), []string{"r1 00:01:00#1 schedule", "r2 00:01:00#3 retry", "r2 00:01:00#4 retry"})
	})
}

// A wiped store gets back what its replicas remember: the retry comes when it would have, as the attempt that it would have been.
func TestRetrySurvivesALossOfTheStore(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		policy := Retry{Attempts: 3, Delay: time.Minute}
		job := Job{Name: "a", Spec: "0 1 0 * * *", Retry: policy, Do: fails(2, errFails)}
		c.start("r1", nil, job)
		c.start("r2", nil, job)
		pass(80 * time.Second)
		c.store.Wipe()
		pass(5 * time.Minute)
		equal(t, "history", c.history("a"), []string{"00:01:00#2 retry failed", "00:01:00#3 retry succeeded"})
		near(t, c, "a", policy)
	})
}

// The store goes back to where the first attempt was open, whose end its replica tells again: no attempt that has been is made
// once more.
func TestRetriesThatTheStoreHasLost(t *testing.T) {
	for _, tt := range []struct {
		name   string
		fails  int
		leader string // after the loss: "" is another one that remembers, "r3" one that does not
		want   []string
	}{
		{"the run had ended, the leader remembers", 1, "r1", []string{"r1 00:00:08#1 schedule", "r1 00:00:08#2 retry"}},
		{"the run had ended, another leads", 1, "r2", []string{"r1 00:00:08#1 schedule", "r1 00:00:08#2 retry"}},
		{"the run had ended, a stranger leads", 1, "r3", []string{"r1 00:00:08#1 schedule", "r1 00:00:08#2 retry"}},
		{"the run waits, the leader remembers", 2, "r1", []string{"r1 00:00:08#1 schedule", "r1 00:00:08#2 retry", "r1 00:00:08#3 retry"}},
		{"the run waits, another leads", 2, "r2", []string{"r1 00:00:08#1 schedule", "r1 00:00:08#2 retry", "r2 00:00:08#3 retry"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				job := Job{Name: "a", Spec: "8 0 0 * * *", Retry: Retry{Attempts: 4, Delay: time.Second, MaxDelay: 8 * time.Second},
					Do: func(_ context.Context, run Run) error {
						time.Sleep(500 * time.Millisecond)
						if run.Attempt <= tt.fails {
							return errFails
						}
						return nil
					}}
				often := Job{Name: "often", Spec: "* * * * * *"}           // its leader soon hears of the loss
				lease := func(cfg *Config) { cfg.Lease = 6 * time.Second } // r1's session outlives the loss
				r1 := c.start("r1", lease, job, often)
				pass(8200 * time.Millisecond)
				restore := c.store.Snapshot() // the first attempt is open
				pass(2500 * time.Millisecond)
				if n := len(c.executions("a")); n != 2 || !c.executions("a")[1].over.Before(time.Now()) {
					t.Fatalf("%d attempts were started", n)
				}
				if tt.leader != "r1" {
					c.script.follow(func(call call) fate { // r1 does not lead, and keeps its session
						_, err := c.store.Leader(t.Context(), "g")
						return fate{lost: call.replica == "r1" && (call.op == "acquire" && err != nil || call.op == "position")}
					})
					r2 := c.start("r2", lease, job, often)
					if err := r1.Resign(t.Context()); err != nil {
						t.Fatal(err)
					}
					pass(100 * time.Millisecond)
					if tt.leader == "r3" {
						r2.kill()
						c.start("r3", lease, job, often)
					}
				}
				restore()
				pass(20 * time.Second)
				if tt.leader != c.leader(t).name {
					t.Errorf("%s leads", c.leader(t).name)
				}
				equal(t, "starts", c.started("a"), tt.want)
				if e := c.entry(t, "a", 0); e.Outcome != Failed || tt.fails == 1 && e.Note != "not run again: the store has lost what came after it" {
					t.Errorf("%+v", e)
				}
				if open := c.records(bucketRun); len(open) > 0 {
					t.Errorf("open: %v", open)
				}
			})
		})
	}
}

// Nobody led when the retry was due: it comes as soon as somebody does, or not at all outside the window.
func TestRetryThatWasMissed(t *testing.T) {
	for _, tt := range []struct {
		window  time.Duration
		history []string
		note    string
	}{
		{time.Hour, []string{"00:01:00#1 schedule failed", "00:01:00#2 retry succeeded"}, ""},
		{time.Minute, []string{"00:01:00#1 schedule failed"}, "not run again: older than the window"},
	} {
		inBubble(t, func(t *testing.T, c *cluster) {
			job := Job{Name: "a", Spec: "0 1 0 * * *", Retry: Retry{Attempts: 2, Delay: 10 * time.Second}, Window: tt.window, Do: fails(1, errFails)}
			r1 := c.start("r1", nil, job)
			pass(62 * time.Second)
			r1.stop()
			pass(5 * time.Minute)
			c.start("r2", nil, job)
			pass(time.Second)
			equal(t, "history", c.history("a"), tt.history)
			if e := c.entry(t, "a", 0); e.Note != tt.note {
				t.Errorf("%+v", e)
			}
		})
	}
}

// An attempt is told as interrupted, and its success comes late: the retry that waits is dropped.
func TestLateSuccessEndsTheWaitForARetry(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil)
		pass(time.Second)
		r1.stop()
		rec := runRecord{Version: formatVersion, Job: "a", Tick: day2000().Unix(), Attempt: 2, Reason: ReasonRetry, Failures: 1,
			NotBefore: day2000().Add(time.Minute)}
		first := Entry{RunID: rec.id(), Job: "a", Tick: day2000(), LastTick: day2000(), Ticks: 1, Attempt: 1, Reason: ReasonSchedule, Token: 7,
			Number: 3, Replica: "r0", Outcome: Failed, Note: "known", Sequence: 1}
		j := jobRecord{Version: formatVersion, Spec: "0 0 0 * * *", Zone: "UTC", Key: defined(t, Job{Spec: "0 0 0 * * *"}).key,
			Watermark: day2000().Unix(), Ring: 1000, Sequence: 1}
		c.put(store.Change{Bucket: bucketJob, Key: "a", Value: encode(&j)}, store.Change{Bucket: bucketRun, Key: rec.id(), Value: encode(&rec)},
			store.Change{Bucket: historyBucket("a"), Key: historyKey(1, 1000), Value: encode(historyRecord{formatVersion, first})})
		c.start("r2", nil, Job{Name: "a", Spec: "0 0 0 * * *", Retry: Retry{Attempts: 2}})
		late := first
		late.Outcome, late.Ended, late.Note = Succeeded, day2000(), ""
		if err := c.store.Post(t.Context(), "g", "0190-1", encode(message{Version: formatVersion, Kind: kindEnd, End: &late})); err != nil {
			t.Fatal(err)
		}
		pass(2 * time.Minute)
		equal(t, "starts", c.started("a"), nil)
		if got := c.entry(t, "a", 0).Note; got != "known; ended late: succeeded at 2000-01-01T00:00:00Z" {
			t.Errorf("the note is %q", got)
		}
	})
}
