package schedule_test

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

// This file has a second, slow implementation that shares nothing with the first: an oracle that walks the time around
// changes of the clocks, asks time.Time what the clock shows, and compares that with what a made-up spec means.

// window is a stretch of time in steps, with what a zone's clock shows at each.
type window struct {
	zone  *time.Location
	from  time.Time
	step  int64   // seconds
	walls []int64 // in seconds as of UTC
}

func newWindow(loc *time.Location, from time.Time, length, step time.Duration) window {
	w := window{zone: loc, from: from, step: int64(step / time.Second)}
	for n := range int(length / step) {
		at := w.at(n)
		year, month, day := at.Date()
		hour, minute, second := at.Clock()
		w.walls = append(w.walls, time.Date(year, month, day, hour, minute, second, 0, time.UTC).Unix())
	}
	return w
}

// at returns the instant of a step.
func (w window) at(n int) time.Time { return time.Unix(w.from.Unix()+int64(n)*w.step, 0).In(w.zone) }

// index returns the first step that is not before an instant.
func (w window) index(at time.Time) int {
	return int((at.Unix() - w.from.Unix() + w.step - 1) / w.step)
}

// fires returns the steps at which a spec fires, by the rules as they are written.
func (w window) fires(m *meaning) []int {
	var fires []int
	follows := m.minuteStar || m.hourStar
	shown := w.walls[0]
	for n, wall := range w.walls {
		if follows && m.names(wall) {
			fires = append(fires, n)
		}
		for due := false; shown < wall; { // every wall time beyond the latest shown has its turn now, once for all
			shown += w.step
			if !follows && !due && m.names(shown) {
				due = true
				fires = append(fires, n)
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
			win := newWindow(loc, change.Add(-36*time.Hour), 72*time.Hour, time.Second)
			for range 20 {
				m := w.spec(change.In(loc).Hour(), change.In(loc))
				e, err := schedule.Parse(m.spec, schedule.Options{Seconds: true, Zone: loc})
				if err != nil {
					continue // it never fires
				}
				compare(t, win, e, &m, change.Add(-14*time.Hour), change)
				compared++
			}
		}
	}
	if compared < 750 {
		t.Errorf("only %d specs compared", compared)
	}
}

// restless makes up a zone whose clocks are changed every few hours, by whole minutes.
func restless(t *testing.T, random *rand.Rand, from time.Time) *time.Location {
	t.Helper()
	const changes = 20
	var times, kinds, offsets []byte
	at := from.Unix()
	for n := range changes {
		at += 60 * (10 + random.Int64N(40*60))
		times = binary.BigEndian.AppendUint32(times, uint32(at))
		kinds = append(kinds, byte(n))
		offsets = binary.BigEndian.AppendUint32(offsets, uint32(60*(random.IntN(28*60)-14*60)))
		offsets = append(offsets, 0, 0)
	}
	data := append([]byte("TZif"), make([]byte, 16)...) // the first version of the format
	for _, count := range []uint32{0, 0, 0, changes, changes, 4} {
		data = binary.BigEndian.AppendUint32(data, count)
	}
	data = slices.Concat(data, times, kinds, offsets, []byte("-00\x00"))
	loc, err := time.LoadLocationFromTZData("restless", data)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func TestRestlessClocksAgainstOracle(t *testing.T) {
	w := writer{rand.New(rand.NewPCG(20261129, 3))}
	compared := 0
	for range 100 {
		begin := time.Date(2026, time.Month(1+w.IntN(12)), 1+w.IntN(28), 0, 0, 0, 0, time.UTC)
		loc := restless(t, w.Rand, begin)
		win := newWindow(loc, begin, 20*24*time.Hour, time.Minute)
		for n := range 20 {
			near := begin.Add(time.Duration(5+n/2) * 24 * time.Hour)
			m := w.spec(near.In(loc).Hour(), near.In(loc))
			clear(m.second)
			m.second[0] = true
			_, m.spec, _ = strings.Cut(m.spec, " ")
			e, err := schedule.Parse(m.spec, schedule.Options{Zone: loc})
			if err != nil {
				continue
			}
			compare(t, win, e, &m, begin.Add(48*time.Hour), near)
			compared++
		}
	}
	if compared < 1000 {
		t.Errorf("only %d specs compared", compared)
	}
}

// Over years a search may leap, which over days it never does.
func TestYearsAgainstOracle(t *testing.T) {
	w := writer{rand.New(rand.NewPCG(20261129, 2))}
	compared := 0
	for _, name := range []string{
		"America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Pacific/Apia", "Antarctica/Troll",
	} {
		loc := zone(t, name)
		begin := time.Date(2010, time.December, 1, 0, 0, 0, 0, loc)
		win := newWindow(loc, begin, 2*366*24*time.Hour, time.Minute)
		all := changes(loc, 2011, 2012)
		for range 25 {
			change := all[w.IntN(len(all))].In(loc)
			m := w.spec(change.Hour(), change)
			clear(m.second)
			m.second[0] = true
			_, m.spec, _ = strings.Cut(m.spec, " ")
			e, err := schedule.Parse(m.spec, schedule.Options{Zone: loc})
			if err != nil {
				continue
			}
			compare(t, win, e, &m, begin.AddDate(0, 1, 0), change)
			compared++
		}
	}
	if compared < 100 {
		t.Errorf("only %d specs compared", compared)
	}
}

// compare checks Next, Prev and Count of a spec against the oracle, in a window from an instant on. Of many fires it
// takes those nearest another.
func compare(t *testing.T, win window, e *schedule.Expr, m *meaning, from, near time.Time) {
	t.Helper()
	begin, end := win.index(from)-1, len(win.walls)-1
	fires := win.fires(m)
	first, _ := slices.BinarySearch(fires, begin+1)
	fires = fires[first:]
	if n := e.Count(win.at(begin), win.at(end)); n != len(fires) {
		t.Fatalf("%s %q: Count(%s, %s) = %d, want %d", win.zone, m.spec, win.at(begin), win.at(end), n, len(fires))
	}
	if len(fires) > 400 {
		mid, _ := slices.BinarySearch(fires, win.index(near))
		if lo := max(0, mid-200); lo > 0 {
			fires = fires[lo:]
			begin = fires[0] - 1
		}
		fires = fires[:min(len(fires), 400)]
		end = fires[len(fires)-1]
	}
	check := func(what string, asked int, got time.Time, want int) {
		t.Helper()
		if !got.Equal(win.at(want)) {
			t.Fatalf("%s %q: %s(%s) = %s, want %s", win.zone, m.spec, what, win.at(asked), got, win.at(want))
		}
	}
	last := begin
	for _, want := range fires {
		for _, asked := range []int{last, (last + want) / 2, want - 1} {
			check("Next", asked, e.Next(win.at(asked).Add(time.Second-1)), want)
			if last > begin {
				check("Prev", asked, e.Prev(win.at(asked).Add(time.Second-1)), last)
			}
		}
		last = want
	}
	if last > begin {
		check("Prev", end, e.Prev(win.at(end)), last)
	}
	if got := e.Next(win.at(last)); !got.After(win.at(end)) {
		t.Fatalf("%s %q: Next(%s) = %s, want later than %s", win.zone, m.spec, win.at(last), got, win.at(end))
	}
}
