package schedule

import "time"

// span is a stretch of time in which a zone has one offset: instants in [start, end), in seconds since the Unix epoch.
type span struct{ start, end, offset int64 }

// forever stands for the open ends of a zone's history; adding offsets to it cannot overflow.
const forever = int64(1) << 60

// slack is more than any two offsets of a zone differ by: an instant 48 hours later never shows an earlier wall time.
const slack = 48 * 3600

// settled is the year 2200, from which on every zone follows rules that repeat with the calendar.
var settled = time.Date(2200, time.January, 1, 0, 0, 0, 0, time.UTC).Unix()

// spanAt returns the span that contains sec. Neighbouring spans may have the same offset, and may overlap.
func spanAt(zone *time.Location, sec int64) span {
	t := time.Unix(sec, 0).In(zone)
	s := span{-forever, forever, offsetAt(t)}
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		s.start = min(start.Unix(), sec)
	}
	if !end.IsZero() {
		s.end = end.Unix()
	}
	if s.end <= sec {
		// Where a zone's rules have no end, ZoneBounds takes every year for one of 365 days, so that the last day of a
		// leap year lies outside its own bounds. Nothing changes in the rest of that day; were it otherwise, the walk
		// would go on by seconds.
		s.end = (floorDiv(sec, day) + 1) * day
		if offsetAt(time.Unix(s.end-1, 0).In(zone)) != s.offset {
			s.end = sec + 1
		}
	}
	return s
}

func offsetAt(t time.Time) int64 {
	_, offset := t.Zone()
	return int64(offset)
}

// reached returns the latest wall time that zone's clock has shown up to and including sec, and the offset at sec.
// Right after the clock was put back that is more than it shows.
func reached(zone *time.Location, sec int64) (wall, offset int64) {
	s := spanAt(zone, sec)
	wall, offset = sec+s.offset, s.offset
	for s.start > sec-slack {
		before := s.start - 1
		s = spanAt(zone, before)
		wall = max(wall, before+s.offset)
	}
	return wall, offset
}

// firstShowing returns the first instant from from on at which zone's clock shows wall, or has jumped past it.
// Nothing before from may show as much.
func firstShowing(zone *time.Location, wall, from int64) int64 {
	for {
		s := spanAt(zone, from)
		if at := max(wall-s.offset, from); at < s.end {
			return at
		}
		from = s.end
	}
}

// load returns the zone of an IANA name. Names that mean different things on different machines ("Local",
// "localtime"), variants that count leap seconds ("right/UTC"), and anything that could leave the zone directory are
// refused before the system is asked.
func load(name string) (*time.Location, bool) {
	if !isZoneName(name) {
		return nil, false
	}
	zone, err := time.LoadLocation(name)
	return zone, err == nil
}

// isZoneName reports whether name has the form of an IANA zone name: parts that start with a capital letter and go on
// with letters, digits, "_", "+" or "-", divided by slashes.
func isZoneName(name string) bool {
	begins := true
	for i := range len(name) {
		c := name[i]
		switch {
		case 'A' <= c && c <= 'Z':
			begins = false
		case begins:
			return false
		case c == '/':
			begins = true
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '_', c == '+', c == '-':
		default:
			return false
		}
	}
	return !begins && name != "Local"
}

// constant returns the offset of a zone that never changes it.
func constant(zone *time.Location) (offset int64, ok bool) {
	s := spanAt(zone, 0)
	return s.offset, s.start == -forever && s.end == forever
}
