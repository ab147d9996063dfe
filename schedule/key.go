package schedule

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// settle takes over what the fields say, in one form for all spellings that mean the same.
func (e *Expr) settle(read []reading) {
	f := &e.fields
	f.second, f.minute, f.hour, f.month = read[0].values, read[1].values, read[2].values, read[4].values
	e.fixed = !read[1].star && !read[2].star

	days, week := read[3], read[5]
	f.days, f.last, f.nearest = days.values, days.last, days.nearest
	f.weekdays, f.final, f.nth = week.values, week.final&^week.values, week.nth
	for n := range 5 {
		f.nth &^= week.values << (7 * n)
	}
	f.either = !days.star && !week.star
	if f.either && (f.days == allDays || f.weekdays == allWeekdays) {
		f.days, f.weekdays, f.either = allDays, allWeekdays, false
	}
	if f.days == allDays {
		f.last, f.nearest = 0, 0
	}
	if f.weekdays == allWeekdays {
		f.final, f.nth = 0, 0
	}
}

// Key returns the normal form of the expression and its zone. Two expressions with the same key fire at the same
// instants, and differences of spelling make no difference to it: names and numbers, 7 and 0, blanks, the order of a
// list, "@daily" and "0 0 * * *", a zone from the prefix and one from Options. A fixed-time job and one that follows
// the wall clock have different keys, also where their sets of times are equal.
//
// The key is a spec of six fields with its zone, and has itself as its key. Only for a zone that LoadLocation does not
// know, such as that of time.FixedZone, it cannot be parsed; time.Local is "Local", on whatever machine.
func (e *Expr) Key() string {
	if e.zone == nil {
		return ""
	}
	if e.every > 0 {
		return "@every " + (time.Duration(e.every) * time.Second).String()
	}
	f := &e.fields
	minuteStar, hourStar := stars(!e.fixed, minutes.isAll(f.minute) || hours.isAll(f.hour), minutes.begins(f.minute))
	dayStar, weekStar := stars(!f.either, f.days == allDays || f.weekdays == allWeekdays, monthDays.begins(f.days))
	words := []string{
		"CRON_TZ=" + zoneKey(e.zone),
		seconds.format(f.second, mayStar),
		minutes.format(f.minute, minuteStar),
		hours.format(f.hour, hourStar),
		monthDays.format(f.days, dayStar, f.monthDayForms()...),
		months.format(f.month, mayStar),
		weekdays.format(f.weekdays, weekStar, f.weekdayForms()...),
	}
	return strings.Join(words, " ")
}

// star says whether a field may, or must, start with "*".
type star int

const (
	noStar star = iota
	mayStar
	mustStar
)

// stars says it for two fields of which a star in either changes the meaning of both. Where neither names all values,
// one has to carry the star; it must have its first value, as a field that was written with a star always does.
func stars(wanted, oneIsAll, firstCan bool) (first, second star) {
	switch {
	case !wanted:
		return noStar, noStar
	case oneIsAll:
		return mayStar, mayStar
	case firstCan:
		return mustStar, mayStar
	}
	return mayStar, mustStar
}

func (k *kind) isAll(values set) bool  { return values == between(k.lo, k.hi) }
func (k *kind) begins(values set) bool { return values.has(k.lo) }

// format writes the values of a field. A field that may start with a star does if that says all of it; one that must
// starts with the smallest step that says nothing else.
func (k *kind) format(values set, s star, forms ...string) string {
	var list []string
	if s != noStar && k.begins(values) {
		n, steps := k.steps(values)
		if s == mustStar || steps == values && steps.size() > 2 {
			list = append(list, strings.TrimSuffix("*/"+strconv.Itoa(n), "/1"))
			values &^= steps
		}
	}
	for _, r := range values.runs() {
		if r.lo == r.hi {
			list = append(list, strconv.Itoa(r.lo))
		} else {
			list = append(list, fmt.Sprintf("%d-%d", r.lo, r.hi))
		}
	}
	return strings.Join(append(list, forms...), ",")
}

// steps returns the smallest n for which all that "*/n" names are among the values, and what it names.
func (k *kind) steps(values set) (n int, covered set) {
	for n = 1; ; n++ {
		covered = 0
		for v := k.lo; v <= k.hi; v += n {
			covered |= 1 << v
		}
		if covered&^values == 0 {
			return n, covered
		}
	}
}

func (f *fields) monthDayForms() (forms []string) {
	for n := range f.last.all {
		if n == 0 {
			forms = append(forms, "L")
		} else {
			forms = append(forms, fmt.Sprintf("L-%d", n))
		}
	}
	for d := range f.nearest.all {
		if d == 0 {
			forms = append(forms, "LW")
		} else {
			forms = append(forms, fmt.Sprintf("%dW", d))
		}
	}
	return forms
}

func (f *fields) weekdayForms() (forms []string) {
	for n := range f.nth.all {
		forms = append(forms, fmt.Sprintf("%d#%d", n%7, n/7+1))
	}
	for w := range f.final.all {
		forms = append(forms, fmt.Sprintf("%dL", w))
	}
	return forms
}

// zoneKey names a zone. A name says nothing about a zone of constant offset that somebody has made up, so that one is
// named by its offset.
func zoneKey(zone *time.Location) string {
	offset, ok := constant(zone)
	if !ok {
		return zone.String()
	}
	if offset == 0 {
		return "UTC"
	}
	if known, ok := load(zone.String()); ok {
		if same, ok := constant(known); ok && same == offset {
			return zone.String()
		}
	}
	return fmt.Sprintf("%+ds", offset)
}
