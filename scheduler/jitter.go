package scheduler

import (
	"crypto/sha256"
	"encoding/binary"
	"time"
)

// jitter says when the ticks of a job fall due: each a while after the instant that names it. The while follows from job and
// tick alone, so that every replica comes to the same, and ends before the next tick.
type jitter struct {
	job   string
	most  time.Duration
	table *timetable
}

// due returns when a tick is to start.
func (x jitter) due(tick time.Time) time.Time {
	if x.most <= 0 || tick.IsZero() {
		return tick
	}
	most := x.most
	if next := x.table.next(tick); !next.IsZero() {
		most = min(most, next.Sub(tick)-1)
	}
	return tick.Add(spread(runID(x.job, tick, ""), most))
}

// newest returns the last tick after after that is due at until, or the zero time.
func (x jitter) newest(after, until time.Time) time.Time {
	tick := x.table.newest(after, until)
	if tick.IsZero() || !x.due(tick).After(until) {
		return tick
	}
	return x.table.newest(after, tick.Add(-time.Second)) // due before that tick, and so at until
}

// next returns when the first tick after after falls due that is not due at now, or the zero time.
func (x jitter) next(after, now time.Time) time.Time {
	after = later(after, x.newest(after, now))
	return x.due(x.table.next(after))
}

// spread returns a duration in [0, most] that follows from a name alone.
func spread(name string, most time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(name))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % (uint64(most) + 1))
}
