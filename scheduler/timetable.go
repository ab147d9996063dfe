package scheduler

import (
	"fmt"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

// Bounds of what a foreign schedule, which has only Next, may cost.
const (
	foreignSteps = 10_000      // calls of Next for one question
	foreignWait  = time.Second // for one answer; robfig/cron v3.0.1 never returns for some expressions in Pacific/Apia
)

// timetable answers which ticks a job has. All its answers are whole seconds in UTC; the zero time is "none".
type timetable struct {
	expr    *schedule.Expr
	foreign schedule.Schedule // instead of expr
	zone    *time.Location    // in which a foreign schedule is asked
	broken  error             // why a foreign schedule is not asked any more
}

// next returns the first tick after t.
func (t *timetable) next(after time.Time) time.Time {
	if t.expr != nil {
		return utc(t.expr.Next(after))
	}
	return t.ask(after)
}

// newest returns the last tick in (after, until]. A foreign schedule is walked; where that takes too many steps the walk
// goes on from half way, so that the answer is still a tick that the schedule has.
func (t *timetable) newest(after, until time.Time) time.Time {
	if !until.After(after) {
		return time.Time{}
	}
	if t.expr != nil {
		if p := utc(t.expr.Prev(until)); p.After(after) {
			return p
		}
		return time.Time{}
	}
	var last time.Time
	for from, steps := after, 0; ; steps++ {
		n := t.ask(from)
		if n.IsZero() || n.After(until) {
			return last
		}
		last, from = n, n
		if steps == foreignSteps {
			from, steps = n.Add(until.Sub(n)/2).Truncate(time.Second), 0
			if !from.After(n) {
				from = n
			}
		}
	}
}

// last returns the newest n ticks in (after, until], oldest first.
func (t *timetable) last(n int, after, until time.Time) []time.Time {
	var ticks []time.Time
	if t.expr != nil {
		for len(ticks) < n {
			p := t.newest(after, until)
			if p.IsZero() {
				break
			}
			ticks = append(ticks, p)
			until = p.Add(-time.Second)
		}
		for i, j := 0, len(ticks)-1; i < j; i, j = i+1, j-1 {
			ticks[i], ticks[j] = ticks[j], ticks[i]
		}
		return ticks
	}
	for tick := t.ask(after); !tick.IsZero() && !tick.After(until) && len(ticks) < foreignSteps; tick = t.ask(tick) {
		ticks = append(ticks, tick)
	}
	return ticks[max(0, len(ticks)-n):]
}

// count returns how many ticks lie in (after, until]; of a foreign schedule it counts at most foreignSteps.
func (t *timetable) count(after, until time.Time) int {
	if t.expr != nil {
		return t.expr.Count(after, until)
	}
	n := 0
	for tick := t.ask(after); !tick.IsZero() && !tick.After(until) && n < foreignSteps; tick = t.ask(tick) {
		n++
	}
	return n
}

// ask calls a foreign schedule's Next, which may panic, go back in time or search for ever. After the first such fault it
// is not asked again.
func (t *timetable) ask(after time.Time) time.Time {
	if t.broken != nil {
		return time.Time{}
	}
	type answer struct {
		tick  time.Time
		panic any
	}
	got := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			a.panic = recover()
			got <- a
		}()
		a.tick = t.foreign.Next(after.In(t.zone))
	}()
	late := time.NewTimer(foreignWait)
	defer late.Stop()
	select {
	case a := <-got:
		if a.panic != nil {
			t.broken = fmt.Errorf("schedule panicked: %v", a.panic)
			return time.Time{}
		}
		if a.tick.IsZero() {
			return time.Time{}
		}
		tick := a.tick.Truncate(time.Second)
		if tick.Before(a.tick) {
			tick = tick.Add(time.Second)
		}
		if !tick.After(after) {
			t.broken = fmt.Errorf("schedule went back: Next(%s) is %s", after.Format(time.RFC3339), a.tick.Format(time.RFC3339))
			return time.Time{}
		}
		return tick.UTC()
	case <-late.C:
		t.broken = fmt.Errorf("schedule did not answer Next(%s) within %v", after.Format(time.RFC3339), foreignWait)
		return time.Time{}
	}
}

// utc keeps the zero time zero.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
