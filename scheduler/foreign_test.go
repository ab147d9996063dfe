package scheduler

import (
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

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
				pass(10500 * time.Millisecond)
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
				pass(9500 * time.Millisecond)
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

// everyNth is a foreign schedule: multiples of so many seconds.
type everyNth int64

func (n everyNth) Next(t time.Time) time.Time {
	return time.Unix((t.Unix()/int64(n)+1)*int64(n), 0)
}
