package scheduler

import (
	"time"
)

// Why ticks are skipped: the Detail of an entry whose outcome is Skipped begins with one of these.
const (
	skipOverlap   = "overlap"   // due while a run of the job was open
	skipLate      = "late"      // nobody could start it in time, and CatchUp does not make it up
	skipCap       = "cap"       // older than the newest CatchUpMax
	skipRedefined = "redefined" // due under a schedule that has been changed since
	skipUnowned   = "unowned"   // due while no leader's binary had the job
	skipPaused    = "paused"    // due while the job, or the group, was paused
	skipReset     = "reset"     // passed over by a reset of the job
)

// noneLate is how late CatchUpNone still starts a tick.
const noneLate = time.Second

// situation is all that decides what becomes of a job's due ticks.
type situation struct {
	now       time.Time
	termStart time.Time
	watermark time.Time
	openUntil time.Time // a run of the job was open until then
	open      bool      // a run of the job is open now
	pausedTo  time.Time // what is due before that is paused
	free      int       // how many runs may start now
	unowned   bool      // no leader had the job until now
}

// claim is a tick to be started.
type claim struct {
	tick   time.Time
	reason Reason
}

// row is a run of consecutive ticks that are skipped for one reason.
type row struct {
	first, last time.Time
	ticks       int
	reason      string
}

// plan is what becomes of the ticks in (old watermark, new watermark]: each stands in exactly one claim or row.
type plan struct {
	claims    []claim
	rows      []row
	watermark time.Time
	waiting   bool      // due ticks are left that wait for the end of a run
	replaces  time.Time // the tick for which the open runs are to end; zero is none
}

// decide is the whole policy of due ticks, without I/O and without a clock.
func (d *definition) decide(s situation) plan {
	p := &planner{def: d, situation: s, plan: plan{watermark: s.watermark}}
	newest := d.jitter.newest(s.watermark, s.now)
	if newest.IsZero() {
		return p.plan
	}
	if s.pausedTo.After(s.watermark) {
		p.skip(d.jitter.newest(s.watermark, earlier(s.pausedTo.Add(-1), s.now)), skipPaused)
		if !newest.After(p.plan.watermark) {
			return p.plan
		}
	}
	switch d.Overlap {
	case OverlapSkip:
		if s.open {
			p.skip(newest, skipOverlap)
			return p.plan
		}
		if s.openUntil.After(s.watermark) {
			p.skip(d.jitter.newest(s.watermark, earlier(s.openUntil, s.now)), skipOverlap)
		}
		if !newest.After(p.plan.watermark) {
			return p.plan
		}
	case OverlapQueue:
		if s.open {
			p.waiting = true
			return p.plan
		}
	case OverlapReplace:
		if s.open {
			p.waiting, p.replaces = true, newest
			return p.plan
		}
	}
	if s.free <= 0 {
		p.waiting = true
		return p.plan
	}
	switch d.CatchUp {
	case CatchUpAll:
		p.all(newest)
	case CatchUpLatest:
		p.one(newest, d.Window)
	case CatchUpNone:
		p.one(newest, noneLate)
	}
	return p.plan
}

type planner struct {
	def *definition
	situation
	plan
}

// one starts the newest tick if it is at most tolerance late. Where it is later than that, the newest tick that waited for
// a run to end is started instead, whatever its age.
func (p *planner) one(newest time.Time, tolerance time.Duration) {
	queued := p.queued()
	start := newest
	if p.now.Sub(p.def.jitter.due(newest)) > tolerance {
		start = queued
	}
	p.skipBefore(queued, skipOverlap)
	if !queued.IsZero() && queued.Before(start) {
		p.skip(queued, skipOverlap)
	}
	if !start.IsZero() {
		p.skipBefore(start, skipLate)
		p.claim(start, newest)
	}
	p.skip(newest, skipLate)
}

// all starts the ticks within the window, the newest CatchUpMax of them, oldest first: one after another, unless runs may
// overlap.
func (p *planner) all(newest time.Time) {
	old := p.def.jitter.newest(p.plan.watermark, p.now.Add(-p.def.Window-1))
	line := p.def.table.newestOf(p.def.CatchUpMax, later(p.plan.watermark, old), newest)
	if len(line) == 0 {
		if queued := p.queued(); !queued.IsZero() {
			line = []time.Time{queued}
		}
	}
	if len(line) == 0 {
		p.skip(newest, skipLate)
		return
	}
	if old.Before(line[0]) {
		p.skip(old, skipLate)
	} else {
		p.skipBefore(line[0], skipLate)
	}
	p.skipBefore(line[0], skipCap)
	if p.def.Overlap != OverlapAllow {
		line = line[:1]
	}
	for _, tick := range line[:min(len(line), p.free)] {
		p.claim(tick, newest)
	}
	p.waiting = newest.After(p.plan.watermark)
}

// queued returns the newest tick that OverlapQueue or OverlapReplace let wait for the end of a run, or the zero time.
func (p *planner) queued() time.Time {
	if p.def.Overlap != OverlapQueue && p.def.Overlap != OverlapReplace {
		return time.Time{}
	}
	return p.def.jitter.newest(p.plan.watermark, earlier(p.openUntil, p.now))
}

func (p *planner) claim(tick, newest time.Time) {
	c := claim{tick: tick, reason: ReasonSchedule}
	if p.def.jitter.due(tick).Before(p.termStart) || tick.Before(newest) {
		c.reason = ReasonCatchUp
	}
	p.claims = append(p.claims, c)
	p.plan.watermark = tick
}

func (p *planner) skipBefore(tick time.Time, reason string) {
	if !tick.IsZero() {
		p.skip(p.def.table.newest(p.plan.watermark, tick.Add(-1)), reason)
	}
}

// skip passes over all ticks up to last.
func (p *planner) skip(last time.Time, reason string) {
	if !last.After(p.plan.watermark) {
		return
	}
	if p.unowned && reason != skipOverlap && reason != skipPaused {
		reason = skipUnowned
	}
	r := row{
		first:  p.def.table.next(p.plan.watermark),
		last:   last,
		ticks:  p.def.table.count(p.plan.watermark, last),
		reason: reason,
	}
	if n := len(p.rows); n > 0 && p.rows[n-1].reason == reason && p.rows[n-1].last.Equal(p.plan.watermark) {
		p.rows[n-1].last, p.rows[n-1].ticks = r.last, p.rows[n-1].ticks+r.ticks
	} else {
		p.rows = append(p.rows, r)
	}
	p.plan.watermark = last
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
