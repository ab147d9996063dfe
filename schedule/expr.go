package schedule

import "time"

// Schedule says when something fires; the schedules of robfig/cron/v3 satisfy it, and an Expr satisfies theirs.
type Schedule interface {
	// Next returns the first instant after t, or the zero time if there is none.
	Next(t time.Time) time.Time
}

// MaxLength is the longest spec that Parse takes, in bytes.
const MaxLength = 1024

// Options changes how Parse reads an expression; the zero value is five fields in UTC.
type Options struct {
	Seconds bool           // six fields, seconds first; descriptors are read as ever
	Zone    *time.Location // nil is UTC; a CRON_TZ= or TZ= prefix wins
}

// Expr is a parsed expression. It is made by Parse, immutable, and safe for concurrent use; the zero Expr never fires.
type Expr struct {
	source string
	zone   *time.Location
	every  int64 // seconds; 0 is an expression of fields
	fields fields
	fixed  bool // neither minute nor hour starts with "*": each wall time counts once
}

// The instants that schedules know: years 1 to 9999, without the very first second, which is the zero time.
var (
	firstSecond = time.Time{}.Unix() + 1
	lastSecond  = time.Date(9999, time.December, 31, 23, 59, 59, 0, time.UTC).Unix()
)

// Next returns the first instant after t at which the expression fires, in the expression's zone: a whole second,
// without a monotonic reading. It is the zero time only where the year 9999 ends first. Next does not allocate.
func (e *Expr) Next(t time.Time) time.Time {
	sec := max(t.Unix(), firstSecond-1)
	switch {
	case e.zone == nil || sec >= lastSecond:
		return time.Time{}
	case e.every > 0:
		return e.instant((floorDiv(sec, e.every)+1)*e.every, true)
	case e.fixed:
		return e.instant(e.nextFixed(sec))
	default:
		return e.instant(e.nextWall(sec))
	}
}

// Prev returns the last instant at or before t at which the expression fires, in the expression's zone, and the zero
// time only where the year 1 begins first. It mirrors Next: Prev(Next(t)) is Next(t), and Next(Prev(t)) is after t.
func (e *Expr) Prev(t time.Time) time.Time {
	sec := min(t.Unix(), lastSecond)
	switch {
	case e.zone == nil || sec < firstSecond:
		return time.Time{}
	case e.every > 0:
		return e.instant(floorDiv(sec, e.every)*e.every, true)
	case e.fixed:
		return e.instant(e.prevFixed(sec))
	default:
		return e.instant(e.prevWall(sec))
	}
}

// instant returns a result of the search as a time.
func (e *Expr) instant(sec int64, ok bool) time.Time {
	if !ok || sec < firstSecond || sec > lastSecond {
		return time.Time{}
	}
	return time.Unix(sec, 0).In(e.zone)
}

// Zone returns the zone in which the fields are read: that of the prefix, else Options.Zone, else UTC.
func (e *Expr) Zone() *time.Location { return e.zone }

// String returns the expression as it was written.
func (e *Expr) String() string { return e.source }

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
