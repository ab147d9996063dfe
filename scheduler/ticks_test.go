package scheduler

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestB30ClocksApart(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "* * * * * *", Do: takes(10 * time.Millisecond)}
		c.start("r1", nil, job).offset.Store(int64(100 * time.Millisecond))
		c.start("r2", nil, job).offset.Store(int64(-100 * time.Millisecond))
		for range 6 {
			pass(10 * time.Second)
			for _, r := range c.replicas { // each change of leaders is a chance to run a tick twice or not at all
				if r.leads() {
					if err := r.Resign(t.Context()); err != nil {
						t.Fatal(err)
					}
					break
				}
			}
		}
		pass(500 * time.Millisecond)
		var ticks []string
		for _, e := range c.executions("a") {
			ticks = append(ticks, e.run.Tick.Format("15:04:05#1 at"))
		}
		slices.Sort(ticks)
		equal(t, "ticks", ticks, every(1, 1, 60, "at"))
	})
}

func TestB31EveryIsAnchored(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		pass(10 * time.Second)
		r1 := c.start("r1", nil, Job{Name: "a", Spec: "@every 60s"})
		pass(23 * time.Second)
		c.start("r2", nil, Job{Name: "a", Spec: "@every 60s"})
		pass(3*time.Minute + 10*time.Second)
		r1.stop()
		pass(3 * time.Minute)
		equal(t, "history", c.history("a"), every(60, 60, 6, "schedule succeeded"))
	})
}

func TestB32TickWithoutALeader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "*/30 * * * * *"}
		r1 := c.start("r1", nil, job)
		pass(28 * time.Second)
		r1.stop()
		pass(2700 * time.Millisecond)
		c.start("r2", nil, job)
		pass(10 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r2 00:00:30#1 catch-up"})
		equal(t, "history", c.history("a"), []string{"00:00:30#1 catch-up succeeded"})
	})
}

func TestB33StoreAwayAroundATick(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		lease := func(cfg *Config) { cfg.Lease = 15 * time.Second }
		job := Job{Name: "a", Spec: "*/20 * * * * *"}
		c.start("r1", lease, job)
		c.start("r2", lease, job)
		pass(19 * time.Second)
		c.script.follow(func(call) fate { return fate{err: errReset} })
		pass(4 * time.Second)
		c.script.follow(nil)
		pass(5 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:00:20#1 schedule"})
		late := c.executions("a")[0].at.Sub(day2000().Add(20 * time.Second))
		if late < 3*time.Second || late > 3*time.Second+retryMax {
			t.Errorf("it started %v late", late)
		}
	})
}

// day2000 is when bubbles begin.
func day2000() time.Time { return time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) }

func TestB34LongJobs(t *testing.T) {
	for _, tt := range []struct {
		overlap Overlap
		starts  []string
		history []string
	}{
		{OverlapSkip, []string{"00:05:00", "00:25:00", "00:45:00", "01:05:00"}, []string{
			"00:10:00-00:20:00 ×3 overlap", "00:05:00#1 schedule succeeded",
			"00:30:00-00:40:00 ×3 overlap", "00:25:00#1 schedule succeeded",
			"00:50:00-01:00:00 ×3 overlap", "00:45:00#1 schedule succeeded",
		}},
		// The run ends right after a tick: that tick has waited for it.
		{OverlapQueue, []string{"00:05:00", "00:20:00", "00:35:00", "00:50:00", "01:05:00"}, []string{
			"00:05:00#1 schedule succeeded", "00:10:00-00:15:00 ×2 overlap",
			"00:20:00#1 schedule succeeded", "00:25:00-00:30:00 ×2 overlap",
			"00:35:00#1 schedule succeeded", "00:40:00-00:45:00 ×2 overlap",
			"00:50:00#1 schedule succeeded", "00:55:00-01:00:00 ×2 overlap",
		}},
	} {
		inBubble(t, func(t *testing.T, c *cluster) {
			grace := func(cfg *Config) { cfg.Grace = time.Hour }
			job := Job{Name: "a", Spec: "0 */5 * * * *", Overlap: tt.overlap, Window: 150 * time.Second, Do: takes(15*time.Minute + time.Millisecond)}
			c.start("r1", grace, job)
			pass(65*time.Minute + 30*time.Second)
			var starts []string
			for _, e := range c.executions("a") {
				starts = append(starts, e.run.Tick.Format("15:04:05"))
			}
			equal(t, "starts", starts, tt.starts)
			equal(t, "history", c.history("a"), tt.history)
		})
	}
}

// The queue outlives the leader: the tick that waited starts although the run's end was committed by a leader that is gone.
func TestB34QueuedTickOutlivesTheLeader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "0 */5 * * * *", Overlap: OverlapQueue, Window: 150 * time.Second, Do: takes(14 * time.Minute)}
		r1 := c.start("r1", nil, job)
		c.script.follow(func(call call) fate {
			if call.ends("a") { // r1 brings it to the ledger, and dies before it hears of that
				time.AfterFunc(time.Millisecond, r1.kill)
				return fate{reply: time.Second}
			}
			return fate{}
		})
		pass(19*time.Minute + 30*time.Second)
		c.start("r2", nil, job)
		pass(20 * time.Second)
		equal(t, "starts", c.started("a"), []string{"r1 00:05:00#1 schedule", "r2 00:15:00#1 catch-up"})
		equal(t, "history", c.history("a"), []string{"00:05:00#1 schedule succeeded", "00:10:00 overlap"})
	})
}

func TestB35TwoWeeksOfOutage(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll, CatchUpMax: 100, Window: 15 * 24 * time.Hour}
		r1 := c.start("r1", nil, job)
		pass(1500 * time.Millisecond)
		r1.stop()
		pass(14 * 24 * time.Hour)
		c.start("r2", nil, job)
		pass(400 * time.Millisecond)
		entries := c.entries("a")
		if len(entries) != 1+1+100 || entries[1].Outcome != Skipped || entries[1].Detail != skipCap || entries[1].Ticks != 14*86400-100 {
			t.Fatalf("%d entries, the second %+v", len(entries), entries[1])
		}
		for i, e := range entries[2:] {
			want := day2000().AddDate(0, 0, 14).Add(time.Duration(i-98) * time.Second)
			if !e.Tick.Equal(want) || e.Outcome != Succeeded || e.Reason != ReasonCatchUp {
				t.Fatalf("entry %d is %+v, want tick %v", i, e, want)
			}
		}
	})
}

func TestB36ChangedSpecStartsFromNow(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		lease := func(cfg *Config) { cfg.Lease = time.Minute }
		r1 := c.start("r1", lease, Job{Name: "a", Spec: "0 0 0 * * *"})
		pass(12*time.Hour + 30*time.Minute)
		r1.stop()
		c.start("r2", lease, Job{Name: "a", Spec: "0 0 12 * * *"})
		pass(11 * time.Hour)
		equal(t, "starts", c.started("a"), nil)
		pass(13 * time.Hour)
		got := c.executions("a")
		if len(got) != 1 || !got[0].run.Tick.Equal(day2000().Add(36*time.Hour)) || got[0].run.Reason != ReasonSchedule {
			t.Errorf("%+v", got)
		}
		equal(t, "history", c.history("a"), []string{"12:00:00#1 schedule succeeded"})
	})
}

func TestB47WallClockJumps(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		pass(16*time.Hour + 59*time.Minute)
		r := c.start("r1", nil, Job{Name: "hourly", Spec: "0 0 * * * *"}, Job{Name: "minutely", Spec: "0 * * * * *", Window: time.Hour})
		pass(90 * time.Second)
		r.offset.Store(int64(-2 * time.Hour))
		pass(2 * time.Hour)
		equal(t, "starts", c.started("hourly"), []string{"r1 17:00:00#1 schedule"})
		if !strings.Contains(c.log(), "wall clock has gone back") {
			t.Error("the log does not say that the clock has gone back")
		}
		before := len(c.started("minutely"))
		r.offset.Store(0)
		pass(70 * time.Second)
		// The clock is right again: two hours of ticks fall due at once, and the newest of them runs.
		if n := len(c.started("minutely")) - before; n > 2 {
			t.Errorf("%d runs, want the newest missed one and the next", n)
		}
		// Three days ahead: not 4320 runs, and no claim far ahead of the store's clock.
		before = len(c.started("minutely"))
		r.offset.Store(int64(72 * time.Hour))
		pass(3 * time.Minute)
		if n := len(c.started("minutely")) - before; n > 4 {
			t.Errorf("%d runs in three minutes", n)
		}
		for _, e := range c.executions("minutely") {
			if ahead := e.run.Tick.Sub(e.at); ahead > maxAhead {
				t.Errorf("%v started %v early", e.run.Tick, ahead)
			}
		}
	})
}

// Timers do not hear of a wall clock that is set: the loop looks at it every minute.
func TestB47WallClockIsLookedAt(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		pass(50 * time.Minute)
		lease := func(cfg *Config) { cfg.Lease = 5 * time.Minute } // a shorter one would be over for the clock
		r := c.start("r1", lease, Job{Name: "a", Spec: "0 0 * * * *"})
		pass(10 * time.Second)
		r.offset.Store(int64(25 * time.Second))
		pass(10 * time.Minute)
		if got := c.executions("a"); len(got) != 1 || got[0].at.Sub(day2000()) != time.Hour-25*time.Second {
			t.Errorf("%v, the first at %v", c.started("a"), got)
		}
		if strings.Contains(c.log(), "term has ended") {
			t.Error("it took another term to look at the clock")
		}
	})
}

func TestB47ThreeDaysWithoutALeader(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "0 * * * * *", Window: time.Hour}
		r1 := c.start("r1", nil, job)
		pass(90 * time.Second)
		r1.stop()
		pass(72 * time.Hour)
		c.start("r2", nil, job)
		pass(time.Second)
		equal(t, "history", c.history("a"), []string{
			"00:01:00#1 schedule succeeded", "00:02:00-00:00:00 ×4319 late", "00:01:00#1 catch-up succeeded",
		})
	})
}

func TestB56ClockDaysAhead(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		jobs := []Job{
			{Name: "short", Spec: "* * * * * *"},
			{Name: "long", Spec: "* * * * * *", Do: takes(2500 * time.Millisecond)},
			{Name: "queue", Spec: "*/5 * * * * *", Overlap: OverlapQueue, Do: takes(time.Second)},
		}
		r1 := c.start("r1", nil, jobs...)
		r1.offset.Store(int64(72 * time.Hour))
		pass(20 * time.Second)
		r1.offset.Store(0)
		pass(40 * time.Second)
		for _, j := range jobs {
			fresh := slices.ContainsFunc(c.executions(j.Name), func(e execution) bool { return time.Since(e.at) < 8*time.Second })
			if !fresh {
				t.Errorf("job %s is silent after the clock was corrected: %v", j.Name, c.history(j.Name))
			}
		}
		// The same with another leader.
		r1.offset.Store(int64(72 * time.Hour))
		pass(20 * time.Second)
		r1.stop()
		c.start("r2", nil, jobs...)
		pass(40 * time.Second)
		for _, j := range jobs {
			fresh := slices.ContainsFunc(c.executions(j.Name), func(e execution) bool {
				return e.replica.name == "r2" && time.Since(e.at) < 8*time.Second
			})
			if !fresh {
				t.Errorf("job %s is silent under another leader: %v", j.Name, c.history(j.Name))
			}
		}
	})
}

func TestS2EachTickIsAccountedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		outcomes := map[int]error{3: errors.New("no"), 5: nil}
		job := Job{Name: "a", Spec: "* * * * * *", Timeout: 1500 * time.Millisecond, Do: func(ctx context.Context, run Run) error {
			switch s := run.Tick.Second(); s {
			case 5: // longer than its timeout
				return takes(time.Minute)(ctx, run)
			default:
				return outcomes[s]
			}
		}}
		r1 := c.start("r1", nil, job)
		pass(8500 * time.Millisecond)
		r1.stop()
		pass(3 * time.Second)
		r2 := c.start("r2", nil, job)
		pass(time.Second)
		r2.stop()
		c.start("r3", nil, Job{Name: "a", Spec: "*/2 * * * * *"})
		pass(2 * time.Second)
		equal(t, "history", c.history("a"), []string{
			"00:00:01#1 schedule succeeded", "00:00:02#1 schedule succeeded", "00:00:03#1 schedule failed", "00:00:04#1 schedule succeeded",
			"00:00:06 overlap", "00:00:05#1 schedule timed out", "00:00:07#1 schedule succeeded", "00:00:08#1 schedule succeeded",
			"00:00:09-00:00:10 ×2 late", "00:00:11#1 catch-up succeeded", "00:00:12#1 schedule succeeded", "00:00:14#1 schedule succeeded",
		})
	})
}

func TestS6ChangesStartFromNow(t *testing.T) {
	old := Job{Name: "a", Spec: "*/10 * * * * *", CatchUp: CatchUpAll}
	for _, tt := range []struct {
		name    string
		changed Job
		history []string
	}{
		{"a timeout is no change", Job{Name: "a", Spec: "*/10 * * * * *", CatchUp: CatchUpAll, Timeout: time.Minute}, []string{
			"00:00:10#1 catch-up succeeded", "00:00:20#1 catch-up succeeded", "00:00:30#1 catch-up succeeded",
		}},
		{"a policy is no change", Job{Name: "a", Spec: "*/10 * * * * *"}, []string{
			"00:00:10-00:00:20 ×2 late", "00:00:30#1 catch-up succeeded",
		}},
		{"a spelling is no change", Job{Name: "a", Spec: "0-59/10  * * * jan-dec 0-7", CatchUp: CatchUpAll}, []string{
			"00:00:10#1 catch-up succeeded", "00:00:20#1 catch-up succeeded", "00:00:30#1 catch-up succeeded",
		}},
		{"other ticks", Job{Name: "a", Spec: "*/9 * * * * *", CatchUp: CatchUpAll}, []string{
			"00:00:10-00:00:30 ×3 redefined",
		}},
		{"another zone", Job{Name: "a", Spec: "CRON_TZ=Europe/Berlin */10 * * * * *", CatchUp: CatchUpAll}, []string{
			"00:00:10-00:00:30 ×3 redefined",
		}},
		{"another name", Job{Name: "b", Spec: "*/10 * * * * *", CatchUp: CatchUpAll}, nil},
		{"a foreign schedule", Job{Name: "a", Spec: "nth", Schedule: everyNth(10), CatchUp: CatchUpAll}, []string{
			"00:00:10-00:00:30 ×3 redefined",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				r1 := c.start("r1", nil, old)
				pass(5 * time.Second)
				r1.stop()
				pass(29 * time.Second)
				c.start("r2", nil, tt.changed)
				pass(time.Second)
				equal(t, "history", c.history("a"), tt.history)
				if tt.changed.Name != "a" {
					equal(t, "history of "+tt.changed.Name, c.history(tt.changed.Name), nil)
				}
			})
		})
	}
}

// The leader before had a clock that was ahead: a changed job does not start from before what has been dealt with.
func TestS6ChangesMoveNoWatermarkBack(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		r1 := c.start("r1", nil, Job{Name: "a", Spec: "* * * * * *", Overlap: OverlapAllow})
		r1.offset.Store(int64(25 * time.Second))
		pass(5500 * time.Millisecond)
		r1.stop()
		c.start("r2", nil, Job{Name: "a", Spec: "*/2 * * * * *", Overlap: OverlapAllow})
		pass(30 * time.Second)
		runs := c.executions("a")
		for i := 1; i < len(runs); i++ {
			if !runs[i].run.Tick.After(runs[i-1].run.Tick) {
				t.Errorf("%v follows %v", runs[i].run.Tick, runs[i-1].run.Tick)
			}
		}
		if last := runs[len(runs)-1]; last.replica.name != "r2" {
			t.Error("the changed job has not run")
		}
	})
}

func TestB53BinariesThatDiffer(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		old := Job{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll}
		young := Job{Name: "a", Spec: "*/1 * * * * *", CatchUp: CatchUpAll, Timeout: time.Minute}
		pass(200 * time.Millisecond)
		for i := range 6 {
			r := c.start([]string{"old", "young"}[i%2], nil, []Job{old, young}[i%2])
			pass(2500 * time.Millisecond)
			r.stop()
			pass(2 * time.Second)
		}
		c.start("old", nil, old)
		pass(500 * time.Millisecond)
		var got []string
		for _, e := range c.entries("a") {
			got = append(got, e.Tick.Format("15:04:05#1 ")+string(e.Outcome))
		}
		equal(t, "history", got, every(1, 1, 27, "succeeded"))
	})
	inBubble(t, func(t *testing.T, c *cluster) {
		pass(200 * time.Millisecond)
		for i := range 4 {
			r := c.start("r", nil, Job{Name: "a", Spec: []string{"*/2 * * * * *", "*/3 * * * * *"}[i%2]})
			pass(3500 * time.Millisecond)
			r.stop()
			pass(3 * time.Second)
		}
		equal(t, "history", c.history("a"), []string{
			"00:00:02#1 schedule succeeded", "00:00:04-00:00:06 ×2 redefined",
			"00:00:09#1 schedule succeeded", "00:00:12 redefined",
			"00:00:14#1 schedule succeeded", "00:00:16#1 schedule succeeded", "00:00:18 redefined",
			"00:00:21#1 schedule succeeded",
		})
	})
}
