package scheduler

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

// Bounds of what a foreign schedule, which has only Next, may cost.
const (
	foreignSteps = 100_000     // calls of Next for one question, some 30 ms of robfig/cron's; then half of the rest is left out
	foreignWait  = time.Second // for one call, twice; robfig/cron v3.0.1 never returns for some expressions in Pacific/Apia
)

// timetable answers which ticks a job has. All its answers are whole seconds in UTC; the zero time is "none". It is safe
// for concurrent use.
type timetable struct {
	expr    *schedule.Expr
	foreign schedule.Schedule // instead of expr
	zone    *time.Location    // in which a foreign schedule is asked
	broken  atomic.Pointer[error]
}

// fault returns why a foreign schedule is not asked any more, or nil.
func (t *timetable) fault() error {
	if err := t.broken.Load(); err != nil {
		return *err
	}
	return nil
}

// next returns the first tick after t.
func (t *timetable) next(after time.Time) time.Time {
	if t.expr != nil {
		return utc(t.expr.Next(after))
	}
	return t.walk(walk{after: after, until: endOfTime, steps: 1}).last
}

// newest returns the last tick in (after, until].
func (t *timetable) newest(after, until time.Time) time.Time {
	switch {
	case !until.After(after):
		return time.Time{}
	case t.expr == nil:
		return t.walk(walk{after: after, until: until}).last
	}
	if p := utc(t.expr.Prev(until)); p.After(after) {
		return p
	}
	return time.Time{}
}

// newestOf returns the newest n ticks in (after, until], oldest first.
func (t *timetable) newestOf(n int, after, until time.Time) []time.Time {
	if t.expr == nil {
		kept := t.walk(walk{after: after, until: until, keep: n}).kept
		return kept[max(0, len(kept)-n):]
	}
	var ticks []time.Time
	for len(ticks) < n {
		p := t.newest(after, until)
		if p.IsZero() {
			break
		}
		ticks = append(ticks, p)
		until = p.Add(-time.Second)
	}
	slices.Reverse(ticks)
	return ticks
}

// count returns how many ticks lie in (after, until]; of a foreign schedule with more than foreignSteps of them, at least
// so many.
func (t *timetable) count(after, until time.Time) int {
	if t.expr == nil {
		return t.walk(walk{after: after, until: until}).count
	}
	return t.expr.Count(after, until)
}

// endOfTime is later than all ticks.
var endOfTime = time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)

// walk goes over the ticks of a foreign schedule in (after, until], one by one. After steps of them, or foreignSteps, it
// leaves out half of what is left, so that it ends soon, at a tick that the schedule has.
type walk struct {
	after, until time.Time
	keep         int // how many of the newest ticks to keep, or more
	steps        int // stop after so many; 0 is no end

	last  time.Time
	count int
	kept  []time.Time
	err   error
}

// walk does what w says in a goroutine of its own: a foreign Next may panic, go back in time or search for ever. After
// the first such fault the schedule is not asked again.
func (t *timetable) walk(w walk) walk {
	if t.fault() != nil || !w.until.After(w.after) {
		return walk{}
	}
	done, calls := make(chan walk, 1), new(atomic.Int64)
	go func() {
		w := w
		w.err = errors.New("schedule ended its goroutine")
		defer func() {
			if p := recover(); p != nil {
				w.err = fmt.Errorf("schedule panicked: %v", p)
			}
			done <- w
		}()
		w.err = w.over(t.foreign, t.zone, calls)
	}()
	late := time.NewTicker(foreignWait)
	defer late.Stop()
	// A process that was stopped for long finds a tick and no answer: only two ticks without a call in between count.
	for seen, warned := calls.Load(), false; ; {
		select {
		case w = <-done:
			if w.err != nil {
				t.broken.CompareAndSwap(nil, &w.err)
				return walk{}
			}
			return w
		case <-late.C:
		}
		now := calls.Load()
		if now == seen && warned {
			err := fmt.Errorf("schedule does not answer Next(%s…)", w.after.Format(time.RFC3339))
			t.broken.CompareAndSwap(nil, &err)
			return walk{}
		}
		seen, warned = now, now == seen
	}
}

// over asks s for tick after tick.
func (w *walk) over(s schedule.Schedule, zone *time.Location, calls *atomic.Int64) error {
	from := w.after
	for n := 1; ; n++ {
		answer := s.Next(from.In(zone))
		calls.Add(1)
		if answer.IsZero() {
			return nil
		}
		tick := answer.Truncate(time.Second)
		if tick.Before(answer) {
			tick = tick.Add(time.Second)
		}
		tick = tick.UTC()
		if !tick.After(from) {
			return fmt.Errorf("schedule went back: Next(%s) is %s", from.Format(time.RFC3339), answer.Format(time.RFC3339))
		}
		if tick.After(w.until) {
			return nil
		}
		w.add(tick)
		if from = tick; n == w.steps {
			return nil
		}
		if n == foreignSteps {
			from, n = tick.Add(w.until.Sub(tick)/2).Truncate(time.Second), 0
			w.kept = nil
		}
	}
}

func (w *walk) add(tick time.Time) {
	w.last = tick
	w.count++
	if w.keep == 0 {
		return
	}
	if w.kept = append(w.kept, tick); len(w.kept) > 2*w.keep {
		w.kept = slices.Delete(w.kept, 0, w.keep)
	}
}

// utc keeps the zero time zero.
func utc(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return t.UTC()
}
