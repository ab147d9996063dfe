package schedule

import (
	"slices"
	"strconv"
	"strings"
)

// kind is one of the six kinds of field.
type kind struct {
	name   string
	lo, hi int      // the cycle of its values
	top    int      // the largest value that may be written
	names  []string // of the values, from lo on
}

var (
	seconds   = kind{name: "second", lo: 0, hi: 59, top: 59}
	minutes   = kind{name: "minute", lo: 0, hi: 59, top: 59}
	hours     = kind{name: "hour", lo: 0, hi: 23, top: 23}
	monthDays = kind{name: "day of month", lo: 1, hi: 31, top: 31}
	months    = kind{name: "month", lo: 1, hi: 12, top: 12, names: []string{
		"JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC",
	}}
	weekdays = kind{name: "day of week", lo: 0, hi: 6, top: 7, names: []string{
		"SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT",
	}}
)

// reading is what a field says. The sets beside the plain values are those of fields.
type reading struct {
	values                    set
	star                      bool // it starts with "*", or is "?"
	last, nearest, nth, final set
}

// parse reads a field: entries divided by commas.
func (k *kind) parse(p part) (r reading, bad *SyntaxError) {
	if p.text == "?" && (k == &monthDays || k == &weekdays) {
		return reading{values: between(k.lo, k.hi), star: true}, nil
	}
	r.star = p.text[0] == '*'
	for rest := p; ; {
		entry, more := rest, false
		if i := strings.IndexByte(rest.text, ','); i >= 0 {
			entry, rest, more = rest.to(i), rest.from(i+1), true
		}
		if entry.text == "" { // point to the comma after it, or at the end to the one before
			at := min(entry.at, p.at+len(p.text)-1)
			return r, part{",", at}.wrong(k.name, "an entry of the list is empty")
		}
		if bad := k.parseEntry(entry, &r); bad != nil {
			return r, bad
		}
		if !more {
			return r, nil
		}
	}
}

// parseEntry reads an entry of a list: "*", a value or a range, each with or without a step, or one of the forms that
// only the day fields have.
func (k *kind) parseEntry(p part, r *reading) *SyntaxError {
	if strings.Contains(p.text, "?") {
		return p.wrong(k.name, `"?" is for a day field, and stands alone in it`)
	}
	if k == &monthDays {
		if done, bad := k.parseMonthDay(p, r); done || bad != nil {
			return bad
		}
	}
	if k == &weekdays {
		if done, bad := k.parseWeekday(p, r); done || bad != nil {
			return bad
		}
	}
	body, step, hasStep := p.cut("/")
	by := 1
	if hasStep {
		switch n, ok := number(step.text); {
		case step.text == "":
			return part{"/", step.at - 1}.wrong(k.name, `a step is missing after "/"`)
		case !ok:
			return step.wrong(k.name, "the step %q is not a number", step.text)
		case n == 0:
			return step.wrong(k.name, `the step "0" is less than 1`)
		default:
			by = n
		}
	}
	lo, hi, bad := k.bounds(body, hasStep)
	if bad != nil {
		return bad
	}
	cycle := k.hi - k.lo + 1
	for v := lo; v <= hi; v += by {
		r.values |= 1 << (k.lo + (v-k.lo)%cycle)
	}
	return nil
}

// bounds returns the first and the last value of an entry without its step; of one that goes round, the last lies
// beyond the cycle.
func (k *kind) bounds(p part, hasStep bool) (lo, hi int, bad *SyntaxError) {
	if p.text == "*" {
		return k.lo, k.hi, nil
	}
	first, last, isRange := p.cut("-")
	switch {
	case p.text == "":
		return 0, 0, p.wrong(k.name, `a value is missing before "/"`)
	case isRange && first.text == "":
		return 0, 0, p.to(1).wrong(k.name, `a value is missing before "-"`)
	case isRange && last.text == "":
		return 0, 0, part{"-", last.at - 1}.wrong(k.name, `a value is missing after "-"`)
	}
	if lo, bad = k.value(first); bad != nil {
		return 0, 0, bad
	}
	hi = lo
	if isRange {
		if hi, bad = k.value(last); bad != nil {
			return 0, 0, bad
		}
	}
	if lo > k.hi { // Sunday as 7
		lo -= k.top
		if hi > k.hi {
			hi -= k.top
		}
	}
	switch {
	case !isRange && hasStep:
		hi = k.hi
	case hi < lo:
		hi += k.hi - k.lo + 1
	}
	return lo, hi, nil
}

// parseMonthDay reads L, L-3, LW and 15W.
func (k *kind) parseMonthDay(p part, r *reading) (done bool, bad *SyntaxError) {
	text := strings.ToUpper(p.text)
	switch {
	case text == "L":
		r.last |= 1
	case text == "LW":
		r.nearest |= 1
	case strings.HasPrefix(text, "L-"):
		back := p.from(len("L-"))
		n, ok := number(back.text)
		if !ok || n < 1 || n > 30 {
			return false, p.wrong(k.name, "%q is not L-1 to L-30, days before the last of the month", p.text)
		}
		r.last |= 1 << n
	case strings.HasPrefix(text, "L"):
		return false, p.wrong(k.name, "%q is none of L, LW and L-3", p.text)
	case strings.HasSuffix(text, "W"):
		d, bad := k.value(p.to(len(p.text) - 1))
		if bad != nil {
			return false, bad
		}
		r.nearest |= 1 << d
	default:
		return false, nil
	}
	return true, nil
}

// parseWeekday reads MON#2 and 5L.
func (k *kind) parseWeekday(p part, r *reading) (done bool, bad *SyntaxError) {
	if name, nth, ok := p.cut("#"); ok {
		w, bad := k.value(name)
		if bad != nil {
			return false, bad
		}
		n, ok := number(nth.text)
		if !ok || n < 1 || n > 5 {
			return false, p.wrong(k.name, "%q is not the 1st to 5th of a weekday, such as MON#2", p.text)
		}
		r.nth |= 1 << (7*(n-1) + w%7)
		return true, nil
	}
	switch body := p.to(len(p.text) - 1); {
	case !strings.HasSuffix(strings.ToUpper(p.text), "L"):
		return false, nil
	case body.text == "":
		return false, p.wrong(k.name, "%q needs a weekday before it, such as 5L", p.text)
	default:
		w, bad := k.value(body)
		if bad != nil {
			return false, bad
		}
		r.final |= 1 << (w % 7)
		return true, nil
	}
}

// value reads a number or a name.
func (k *kind) value(p part) (int, *SyntaxError) {
	if i := slices.Index(k.names, strings.ToUpper(p.text)); i >= 0 {
		return k.lo + i, nil
	}
	n, ok := number(p.text)
	switch {
	case ok && n >= k.lo && n <= k.top:
		return n, nil
	case ok:
		return 0, p.wrong(k.name, "%q is out of range %d-%d", p.text, k.lo, k.top)
	case strings.Contains(p.text, "*"):
		return 0, p.wrong(k.name, `in %q, "*" does not stand alone`, p.text)
	case k.names != nil:
		return 0, p.wrong(k.name, "%q is neither a number nor a name such as %s", p.text, k.names[1])
	}
	return 0, p.wrong(k.name, "%q is not a number", p.text)
}

// number reads digits; what is too large for any field stays so.
func number(text string) (int, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil || n > 1<<20 {
		return 1 << 20, true
	}
	return n, true
}

// cut returns the pieces before and after the first sep.
func (p part) cut(sep string) (before, after part, found bool) {
	i := strings.Index(p.text, sep)
	if i < 0 {
		return p, part{"", p.at + len(p.text)}, false
	}
	return p.to(i), p.from(i + len(sep)), true
}
