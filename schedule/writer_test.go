package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// meaning is what a made-up spec names.
type meaning struct {
	spec                         string
	second, minute, hour, month  []bool
	day                          func(date time.Time) bool
	weekday                      func(date time.Time) bool
	minuteStar, hourStar, either bool
	dates                        map[int64]bool // that have been worked out
}

// names reports whether the spec names a wall time, given in seconds as of UTC.
func (m *meaning) names(wall int64) bool {
	clock := (wall%86400 + 86400) % 86400
	if !m.second[clock%60] || !m.minute[clock/60%60] || !m.hour[clock/3600] {
		return false
	}
	midnight := wall - clock
	fits, known := m.dates[midnight]
	if !known {
		date := time.Unix(midnight, 0).UTC()
		fits = m.day(date) && m.weekday(date)
		if m.either {
			fits = m.day(date) || m.weekday(date)
		}
		fits = fits && m.month[date.Month()]
		m.dates[midnight] = fits
	}
	return fits
}

// writer makes up specs.
type writer struct{ *rand.Rand }

// values writes a field of plain values and returns what it names.
func (w writer) values(lo, hi int) (text string, named []bool) {
	named = make([]bool, hi+1)
	mark := func(from, to, step int) {
		for n, size := from, hi-lo+1; ; n += step {
			if from <= to && n > to || from > to && n > to+size {
				return
			}
			named[lo+(n-lo)%size] = true
		}
	}
	var entries []string
	for range 1 + w.IntN(3)/2*w.IntN(3) {
		a, b, step := lo+w.IntN(hi-lo+1), lo+w.IntN(hi-lo+1), 1+w.IntN(hi)
		switch w.IntN(7) {
		case 0, 1:
			entries = append(entries, fmt.Sprint(a))
			mark(a, a, 1)
		case 2:
			entries = append(entries, fmt.Sprintf("%d-%d", a, b))
			mark(a, b, 1)
		case 3:
			entries = append(entries, fmt.Sprintf("%d-%d/%d", a, b, step))
			mark(a, b, step)
		case 4:
			entries = append(entries, fmt.Sprintf("%d/%d", a, step))
			mark(a, hi, step)
		case 5:
			entries = append(entries, fmt.Sprintf("*/%d", step))
			mark(lo, hi, step)
		case 6:
			entries = append(entries, "*")
			mark(lo, hi, 1)
		}
	}
	return strings.Join(entries, ","), named
}

// spec writes a spec, most of them for times near the hours in which clocks change.
func (w writer) spec(hour int, date time.Time) meaning {
	m := meaning{dates: make(map[int64]bool)}
	var second, minute, hours, day, month, week string
	second, m.second = w.values(0, 59)
	minute, m.minute = w.values(0, 59)
	hours, m.hour = w.values(0, 23)
	if w.IntN(2) == 0 {
		h := (hour + w.IntN(4) - 2 + 24) % 24
		hours, m.hour = fmt.Sprint(h), make([]bool, 24)
		m.hour[h] = true
	}
	month, m.month = "*", slices.Repeat([]bool{true}, 13)
	if w.IntN(8) == 0 {
		month, m.month = w.values(1, 12)
	}
	day, m.day = w.day(date)
	week, m.weekday = w.week()
	m.minuteStar, m.hourStar = minute[0] == '*', hours[0] == '*'
	m.either = !strings.ContainsAny(day[:1]+week[:1], "*?")
	m.spec = strings.Join([]string{second, minute, hours, day, month, week}, " ")
	return m
}

func (w writer) day(date time.Time) (string, func(time.Time) bool) {
	lastOf := func(t time.Time) int { return time.Date(t.Year(), t.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day() }
	switch w.IntN(8) {
	case 0:
		text, named := w.values(1, 31)
		return text, func(t time.Time) bool { return named[t.Day()] }
	case 1:
		n := 1 + w.IntN(30)
		return fmt.Sprintf("L-%d", n), func(t time.Time) bool { return t.Day() == lastOf(t)-n }
	case 2:
		return "L", func(t time.Time) bool { return t.Day() == lastOf(t) }
	case 3: // of the days of the month from Monday to Friday, the one with the smallest distance
		n := 1 + (date.Day()+w.IntN(5)+26)%31
		last := w.IntN(4) == 0
		text := fmt.Sprintf("%dW", n)
		if last {
			text = "LW"
		}
		return text, func(t time.Time) bool {
			n, best := n, 0
			if last {
				n = lastOf(t)
			}
			if n > lastOf(t) {
				return false
			}
			for d := 1; d <= lastOf(t); d++ {
				switch time.Date(t.Year(), t.Month(), d, 0, 0, 0, 0, time.UTC).Weekday() {
				case time.Saturday, time.Sunday:
				default:
					if best == 0 || max(d-n, n-d) < max(best-n, n-best) {
						best = d
					}
				}
			}
			return t.Day() == best
		}
	case 4:
		return "?", func(time.Time) bool { return true }
	default:
		return "*", func(time.Time) bool { return true }
	}
}

func (w writer) week() (string, func(time.Time) bool) {
	d := w.IntN(7)
	switch w.IntN(8) {
	case 0:
		text, named := w.values(0, 6)
		return text, func(t time.Time) bool { return named[t.Weekday()] }
	case 1:
		n := 1 + w.IntN(5)
		return fmt.Sprintf("%d#%d", d, n), func(t time.Time) bool { return int(t.Weekday()) == d && (t.Day()+6)/7 == n }
	case 2:
		return fmt.Sprintf("%dL", d), func(t time.Time) bool {
			return int(t.Weekday()) == d && t.AddDate(0, 0, 7).Month() != t.Month()
		}
	default:
		return "*", func(time.Time) bool { return true }
	}
}
