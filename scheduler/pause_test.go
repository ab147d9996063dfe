package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

func TestB37PausedOverTwoTicks(t *testing.T) {
	for _, job := range []string{"a", ""} {
		t.Run("pause of "+job, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.start("r1", nil, Job{Name: "a", Spec: "*/10 * * * * *"})
				ann := c.asker("ann")
				pass(15 * time.Second)
				ann.want(ann.pause(job, Pause{Reason: "db upgrade"}), "done")
				st := status(t, c)
				if p := st.Jobs[0].Paused; p == nil || p.Reason != "db upgrade" || p.Author != "ann" || !p.Until.IsZero() ||
					(st.Paused != nil) != (job == "") || !st.Jobs[0].Next.IsZero() {
					t.Errorf("%+v", st)
				}
				pass(20 * time.Second)
				ann.want(ann.resume(job), "done")
				pass(4 * time.Second)
				equal(t, "before the next tick", c.started("a"), []string{"r1 00:00:10#1 schedule"})
				if p := status(t, c).Jobs[0].Paused; p != nil {
					t.Errorf("%+v", p)
				}
				pass(2 * time.Second)
				equal(t, "history", c.history("a"), []string{
					"00:00:10#1 schedule succeeded", "00:00:20-00:00:30 ×2 paused", "00:00:40#1 schedule succeeded",
				})
				if log := c.log(); strings.Count(log, `level=WARN msg="ticks skipped"`) != 1 || strings.Count(log, "ticks skipped") != 2 {
					t.Error("the log does not call attention to the first tick that was skipped, and to it alone")
				}
			})
		})
	}
}

// Nobody leads when the pause ends, is ended, or begins: what fell due while it went on does not run.
func TestS6ResumedJobStartsFromNow(t *testing.T) {
	for _, name := range []string{"a", ""} {
		for _, policy := range []CatchUp{CatchUpAll, CatchUpLatest} {
			t.Run(fmt.Sprintf("pause of %s, %d", name, policy), func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *cluster) {
					job := Job{Name: "a", Spec: "*/10 * * * * *", CatchUp: policy}
					r1 := c.start("r1", nil, job)
					ann := c.asker("ann")
					pass(15 * time.Second)
					ann.want(ann.pause(name, Pause{}), "done")
					r1.stop()
					pass(30 * time.Second)
					r := ann.resume(name)
					pass(10 * time.Second) // 00:00:55
					c.start("r2", nil, job)
					ann.want(r, "done")
					pass(6 * time.Second)
					equal(t, "history", c.history("a"), []string{
						"00:00:10#1 schedule succeeded", "00:00:20-00:00:50 ×4 paused", "00:01:00#1 schedule succeeded",
					})
				})
			})
		}
	}
}

func TestPauseEndsByItself(t *testing.T) {
	for _, job := range []string{"a", ""} {
		for _, led := range []bool{true, false} {
			t.Run("pause of "+job, func(t *testing.T) {
				inBubble(t, func(t *testing.T, c *cluster) {
					a := Job{Name: "a", Spec: "*/10 * * * * *", CatchUp: CatchUpAll}
					r1 := c.start("r1", nil, a)
					ann := c.asker("ann")
					pass(5 * time.Second)
					ann.want(ann.pause(job, Pause{Until: day2000().Add(30 * time.Second)}), "done")
					want := []string{"00:00:10-00:00:20 ×2 paused", "00:00:30#1 schedule succeeded", "00:00:40#1 schedule succeeded"}
					if !led { // those after the pause are made up
						r1.stop()
						pass(30 * time.Second)
						vain := ann.resume(job) // what fell due in the pause stays skipped
						c.start("r2", nil, a)
						if got := ann.told(vain); !strings.Contains(got, "is not paused") {
							t.Errorf("the answer is %q", got)
						}
						want[1] = "00:00:30#1 catch-up succeeded"
					}
					pass(time.Until(day2000().Add(41 * time.Second)))
					equal(t, "history", c.history("a"), want)
					if got := ann.told(ann.resume("")); !strings.HasPrefix(got, "refused: the group is not paused") {
						t.Errorf("the answer is %q", got)
					}
				})
			})
		}
	}
}

// A pause outlives its leader, a binary without the job, and the loss of the store's data.
func TestB57PausesSurvive(t *testing.T) {
	for _, job := range []string{"a", ""} {
		t.Run("pause of "+job, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				a := Job{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll}
				r1 := c.start("r1", nil, a)
				ann := c.asker("ann")
				ann.want(ann.pause(job, Pause{Reason: "why"}), "done")
				r1.stop()
				without := c.start("without", nil, Job{Name: "b", Spec: "@yearly"})
				pass(5 * time.Second)
				if p := status(t, c).Jobs[0].Paused; p == nil || p.Reason != "why" {
					t.Errorf("a binary without the job has lost its pause: %+v", p)
				}
				r2 := c.start("r2", nil, a)
				without.stop()
				pass(5 * time.Second)
				c.start("r3", nil, a)
				c.store.Wipe()
				pass(15 * time.Second)
				st := status(t, c)
				if p := st.Jobs[0].Paused; p == nil || p.Reason != "why" || p.Author != "ann" {
					t.Errorf("the loss of data has ended the pause: %+v", st)
				}
				r2.stop()
				pass(5 * time.Second)
				equal(t, "starts", c.started("a"), nil)
				ann.want(ann.resume(job), "done")
				pass(2 * time.Second)
				if starts := c.started("a"); len(starts) != 2 {
					t.Errorf("after the resume: %v", starts)
				}
			})
		})
	}
}

// Who leads when the pause is asked for remembers it.
func TestB57LeaderRemembersPauses(t *testing.T) {
	for _, job := range []string{"a", ""} {
		t.Run("pause of "+job, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				a := Job{Name: "a", Spec: "* * * * * *"}
				c.start("r1", nil, a)
				c.start("r2", nil, a)
				ann := c.asker("ann")
				ann.want(ann.pause(job, Pause{}), "done")
				c.store.Wipe()
				pass(15 * time.Second)
				equal(t, "starts", c.started("a"), nil)
				if p := status(t, c).Jobs[0].Paused; p == nil {
					t.Error("the pause is lost")
				}
			})
		})
	}
}

// A resume outlives the loss of data, too: what is told late of an earlier pause is no news.
func TestB57ResumeSurvives(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		a := Job{Name: "a", Spec: "* * * * * *"}
		c.start("r1", nil, a)
		ann := c.asker("ann")
		ann.want(ann.pause("a", Pause{}), "done")
		restore := c.store.Snapshot()
		ann.want(ann.resume("a"), "done")
		pass(time.Second)
		restore()
		pass(15 * time.Second)
		if p := status(t, c).Jobs[0].Paused; p != nil {
			t.Errorf("%+v", p)
		}
	})
}

func TestNewerDecisionCounts(t *testing.T) {
	pause, resume := &steering{At: 5, Paused: true}, &steering{At: 5}
	later, latest := &steering{At: 6}, &steering{At: 7, Paused: true}
	for _, tt := range []struct{ a, b, want *steering }{
		{nil, nil, nil}, {nil, pause, pause}, {pause, nil, pause}, {nil, resume, resume},
		{pause, resume, pause}, {resume, pause, pause}, {pause, later, later}, {later, pause, later}, {later, latest, latest}, {latest, later, latest},
	} {
		if got := newer(tt.a, tt.b); got != tt.want {
			t.Errorf("newer(%+v, %+v) is %+v", tt.a, tt.b, got)
		}
	}
}

// Replicas tell what they remember in any order, of jobs and of the group.
func TestB57NewestPauseCountsInAnyOrder(t *testing.T) {
	remembers := func(number uint64, watermark int64, s steering) *recall {
		r := newRecall(position{7, number})
		r.Jobs["a"] = encode(&jobRecord{Version: formatVersion, Spec: "@daily", Zone: "UTC", Key: "@daily", Watermark: watermark, Ring: 100, Steering: &s})
		r.Group = encode(groupRecord{Version: formatVersion, Steering: s})
		return r
	}
	for _, want := range []bool{true, false} {
		early, late := remembers(1, 20, steering{At: 1, Paused: !want}), remembers(2, 10, steering{At: 2, Paused: want})
		for _, order := range [][]*recall{{early, late}, {late, early}} {
			all := newRecall(position{})
			for _, r := range order {
				all.merge(r)
			}
			rec, err := decodeJob(store.Record{Key: "a", Value: all.Jobs["a"]})
			if err != nil {
				t.Fatal(err)
			}
			group, err := decodeGroup(all.Group)
			if err != nil {
				t.Fatal(err)
			}
			if rec.Steering.Paused != want || group.Steering.Paused != want || rec.Watermark != 20 {
				t.Errorf("%+v, %+v, want paused %v", rec, group, want)
			}
		}
	}
}
