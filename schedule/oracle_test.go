package schedule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

// This file has a second, slow implementation that shares nothing with the first: a writer that makes up a spec together
// with the plain sets of what it means, and an oracle that walks the seconds around a change of the clocks and asks
// time.Time what the clock shows.

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

// window is the seconds around a change of a zone's clocks, with what the clock shows at each.
type window struct {
	zone  *time.Location
	from  time.Time
	walls []int64 // in seconds as of UTC
}

const windowDays = 3 // the change is in the middle; the first day and a half tell what the clock had shown before

func newWindow(loc *time.Location, change time.Time) window {
	w := window{zone: loc, from: change.Add(-windowDays * 12 * time.Hour)}
	for sec := range windowDays * 86400 {
		at := w.from.Add(time.Duration(sec) * time.Second).In(loc)
		wall := time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
		w.walls = append(w.walls, wall.Unix())
	}
	return w
}

// fires returns the seconds of the window at which a spec fires, by the rules as they are written.
func (w window) fires(m *meaning) []int {
	var fires []int
	follows := m.minuteStar || m.hourStar
	shown := w.walls[0]
	for sec, wall := range w.walls {
		if follows && m.names(wall) {
			fires = append(fires, sec)
		}
		for due := false; shown < wall; { // every wall time beyond the latest shown has its turn now, once for all
			shown++
			if !follows && !due && m.names(shown) {
				due = true
				fires = append(fires, sec)
			}
		}
	}
	return fires
}

// changes returns the instants at which a zone's offset changes in the years given.
func changes(loc *time.Location, from, to int) []time.Time {
	var all []time.Time
	at := time.Date(from, time.January, 1, 0, 0, 0, 0, time.UTC)
	_, offset := at.In(loc).Zone()
	for at.Year() < to {
		at = at.Add(6 * time.Hour)
		if _, now := at.In(loc).Zone(); now != offset {
			lo, hi := at.Add(-6*time.Hour).Unix(), at.Unix()
			for hi-lo > 1 {
				mid := (lo + hi) / 2
				if _, o := time.Unix(mid, 0).In(loc).Zone(); o == offset {
					lo = mid
				} else {
					hi = mid
				}
			}
			all = append(all, time.Unix(hi, 0))
			offset = now
		}
	}
	return all
}

func TestAgainstOracle(t *testing.T) {
	w := writer{rand.New(rand.NewPCG(20261129, 1))}
	compared := 0
	for _, place := range []struct {
		zone     string
		from, to int
	}{
		{"America/New_York", 1883, 1884}, // an odd offset of local mean time
		{"America/New_York", 2026, 2027},
		{"Europe/Berlin", 1945, 1946}, // two hours of summer time
		{"Europe/Berlin", 2026, 2027},
		{"Europe/London", 2026, 2027},
		{"Europe/Dublin", 1916, 1917}, // changes by 34 minutes 39 seconds
		{"Europe/Amsterdam", 1937, 1938},
		{"Australia/Lord_Howe", 2026, 2027},
		{"Pacific/Apia", 2011, 2012},      // 30 December was left out
		{"Pacific/Kwajalein", 1993, 1994}, // and here 21 August
		{"Asia/Manila", 1844, 1845},
		{"America/Juneau", 1867, 1868}, // a day that came twice
		{"America/Sao_Paulo", 2018, 2019},
		{"America/Santiago", 2026, 2027},
		{"America/Asuncion", 2012, 2013},
		{"Africa/Cairo", 2026, 2027},
		{"Africa/Casablanca", 2026, 2027},
		{"Asia/Gaza", 2030, 2031},
		{"Asia/Tehran", 2020, 2021},
		{"Asia/Kathmandu", 1986, 1987},
		{"Asia/Pyongyang", 2018, 2019},
		{"America/Caracas", 2007, 2008},
		{"Antarctica/Troll", 2026, 2027},
		{"Antarctica/Casey", 2020, 2021},
		{"America/Scoresbysund", 2024, 2025},
		{"Europe/Lisbon", 1947, 1948}, // double summer time, changes a week apart
		{"Africa/Monrovia", 1972, 1973},
		{"UTC", 2026, 2027},
	} {
		loc := zone(t, place.zone)
		all := changes(loc, place.from, place.to)
		if len(all) == 0 {
			all = []time.Time{time.Date(place.from, time.March, 1, 0, 0, 0, 0, time.UTC)}
		}
		for _, change := range all[:min(2, len(all))] {
			win := newWindow(loc, change)
			for range 40 {
				m := w.spec(change.In(loc).Hour(), change.In(loc))
				e, err := schedule.Parse(m.spec, schedule.Options{Seconds: true, Zone: loc})
				if err != nil {
					continue // it never fires
				}
				compare(t, win, e, &m)
				compared++
			}
		}
	}
	if compared < 1500 {
		t.Errorf("only %d specs compared", compared)
	}
}

// compare checks Next, Prev and Count in the later half of a window against the oracle.
func compare(t *testing.T, win window, e *schedule.Expr, m *meaning) {
	t.Helper()
	const half = windowDays * 86400 / 2
	at := func(sec int) time.Time { return win.from.Add(time.Duration(sec) * time.Second) }
	all := win.fires(m)
	first, _ := slices.BinarySearch(all, half-14*3600)
	fires := all[first:]
	begin, end := half-14*3600-1, len(win.walls)-1
	if n := e.Count(at(begin), at(end)); n != len(fires) {
		t.Fatalf("%s %q: Count(%s, %s) = %d, want %d", win.zone, m.spec, at(begin), at(end), n, len(fires))
	}
	if len(fires) > 400 { // keep those nearest the change
		mid, _ := slices.BinarySearch(fires, half)
		lo := max(0, mid-200)
		fires = fires[lo:min(len(fires), lo+400)]
		if lo > 0 {
			begin = fires[0] - 1
		}
		end = fires[len(fires)-1]
	}
	last := begin
	check := func(what string, asked int, got time.Time, want int) {
		t.Helper()
		if !got.Equal(at(want)) {
			t.Fatalf("%s %q: %s(%s) = %s, want %s", win.zone, m.spec, what, at(asked).In(win.zone), got, at(want).In(win.zone))
		}
	}
	for _, want := range fires {
		for _, asked := range []int{last, (last + want) / 2, want - 1} {
			check("Next", asked, e.Next(at(asked).Add(time.Second-1)), want)
			if last > begin {
				check("Prev", asked, e.Prev(at(asked).Add(time.Second-1)), last)
			}
		}
		last = want
	}
	if last > begin {
		check("Prev", end, e.Prev(at(end)), last)
	}
	if got := e.Next(at(last)); !got.After(at(end)) {
		t.Fatalf("%s %q: Next(%s) = %s, want later than %s", win.zone, m.spec, at(last).In(win.zone), got, at(end))
	}
}
