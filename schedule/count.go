package schedule

import "time"

// Count returns how many times the expression fires after after, up to and including until. It walks only near changes
// of the zone's offset and in the first and last day, so that years of an every-second expression take milliseconds.
func (e *Expr) Count(after, until time.Time) int {
	from, to := max(after.Unix(), firstSecond-1), min(until.Unix(), lastSecond)
	switch {
	case e.zone == nil || to <= from:
		return 0
	case e.every > 0:
		return int(floorDiv(to, e.every) - floorDiv(from, e.every))
	}
	n := 0
	for from < to {
		s := spanAt(e.zone, from+1)
		first, end := e.wholeDays(s, from, to)
		if first >= end {
			next := min(to, max(s.end+slack, from+1))
			n += e.walk(from, next)
			from = next
			continue
		}
		begin := first*day - s.offset - 1
		n += e.walk(from, begin) + e.fields.namedDays(first, end)*e.fields.perDay()
		from = end*day - s.offset - 1
	}
	return n
}

// wholeDays returns the days, counted from 1970-01-01 and without the last, whose wall times all lie in (from, to] and
// away from both ends of the span.
func (e *Expr) wholeDays(s span, from, to int64) (first, end int64) {
	lo, hi := max(from, s.start+slack), min(to, s.end-slack)
	return -floorDiv(-(lo + s.offset + 1), day), floorDiv(hi+s.offset+1, day)
}

// walk counts instants in (from, to] one by one.
func (e *Expr) walk(from, to int64) int {
	n := 0
	for {
		t := e.Next(time.Unix(from, 0))
		if t.IsZero() || t.Unix() > to {
			return n
		}
		from = t.Unix()
		n++
	}
}

// perDay returns how many times of day the fields name.
func (f *fields) perDay() int { return f.hour.size() * f.minute.size() * f.second.size() }

// namedDays returns how many of the days in [first, end), counted from 1970-01-01, the fields name.
func (f *fields) namedDays(first, end int64) int {
	n := 0
	for first < end {
		y, m, d := time.Unix(first*day, 0).UTC().Date()
		length := monthLength(y, int(m))
		last := min(int64(length), int64(d)+end-first-1)
		if f.month.has(int(m)) {
			days, _ := f.daysIn(y, int(m))
			n += (days & between(d, int(last))).size()
		}
		first += last - int64(d) + 1
	}
	return n
}
