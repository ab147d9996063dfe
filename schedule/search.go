package schedule

// horizon is how far the search goes: 400 years, after which the calendar, and a zone's rules with it, repeat.
const horizon = 146097 * day

// A fixed-time job runs once for each wall time that its fields name: when the zone's clock first shows that time or,
// where the clock skips it, has just jumped past it. So the search is one over wall times, from the latest that the
// clock has reached.

func (e *Expr) nextFixed(sec int64) (int64, bool) {
	shown, offset := reached(e.zone, sec)
	wall, ok := e.fields.after(shown)
	if !ok {
		return 0, false
	}
	return firstShowing(e.zone, wall, max(sec+1, wall-offset-slack)), true
}

func (e *Expr) prevFixed(sec int64) (int64, bool) {
	shown, offset := reached(e.zone, sec)
	wall, ok := e.fields.upTo(shown)
	if !ok {
		return 0, false
	}
	return firstShowing(e.zone, wall, wall-offset-slack), true
}

// Other jobs run whenever the clock shows a time that their fields name: never for a time that is skipped, twice for
// one that comes twice. The search goes from span to span, and asks the calendar again only where the clock jumped
// over the time it has found, or was put back. Between the wall time where it asked and the one it found there is none:
// once no clock can show an earlier one again, the spans up to shortly before it need not be looked at.

func (e *Expr) nextWall(sec int64) (int64, bool) {
	asked := sec + 1
	s := spanAt(e.zone, asked)
	wall, ok := e.fields.after(sec + s.offset)
	for ok {
		if at := wall - s.offset; at < s.end {
			return at, true
		}
		from := s.end
		if from > sec+horizon {
			break
		}
		if far := wall - s.offset - slack; from > asked+slack && from < far {
			s = spanAt(e.zone, far)
			continue
		}
		due := from + s.offset // what the clock would show, had it not been changed
		s = spanAt(e.zone, from)
		if shows := from + s.offset; shows < due || shows > wall {
			wall, ok = e.fields.after(shows - 1)
			asked = from
		}
	}
	return 0, false
}

func (e *Expr) prevWall(sec int64) (int64, bool) {
	asked := sec
	s := spanAt(e.zone, asked)
	wall, ok := e.fields.upTo(sec + s.offset)
	for ok {
		if at := wall - s.offset; at >= s.start {
			return at, true
		}
		to := s.start - 1
		if to < sec-horizon {
			break
		}
		if far := wall - s.offset + slack; to < asked-slack && to > far {
			s = spanAt(e.zone, far)
			continue
		}
		due := to + s.offset
		s = spanAt(e.zone, to)
		if shows := to + s.offset; shows > due || shows < wall {
			wall, ok = e.fields.upTo(shows)
			asked = to
		}
	}
	return 0, false
}
