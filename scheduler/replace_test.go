package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// apart fails where two runs of a job were executed at the same time, less those of replicas that were killed.
func (c *cluster) apart(t *testing.T, job string) {
	t.Helper()
	runs := c.executions(job)
	for i, later := range runs {
		for _, earlier := range runs[:i] {
			if earlier.over.IsZero() || earlier.over.After(later.at) {
				t.Errorf("%s#%d starts at %v, while %s#%d runs until %v", later.run.ID(), later.run.Attempt, later.at, earlier.run.ID(),
					earlier.run.Attempt, earlier.over)
			}
		}
	}
}

// heeds is a job's work that goes on for ever, and ends so long after its context; it notes the causes.
func heeds(after time.Duration, causes chan<- error) Func {
	return func(ctx context.Context, _ Run) error {
		<-ctx.Done()
		causes <- context.Cause(ctx)
		time.Sleep(after)
		return ctx.Err()
	}
}

// replaced fails unless the first context that has ended was that of a run that was replaced.
func replaced(t *testing.T, causes <-chan error) {
	t.Helper()
	select {
	case cause := <-causes:
		if !errors.Is(cause, ErrReplaced) {
			t.Errorf("the cause is %v", cause)
		}
	default:
		t.Error("no context has ended")
	}
}

func TestReplaceCancelsTheRunAndStartsWhenItHasEnded(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		causes := make(chan error, 100)
		c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *", Overlap: OverlapReplace, Do: heeds(3*time.Second, causes)})
		pass(21 * time.Second)
		if got := status(t, c).Running; len(got) != 1 || got[0].Note != "is to end: replaced by the tick of 2000-01-01T00:00:20Z" {
			t.Errorf("%+v", got)
		}
		pass(24 * time.Second)
		replaced(t, causes)
		c.apart(t, "a")
		equal(t, "history", c.history("a"), []string{
			"00:00:10#1 schedule cancelled", "00:00:20#1 schedule cancelled", "00:00:30#1 schedule cancelled",
		})
		for i, gap := range gaps(c.executions("a")) {
			if gap > 20*time.Millisecond {
				t.Errorf("run %d started %v after the end of the one before", i+2, gap)
			}
		}
		if e := c.entry(t, "a", 0); e.Detail != "replaced by the tick of 2000-01-01T00:00:20Z" {
			t.Errorf("%+v", e)
		}
	})
}

// What a cancelled job says of its own goes into history, a success counts as one, and neither is retried.
func TestReplacedRunIsNotTriedAgain(t *testing.T) {
	for _, tt := range []struct {
		name    string
		with    error
		outcome Outcome
		detail  string
	}{
		{"an error of its own", errFails, Cancelled, "replaced by the tick of 2000-01-01T00:00:20Z: no such host"},
		{"the cause", ErrReplaced, Cancelled, "replaced by the tick of 2000-01-01T00:00:20Z"},
		{"success", nil, Succeeded, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.start("r1", nil, Job{
					Name: "a", Spec: "10,20 0 0 * * *", Overlap: OverlapReplace, Retry: Retry{Attempts: 3}, OnInterrupt: InterruptRerun,
					Do: func(ctx context.Context, run Run) error {
						if run.Tick.Second() == 10 {
							<-ctx.Done()
							return tt.with
						}
						return nil
					},
				})
				pass(time.Minute)
				equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule", "r1 00:00:20#1 schedule"})
				if e := c.entry(t, "a", 0); e.Outcome != tt.outcome || e.Detail != tt.detail {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// An attempt that fails for a reason of its own while it is to end is not retried: nothing of it comes after the newer tick.
func TestFailureOfARunThatIsToEndIsFinal(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		// r1 executes the run, and does not hear of the mark before it fails.
		slow := Job{Name: "a", Spec: "10,20 0 0 * * *", Overlap: OverlapReplace, Retry: Retry{Attempts: 3},
			Do: func(context.Context, Run) error { time.Sleep(12 * time.Second); return errFails }}
		r1 := c.start("r1", nil, slow)
		c.start("r2", nil, Job{Name: "a", Spec: slow.Spec, Overlap: OverlapReplace, Retry: slow.Retry})
		pass(11 * time.Second)
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.script.follow(func(call call) fate { return fate{lost: call.replica == "r1" && call.op == "read"} })
		pass(time.Minute)
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule failed", "00:00:20#1 schedule succeeded"})
		if e := c.entry(t, "a", 0); e.Note != "not run again: replaced by the tick of 2000-01-01T00:00:20Z" {
			t.Errorf("%+v", e)
		}
		c.apart(t, "a")
	})
}

// No context ends before the mark is in the ledger: a leader that was deposed cancels nothing.
func TestNoContextEndsBeforeItsMark(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		causes := make(chan error, 100)
		job := Job{Name: "a", Spec: "10,20 0 0 * * *", Overlap: OverlapReplace, Do: heeds(0, causes)}
		r1 := c.start("r1", nil, job)
		pass(19 * time.Second)
		c.script.follow(func(call call) fate { return fate{lost: call.op == "commit"} })
		pass(2 * time.Second)
		if len(causes) > 0 {
			t.Errorf("the context has ended: %v", <-causes)
		}
		c.takeLease(t, r1)
		pass(3 * time.Second)
		if len(causes) > 0 {
			t.Errorf("the context has ended: %v", <-causes)
		}
		c.script.follow(nil)
		pass(5 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule", "r1 00:00:20#1 catch-up"})
	})
}

// The run is another replica's, which does not lead.
func TestReplaceReachesOtherReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		causes := make(chan error, 100)
		job := Job{Name: "a", Spec: "10,20 0 0 * * *", Overlap: OverlapReplace}
		long := job
		long.Do = heeds(2*time.Second, causes)
		r1 := c.start("r1", nil, long)
		c.start("r2", nil, job)
		pass(11 * time.Second)
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(20 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule", "r2 00:00:20#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule cancelled", "00:00:20#1 schedule succeeded"})
		c.apart(t, "a")
		replaced(t, causes)
		if runs := c.executions("a"); runs[0].over.Sub(day2000().Add(22*time.Second)) > time.Second+20*time.Millisecond {
			t.Errorf("the run was told later than a third of the lease: it ended at %v", runs[0].over)
		}
	})
}

// The tick waits for a run that ignores its context: the newest such tick starts, the others are overlapped.
func TestReplaceWaitsForARunThatIgnoresItsContext(t *testing.T) {
	for _, other := range []bool{false, true} {
		t.Run(fmt.Sprintf("on another replica: %v", other), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				job := Job{Name: "a", Spec: "*/10 * * * * *", Overlap: OverlapReplace, Window: time.Second, Do: func(_ context.Context, run Run) error {
					if run.Tick.Second() == 10 {
						time.Sleep(27 * time.Second)
					}
					return nil
				}}
				r1 := c.start("r1", nil, job)
				if other {
					c.start("r2", nil, job)
				}
				pass(12 * time.Second)
				if other {
					if err := r1.Resign(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				pass(29 * time.Second)
				equal(t, "history", c.history("a"), []string{
					"00:00:10#1 schedule succeeded", "00:00:20 overlap", "00:00:30#1 schedule succeeded", "00:00:40#1 schedule succeeded",
				})
				c.apart(t, "a")
			})
		})
	}
}

// A leader that takes over goes on with the marks that it finds, also where the run is its own.
func TestReplaceSurvivesItsLeader(t *testing.T) {
	for _, tt := range []struct {
		name string
		next string // who leads next
	}{{"a third leads", "r3"}, {"the run's own replica leads", "r1"}} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				job := Job{Name: "a", Spec: "10,20 0 0 * * *", Overlap: OverlapReplace, OnInterrupt: InterruptRerun}
				long := job
				causes := make(chan error, 100)
				long.Do = heeds(time.Second, causes)
				r1 := c.start("r1", nil, long)
				r2 := c.start("r2", nil, job)
				pass(11 * time.Second)
				if err := r1.Resign(t.Context()); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				c.start("r3", nil, job)
				// r2 marks the run and dies; until another one leads, nobody can read the mark.
				dead := false
				c.script.follow(func(call call) fate {
					if call.replica == "r2" && call.op == "commit" && strings.Contains(string(call.changes[0].Value), causeReplaced) {
						dead = true
						return fate{mute: true}
					}
					return fate{
						lost: dead && call.replica == "r2" || call.replica == "r1" && call.op == "read" && !r1.leads(),
						err:  map[bool]error{true: errReset}[call.op == "acquire" && call.replica != tt.next],
					}
				})
				pass(12 * time.Second)
				r2.kill()
				pass(2 * time.Second)
				if !dead || c.leader(t).name != tt.next {
					t.Fatalf("%s leads", c.leader(t).name)
				}
				c.script.follow(nil)
				pass(20 * time.Second)
				replaced(t, causes)
				c.apart(t, "a")
				equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule", tt.next + " 00:00:20#1 catch-up"})
				if e := c.entry(t, "a", 0); e.Outcome != Cancelled {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// A run that is to end dies with its replica: it is interrupted, and not run again, whatever OnInterrupt says.
func TestReplacedRunThatIsInterruptedIsNotRunAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "10,20 0 0 * * *", Overlap: OverlapReplace, OnInterrupt: InterruptRerun}
		deaf := job
		deaf.Do = sleeps(30 * time.Second)
		r1 := c.start("r1", nil, deaf)
		c.start("r2", nil, job)
		pass(11 * time.Second)
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(14 * time.Second)
		r1.kill()
		pass(20 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule", "r2 00:00:20#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule interrupted", "00:00:20#1 schedule succeeded"})
		if e := c.entry(t, "a", 0); !strings.Contains(e.Detail, "not run again: replaced by the tick of 2000-01-01T00:00:20Z") {
			t.Errorf("%+v", e)
		}
	})
}

// A run that waits for its rerun is dropped for a newer tick, also where both are due when a leader comes.
func TestReplaceDropsARunThatWaitsForItsRerun(t *testing.T) {
	for _, tt := range []struct {
		name    string
		until   time.Duration // nobody leads until then
		history []string
		note    string // of the first entry
	}{
		{"the rerun comes first", 0, []string{
			"00:00:10#1 schedule interrupted", "00:00:10#2 rerun succeeded", "00:00:20#1 schedule succeeded",
		}, ""},
		{"the tick comes first", 19 * time.Second, []string{
			"00:00:10#1 schedule interrupted", "00:00:20#1 schedule succeeded",
		}, "not run again: replaced by the tick of 2000-01-01T00:00:20Z"},
		{"both are due", 25 * time.Second, []string{
			"00:00:10#1 schedule interrupted", "00:00:20#1 catch-up succeeded",
		}, "not run again: replaced by the tick of 2000-01-01T00:00:20Z"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				job := Job{Name: "a", Spec: "10,20 0 0 * * *", Overlap: OverlapReplace, OnInterrupt: InterruptRerun}
				first := job
				first.Do = takes(time.Hour)
				r1 := c.start("r1", nil, first)
				c.start("r2", nil, job)
				pass(12 * time.Second)
				r1.kill()
				c.script.follow(func(call call) fate {
					return fate{lost: call.replica == "r1" || time.Since(day2000()) < tt.until}
				})
				pass(40 * time.Second)
				equal(t, "history", c.history("a"), tt.history)
				if e := c.entry(t, "a", 0); e.Note != tt.note {
					t.Errorf("%+v", e)
				}
			})
		})
	}
}

// A newer tick and an attempt that waits are both due when a leader comes: the attempt is not started for a moment.
func TestReplaceComesBeforeAnAttemptThatIsDueToo(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "10,20 0 0 * * *", Overlap: OverlapReplace, Retry: Retry{Attempts: 2, Delay: 5 * time.Second}, Do: fails(1, errFails)}
		r1 := c.start("r1", nil, job)
		pass(12 * time.Second)
		r1.stop()
		pass(13 * time.Second)
		job.Do = nil
		c.start("r2", nil, job)
		pass(time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:10#1 schedule", "r2 00:00:20#1 catch-up"})
		if e := c.entry(t, "a", 0); e.Note != "not run again: replaced by the tick of 2000-01-01T00:00:20Z" {
			t.Errorf("%+v", e)
		}
	})
}

// A claim whose answer is lost blocks the job until its replica says that it never started it; a newer tick does not wait for
// another attempt of it.
func TestReplaceOfAClaimThatWasNeverStarted(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "10,20 0 0 * * *", Overlap: OverlapReplace}
		r1 := c.start("r1", nil, job)
		c.start("r2", nil, job)
		c.script.follow(func(call call) fate {
			return fate{
				mute: call.replica == "r1" && call.claims("a"),
				lost: call.replica == "r1" && call.op == "read" && !r1.leads(), // it does not find the claim before 20 s
			}
		})
		pass(10*time.Second + 100*time.Millisecond)
		c.takeLease(t, r1)
		pass(12 * time.Second)
		c.script.follow(nil)
		pass(10 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r2 00:00:20#1 schedule"})
		equal(t, "history", c.history("a"), []string{"00:00:10#1 schedule not started", "00:00:20#1 schedule succeeded"})
		if e := c.entry(t, "a", 0); e.Detail != "not run again: replaced by the tick of 2000-01-01T00:00:20Z" {
			t.Errorf("%+v", e)
		}
	})
}

// An overrun replaced again and again, while leaders come and go: never two at once, and each tick is accounted for.
func TestReplaceThroughManyLeaders(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/3 * * * * *", Overlap: OverlapReplace, Do: takes(time.Hour)}
		for n := range 3 {
			c.start(fmt.Sprint("r", n+1), nil, job)
		}
		for n := range 20 {
			pass(2300 * time.Millisecond)
			leader := c.leader(t)
			if n%3 == 0 {
				c.start(fmt.Sprint("s", n), nil, job)
				leader.cancel() // its run goes on until it is replaced
			} else if err := leader.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(200 * time.Millisecond)
		}
		c.apart(t, "a")
		if n := len(c.executions("a")); n < 14 {
			t.Errorf("%d runs have started", n)
		}
		seen := make(map[int64]bool)
		for _, e := range c.entries("a") {
			for tick := e.Tick.Unix(); tick <= e.LastTick.Unix(); tick += 3 {
				if seen[tick] {
					t.Errorf("%v stands twice in history", e)
				}
				seen[tick] = true
			}
			if e.Outcome != Cancelled && e.Detail != skipOverlap && !strings.Contains(e.Detail, skipLate) {
				t.Errorf("%+v", e)
			}
		}
	})
}
