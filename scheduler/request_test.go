package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// asker is somebody who asks the leader for something, over a line of its own.
type asker struct {
	*Inspector
	cluster *cluster
	ctx     context.Context
}

func (c *cluster) asker(name string) *asker {
	c.t.Helper()
	in, err := NewInspector(&line.Line{Store: c.store, Replica: name, Carrier: c.script}, "g", name)
	if err != nil {
		c.t.Fatal(err)
	}
	w := world.Seeded(1, name, func() time.Duration { return 0 })
	return &asker{Inspector: in, cluster: c, ctx: world.With(c.t.Context(), w)}
}

// post asks, and fails unless the store has taken it.
func (a *asker) post(ask func(context.Context) (*Request, error)) *Request {
	a.cluster.t.Helper()
	r, err := ask(a.ctx)
	if err != nil {
		a.cluster.t.Fatal(err)
	}
	return r
}

func (a *asker) trigger(job string) *Request {
	a.cluster.t.Helper()
	return a.post(func(ctx context.Context) (*Request, error) { return a.Trigger(ctx, job, time.Time{}) })
}

func (a *asker) pause(job string, p Pause) *Request {
	a.cluster.t.Helper()
	return a.post(func(ctx context.Context) (*Request, error) { return a.Pause(ctx, job, p) })
}

func (a *asker) resume(job string) *Request {
	a.cluster.t.Helper()
	return a.post(func(ctx context.Context) (*Request, error) { return a.Resume(ctx, job) })
}

func (a *asker) cancel(run string) *Request {
	a.cluster.t.Helper()
	return a.post(func(ctx context.Context) (*Request, error) { return a.Cancel(ctx, run) })
}

// told waits for an answer and says it: "succeeded", "refused: …", or "done".
func (a *asker) told(r *Request) string {
	a.cluster.t.Helper()
	e, err := r.Wait(a.ctx)
	switch {
	case errors.Is(err, ErrRefused):
		return strings.TrimPrefix(err.Error(), "scheduler: request ")
	case err != nil:
		return err.Error()
	case e.Outcome != "":
		return string(e.Outcome)
	}
	return answerDone
}

// want fails unless the answer is that.
func (a *asker) want(r *Request, answer string) {
	a.cluster.t.Helper()
	if got := a.told(r); got != answer {
		a.cluster.t.Errorf("the answer is %q, want %q", got, answer)
	}
}

func TestTrigger(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "0 30 * * * *", Do: takes(2 * time.Second)}
		c.start("r1", nil, job)
		pass(1500 * time.Millisecond)
		ann := c.asker("ann")
		before := status(t, c).Jobs[0].Watermark
		r := ann.trigger("a")
		e, err := r.Accepted(ann.ctx)
		if err != nil || e.RunID != "a@2000-01-01T00:00:01Z+"+r.ID || e.Job != "a" || e.Outcome != "" {
			t.Errorf("%+v, %v", e, err)
		}
		e, err = r.Wait(ann.ctx)
		if err != nil || e.Outcome != Succeeded || e.Attempt != 1 || e.Reason != ReasonManual || e.Author != "ann" || e.Request != r.ID ||
			!e.Tick.Equal(day2000().Add(time.Second)) || !e.Ended.Equal(day2000().Add(3500*time.Millisecond)) {
			t.Errorf("%+v, %v", e, err)
		}
		run := c.executions("a")[0].run
		if run.ID() != e.RunID || run.Reason != ReasonManual || run.Request != r.ID || run.Replica != e.Replica {
			t.Errorf("%+v", run)
		}
		if got := status(t, c).Jobs[0].Watermark; !got.Equal(before) {
			t.Errorf("the watermark is %v, was %v", got, before)
		}
		if len(c.records(store.InboxBucket)) != 0 {
			t.Error("the request is still in the inbox")
		}

		r = ann.post(func(ctx context.Context) (*Request, error) {
			return ann.Trigger(ctx, "a", day2000().Add(-48*time.Hour+500*time.Millisecond))
		})
		ann.want(r, "succeeded")
		pass(30 * time.Minute) // the schedule goes on as if nothing had been
		equal(t, "starts", c.started("a"), []string{"r1 00:00:01#1 manual", "r1 00:00:00#1 manual", "r1 00:30:00#1 schedule"})
		if run := c.executions("a")[1].run; run.ID() != "a@1999-12-30T00:00:00Z+"+r.ID {
			t.Errorf("%s", run.ID())
		}
	})
}

func TestB45ManualRunsAndOverlap(t *testing.T) {
	for _, tt := range []struct {
		overlap Overlap
		answers []string // of two triggers while a scheduled run goes on
		starts  []string
	}{
		{OverlapSkip,
			[]string{"refused: overlap: run a@2000-01-01T00:00:10Z is open", "refused: overlap: run a@2000-01-01T00:00:10Z is open"},
			[]string{"00:00:10 at 10 schedule"}},
		{OverlapQueue,
			[]string{"succeeded", "succeeded"},
			[]string{"00:00:10 at 10 schedule", "00:00:11 at 15 manual", "00:00:12 at 20 manual"}},
		{OverlapReplace,
			[]string{"cancelled", "succeeded"},
			[]string{"00:00:10 at 10 schedule", "00:00:11 at 11 manual", "00:00:12 at 12 manual"}},
		{OverlapAllow,
			[]string{"succeeded", "succeeded"},
			[]string{"00:00:10 at 10 schedule", "00:00:11 at 11 manual", "00:00:12 at 12 manual"}},
	} {
		t.Run(tt.answers[0]+fmt.Sprint(tt.overlap), func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.start("r1", nil, Job{Name: "a", Spec: "10 * * * * *", Overlap: tt.overlap, Do: takes(5 * time.Second)})
				ann := c.asker("ann")
				pass(11 * time.Second)
				first := ann.trigger("a")
				pass(time.Second)
				second := ann.trigger("a")
				ann.want(first, tt.answers[0])
				ann.want(second, tt.answers[1])
				var starts []string
				for _, e := range c.executions("a") {
					starts = append(starts, fmt.Sprintf("%s at %.0f %s", e.run.Tick.Format("15:04:05"), e.at.Sub(day2000()).Seconds(), e.run.Reason))
				}
				equal(t, "starts", starts, tt.starts)
			})
		})
	}
}

// Manual runs count for overlap: what falls due meanwhile is treated as if a scheduled run went on.
func TestManualRunOverlapsTicks(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		do := func(ctx context.Context, run Run) error {
			if run.Reason == ReasonManual {
				return takes(2200*time.Millisecond)(ctx, run)
			}
			return nil
		}
		c.start("r1", nil, Job{Name: "skip", Spec: "* * * * * *", Do: do}, Job{Name: "queue", Spec: "* * * * * *", Overlap: OverlapQueue, Do: do})
		pass(1500 * time.Millisecond)
		ann := c.asker("ann")
		ann.trigger("skip")
		ann.trigger("queue")
		pass(3 * time.Second)
		equal(t, "skip", c.history("skip"), []string{
			"00:00:01#1 schedule succeeded", "00:00:02-00:00:03 ×2 overlap", "00:00:01#1 manual succeeded", "00:00:04#1 schedule succeeded",
		})
		equal(t, "queue", c.history("queue"), []string{
			"00:00:01#1 schedule succeeded", "00:00:01#1 manual succeeded", "00:00:02 overlap", "00:00:03#1 schedule succeeded",
			"00:00:04#1 schedule succeeded",
		})
	})
}

// Several wait for the same end: they begin one after another, in the order in which they were asked for.
func TestManualRunsWaitInLine(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "10 * * * * *", Overlap: OverlapQueue, Do: takes(2 * time.Second)})
		ann := c.asker("ann")
		pass(11 * time.Second)
		var asked []*Request
		for range 3 {
			asked = append(asked, ann.trigger("a"))
			pass(10 * time.Millisecond)
		}
		for _, r := range asked {
			ann.want(r, "succeeded")
		}
		for n, e := range c.executions("a")[1:] {
			if at := time.Duration(12+2*n) * time.Second; e.run.Request != asked[n].ID || !e.at.Equal(day2000().Add(at)) {
				t.Errorf("%d: %s at %v", n, e.run.ID(), e.at)
			}
		}
	})
}

func TestB38RequestsFromInsideAJob(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		bot := c.asker("bot")
		var answers []string
		c.start("r1", nil,
			Job{Name: "a", Spec: "5 0 0 * * *", Do: func(context.Context, Run) error {
				answers = append(answers, bot.told(bot.trigger("b")), bot.told(bot.trigger("a")),
					bot.told(bot.pause("b", Pause{})), bot.told(bot.resume("b")), bot.told(bot.trigger("c")))
				return nil
			}},
			Job{Name: "b", Spec: "@yearly", Do: takes(time.Second)})
		pass(10 * time.Second)
		equal(t, "answers", answers, []string{"succeeded", "refused: overlap: run a@2000-01-01T00:00:05Z is open", "done", "done",
			`refused: there is no job "c"`})
		equal(t, "history", c.history("a"), []string{"00:00:05#1 schedule succeeded"})
	})
}

func TestB54RequestsThatComeTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "* * * * * *", Overlap: OverlapAllow})
		ann := c.asker("ann")
		c.script.follow(func(call call) fate {
			if call.op == "post" {
				return fate{again: 5 * time.Second} // slow, on an old socket
			}
			return fate{}
		})
		ann.want(ann.pause("a", Pause{}), "done")
		ann.want(ann.resume("a"), "done")
		ann.want(ann.trigger("a"), "succeeded")
		pass(10 * time.Second)
		if p := status(t, c).Jobs[0].Paused; p != nil {
			t.Errorf("the job is paused: %+v", p)
		}
		manual := slices.DeleteFunc(c.started("a"), func(s string) bool { return !strings.Contains(s, "manual") })
		if len(manual) != 1 {
			t.Errorf("the trigger has run %d times: %v", len(manual), manual)
		}
	})
}

// What was asked for first and comes last is no news, whether the resume that has overtaken it found anything to end or not.
func TestB54PauseThatIsOvertaken(t *testing.T) {
	const onItsWay = "; a pause of yours that is still on its way has no effect"
	for _, tt := range []struct{ job, paused, answer string }{
		{"a", "a", "done"},
		{"a", "", `refused: job "a" is not paused` + onItsWay},
		{"", "", "refused: the group is not paused" + onItsWay},
	} {
		t.Run("of "+tt.job+" while paused is "+tt.paused, func(t *testing.T) { testOvertakenPause(t, tt.job, tt.paused, tt.answer) })
	}
}

func testOvertakenPause(t *testing.T, job, paused, answer string) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "* * * * * *"})
		ann, bob := c.asker("ann"), c.asker("bob")
		c.script.follow(func(call call) fate {
			if call.op == "post" && call.replica == "ann" && c.script.count("ann", "post") == 1 {
				return fate{request: 5 * time.Second}
			}
			return fate{}
		})
		ctx, cancel := context.WithTimeout(ann.ctx, time.Second)
		defer cancel()
		if _, err := ann.Pause(ctx, job, Pause{}); err == nil || !strings.Contains(err.Error(), "not known whether") {
			t.Errorf("%v", err)
		}
		if paused != "" {
			bob.want(bob.pause(paused, Pause{}), "done")
		}
		ann.want(ann.resume(job), answer)
		pass(10 * time.Second)
		if p := status(t, c).Jobs[0].Paused; p != nil {
			t.Errorf("the job is paused: %+v", p)
		}
		refused := 0
		for _, value := range c.records(bucketSeen) {
			if strings.Contains(value, "a later pause or resume of the same author") {
				refused++
			}
		}
		if refused != 1 {
			t.Errorf("%v", c.records(bucketSeen))
		}
	})
}

func TestRequestsThatGetLost(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		c.start("r1", nil, Job{Name: "a", Spec: "@yearly", Overlap: OverlapAllow})
		ann := c.asker("ann")
		for n, fate1 := range []fate{{lost: true}, {mute: true}, {err: errReset}, {swallow: true}} {
			first := true
			c.script.follow(func(call call) fate {
				if call.op == "post" && first {
					first = false
					return fate1
				}
				return fate{}
			})
			want := "succeeded"
			if fate1.swallow {
				want = "scheduler: request has no answer: "
			}
			if got := ann.told(ann.trigger("a")); !strings.HasPrefix(got, want) {
				t.Errorf("case %d: the answer is %q", n, got)
			}
		}
		if starts := c.started("a"); len(starts) != 3 {
			t.Errorf("%v", starts)
		}
	})
}

// TestRequestsOnTheirWayAreNotLost: a request leaves each place just before it is looked for there, and its waiter has read
// the answers a little earlier.
func TestRequestsOnTheirWayAreNotLost(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		end := make(chan struct{})
		c.start("r1", nil, Job{Name: "a", Spec: "@yearly", Do: func(ctx context.Context, _ Run) error {
			select {
			case <-end:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}})
		pass(5 * time.Second)
		var looked, ended bool
		c.script.follow(func(call call) fate {
			switch reads := call.op == "read"; {
			case reads && call.replica == "r1" && call.about == store.InboxBucket && !looked:
				return fate{err: errReset}
			case reads && call.replica == "ann" && call.about == store.InboxBucket:
				looked = true
				return fate{request: 3 * time.Second}
			case reads && call.replica == "ann" && call.about == bucketRun:
				if !ended {
					ended = true
					close(end)
				}
				return fate{request: 3 * time.Second}
			}
			return fate{}
		})
		ann := c.asker("ann")
		ann.want(ann.trigger("a"), "succeeded")
		if !looked || !ended {
			t.Errorf("looked for in the inbox: %v, among the runs: %v; that is not what this test is about", looked, ended)
		}
	})
}

func TestRequestsNeedALeader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		ann := c.asker("ann")
		job := Job{Name: "a", Spec: "@yearly"}
		began := time.Now()
		r := ann.trigger("a")
		if _, err := r.Wait(ann.ctx); !errors.Is(err, store.ErrNoLeader) || !strings.Contains(err.Error(), "nobody has led g for 5s") {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took < 5*time.Second || took > 7*time.Second {
			t.Errorf("it took %v", took)
		}
		c.start("r1", nil, job) // it waits for a leader
		ann.want(r, "succeeded")

		// Where nobody leads but replicas are there, their leases say how long to wait.
		c.script.follow(func(call call) fate {
			if call.op == "acquire" || call.op == "renew" {
				return fate{lost: true}
			}
			return fate{}
		})
		pass(2800 * time.Millisecond)
		began = time.Now()
		if _, err := ann.trigger("a").Wait(ann.ctx); !errors.Is(err, store.ErrNoLeader) {
			t.Errorf("%v", err)
		}
		if took := time.Since(began); took > 16*time.Second {
			t.Errorf("it took %v", took)
		}
		c.script.follow(nil)
	})
}

func TestB54OldRequestsAreRefused(t *testing.T) {
	for _, tt := range []struct {
		name   string
		wait   time.Duration // until there is a leader
		clock  time.Duration // the poster's, beside the store's
		answer string
	}{
		{"young", 29 * time.Minute, 0, "succeeded"},
		{"old", 31 * time.Minute, 0, "refused: it is 31m0s old, more than 30m0s: ask again"},
		{"behind", 0, -31 * time.Minute, "refused: it is 31m0s old, more than 30m0s: ask again"},
		{"ahead", 0, 32 * time.Minute, "refused: it comes from a clock that is 32m0s ahead of the store's: set that clock"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				ann := c.asker("ann")
				w := world.Seeded(1, "ann", func() time.Duration { return tt.clock })
				ann.ctx = world.With(t.Context(), w)
				r := ann.trigger("a")
				pass(tt.wait)
				c.start("r1", nil, Job{Name: "a", Spec: "@yearly"})
				ann.want(r, tt.answer)
			})
		})
	}
}

// The leader dies with the run: Wait tells what became of it.
func TestWaitTellsTheTrueOutcome(t *testing.T) {
	for _, tt := range []struct {
		name    string
		policy  Interrupt
		outcome Outcome
		attempt int
	}{{"record", InterruptRecord, Interrupted, 1}, {"rerun", InterruptRerun, Succeeded, 2}} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				job := Job{Name: "a", Spec: "@yearly", OnInterrupt: tt.policy, Do: takes(3 * time.Second)}
				r1 := c.start("r1", nil, job)
				c.start("r2", nil, job)
				pass(time.Second)
				ann := c.asker("ann")
				r := ann.trigger("a")
				if _, err := r.Accepted(ann.ctx); err != nil {
					t.Fatal(err)
				}
				pass(time.Second)
				r1.kill()
				e, err := r.Wait(ann.ctx)
				if err != nil || e.Outcome != tt.outcome || e.Attempt != tt.attempt || e.Request != r.ID {
					t.Errorf("%+v, %v", e, err)
				}
			})
		})
	}
}

// The leader dies before or after the commit that acts on the trigger, or that claims it: it acts once, or is told never
// to have been started.
func TestLeaderDiesWhileItAnswers(t *testing.T) {
	for _, when := range []string{"before", "after"} {
		for _, bucket := range []string{store.InboxBucket, bucketRun} {
			t.Run(when+" "+bucket, func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *cluster) {
					job := Job{Name: "a", Spec: "@yearly", OnInterrupt: InterruptRerun, Do: takes(time.Second)}
					r1 := c.start("r1", nil, job)
					c.start("r2", nil, job)
					pass(time.Second)
					ann := c.asker("ann")
					c.script.follow(func(call call) fate {
						if call.replica != "r1" || r1.checked {
							return fate{lost: call.replica == "r1"}
						}
						if call.op == "commit" && slices.ContainsFunc(call.changes, func(ch store.Change) bool {
							return ch.Bucket == bucket && (bucket != bucketRun || strings.Contains(string(ch.Value), `"replica":"r1`))
						}) {
							go func() { close(r1.dead); r1.cancel() }()
							r1.checked = true
							return fate{lost: when == "before", mute: when == "after"}
						}
						return fate{}
					})
					r := ann.trigger("a")
					e, err := r.Wait(ann.ctx)
					if err != nil || e.Outcome != Succeeded {
						t.Errorf("%+v, %v", e, err)
					}
					if starts := c.started("a"); len(starts) != 1 || !strings.HasPrefix(starts[0], "r2 ") {
						t.Errorf("%v", starts)
					}
					if e.Attempt > 2 {
						t.Errorf("%+v", e)
					}
				})
			})
		}
	}
}

// One look at the inbox follows another before the leader acts on what it has read.
func TestB54RequestReadTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		ann := c.asker("ann")
		r := ann.trigger("a")
		c.script.follow(func(call call) fate {
			if call.replica == "r1" && call.op == "read" && call.about == store.InboxBucket && c.script.count("r1", "commit") == 0 {
				c.replicas[0].inbox.Store(true)
			}
			return fate{}
		})
		c.start("r1", nil, Job{Name: "a", Spec: "@yearly", Do: takes(time.Second)})
		ann.want(r, "succeeded")
		if got := c.started("a"); len(got) != 1 {
			t.Errorf("%v", got)
		}
		if st := status(t, c); len(st.Running) > 0 {
			t.Errorf("%+v", st.Running)
		}
	})
}

// The first second of 1970 is written as none is.
func TestRequestOfTheEpochIsNotOneOfNow(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		ann := c.asker("ann")
		if _, err := ann.Trigger(ann.ctx, "a", time.Unix(0, 0)); err == nil {
			t.Error("a trigger as of 1970 is one of now")
		}
		if _, err := ann.Pause(ann.ctx, "a", Pause{Until: time.Unix(0, 0)}); err == nil {
			t.Error("a pause until 1970 is one without an end")
		}
	})
}
