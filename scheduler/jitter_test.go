package scheduler

import (
	"fmt"
	"testing"
	"time"
)

// The delays are the same on every replica, whatever its version: another hash would be another promise.
func TestJitterIsTheSameOnEveryReplica(t *testing.T) {
	for _, tt := range []struct {
		job   Job
		tick  string
		delay time.Duration
	}{
		{Job{Name: "report", Spec: "*/5 * * * *", Jitter: time.Minute}, "12:00", 5_328_696_608},
		{Job{Name: "report", Spec: "*/5 * * * *", Jitter: time.Minute}, "12:05", 17_465_203_972},
		{Job{Name: "report", Spec: "*/5 * * * *", Jitter: time.Minute}, "1d 12:05", 23_797_564_930},
		{Job{Name: "sync", Spec: "*/5 * * * *", Jitter: time.Minute}, "12:05", 7_187_517_265},
		{Job{Name: "sync", Spec: "*/5 * * * *", Jitter: time.Hour}, "12:05", 127_481_660_982},
		{Job{Name: "sync", Spec: "*/5 * * * *"}, "12:05", 0},
	} {
		d := defined(t, tt.job)
		tick := at(t, tt.tick)
		if got := d.jitter.due(tick).Sub(tick); got != tt.delay {
			t.Errorf("%s with %v at %s is delayed by %d, want %d", tt.job.Name, tt.job.Jitter, tt.tick, got, tt.delay)
		}
	}
}

func TestJitterEndsBeforeTheNextTick(t *testing.T) {
	for _, j := range []Job{
		{Spec: "*/5 * * * *", Jitter: time.Minute},
		{Spec: "*/5 * * * *", Jitter: time.Hour},
		{Spec: "* * * * * *", Jitter: time.Hour},
		{Spec: "* * * * * *", Jitter: 1},
		{Spec: "0,5 0 * * * *", Jitter: time.Minute},
		{Spec: "every thirteen", Schedule: everyNth(13), Jitter: time.Minute},
	} {
		d := defined(t, j)
		var least, most time.Duration = time.Hour, 0
		tick := day
		for range 1000 {
			tick = d.table.next(tick)
			delay := d.jitter.due(tick).Sub(tick)
			if gap := d.table.next(tick).Sub(tick); delay < 0 || delay > j.Jitter || delay >= gap {
				t.Fatalf("%s with %v: %v is delayed by %v, and the next is %v later", j.Spec, j.Jitter, tick, delay, gap)
			}
			least, most = min(least, delay), max(most, delay)
		}
		if room := min(j.Jitter, d.table.next(tick).Sub(tick)); room > 1 && (least > room/20 || most < room/20*19) {
			t.Errorf("%s with %v: a thousand delays lie between %v and %v", j.Spec, j.Jitter, least, most)
		}
	}
}

// What becomes of the ticks of a job that is due every five minutes and starts up to a minute later.
func TestDueTicksFollowTheJitter(t *testing.T) {
	job := Job{Name: "report", Spec: "*/5 * * * *", Jitter: time.Minute}
	due := defined(t, job).jitter.due(at(t, "12:05"))
	for _, tt := range []struct {
		name      string
		overlap   Overlap
		catchUp   CatchUp
		situation situation
		watermark string
		now       time.Time
		want      string
	}{
		{name: "not yet", watermark: "12:00", now: due.Add(-1), want: ""},
		{name: "due", watermark: "12:00", now: due, want: "12:05 schedule"},
		{name: "the one before is missed", watermark: "11:55", now: due.Add(-1), want: "12:00 schedule"},
		{name: "not late", catchUp: CatchUpNone, watermark: "12:00", now: due.Add(time.Second), want: "12:05 schedule"},
		{name: "late", catchUp: CatchUpNone, watermark: "12:00", now: due.Add(time.Second + 1), want: "12:05 late"},
		{name: "due in this term", watermark: "12:00", now: due, situation: situation{termStart: due}, want: "12:05 schedule"},
		{name: "due before this term", watermark: "12:00", now: due.Add(1), situation: situation{termStart: due.Add(1)},
			want: "12:05 catch-up"},
		{name: "open until it is due", watermark: "12:00", now: due.Add(1), situation: situation{openUntil: due}, want: "12:05 overlap"},
		{name: "open until the tick", watermark: "12:00", now: due.Add(1), situation: situation{openUntil: due.Add(-1)},
			want: "12:05 schedule"},
		{name: "open, not due", watermark: "12:00", now: due.Add(-1), situation: situation{open: true}, want: ""},
		{name: "replaces when it is due", overlap: OverlapReplace, watermark: "12:00", now: due.Add(-1),
			situation: situation{open: true}, want: ""},
		{name: "all", catchUp: CatchUpAll, watermark: "11:50", now: due, want: "11:55 catch-up, …"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			j, s := job, tt.situation
			j.Overlap, j.CatchUp = tt.overlap, tt.catchUp
			s.watermark, s.now, s.free = at(t, tt.watermark), tt.now, 10
			if got := defined(t, j).decide(s).String(); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestJitterDelaysStartsWhoeverLeads(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "0 * * * * *", Jitter: 50 * time.Second}
		d, err := define(Job{Name: "a", Spec: job.Spec, Jitter: job.Jitter, Do: work}, schedule6)
		if err != nil {
			t.Fatal(err)
		}
		r1 := c.start("r1", nil, job)
		for n := range 8 {
			tick := day2000().Add(time.Duration(n+1) * time.Minute)
			due := d.jitter.due(tick)
			wait := time.Until(tick) + (due.Sub(tick))/2
			if wait > 0 {
				pass(wait) // between the tick and its start another one leads
			}
			r2 := c.start(fmt.Sprint("r", n+2), nil, job)
			r1.stop()
			pass(time.Until(due) - 1)
			if got := len(c.executions("a")); got != n {
				t.Fatalf("%d ticks have started before the %dth was due", got, n+1)
			}
			st := status(t, c).Jobs[0]
			if !st.Next.Equal(tick) || !st.Overdue.IsZero() {
				t.Errorf("before it is due, %v is the next tick, %v is overdue; the next is %v", st.Next, st.Overdue, tick)
			}
			pass(1)
			runs := c.executions("a")
			if len(runs) != n+1 || !runs[n].at.Equal(due) || !runs[n].run.Tick.Equal(tick) || runs[n].run.Reason != ReasonSchedule {
				t.Fatalf("at %v, when %v was due: %v", time.Now().UTC(), tick, c.started("a"))
			}
			if next := status(t, c).Jobs[0].Next; !next.Equal(tick.Add(time.Minute)) {
				t.Errorf("after %v the next tick is %v", tick, next)
			}
			r1 = r2
		}
	})
}

// A tick that waits for its delay is not overdue; one that nobody has started when it was due is.
func TestStatusOfOverdueJobsKnowsTheJitter(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "0 * * * * *", Jitter: 50 * time.Second}
		d, err := define(Job{Name: "a", Spec: job.Spec, Jitter: job.Jitter, Do: work}, schedule6)
		if err != nil {
			t.Fatal(err)
		}
		r1 := c.start("r1", nil, job)
		pass(30 * time.Second)
		r1.kill()
		tick := day2000().Add(time.Minute)
		pass(time.Until(d.jitter.due(tick)) + overdueAfter)
		if j := status(t, c).Jobs[0]; !j.Overdue.IsZero() {
			t.Errorf("%v is overdue %v after it was due", j.Overdue, overdueAfter)
		}
		pass(1)
		if j := status(t, c).Jobs[0]; !j.Overdue.Equal(tick) {
			t.Errorf("%v is overdue, want %v", j.Overdue, tick)
		}
	})
}
