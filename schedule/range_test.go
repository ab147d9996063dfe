package schedule_test

import (
	"errors"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the test names every zone, whatever the system has

	"github.com/go-singleton/singleton/schedule"
)

// everyZone returns the zones of the IANA database.
func everyZone(t testing.TB) []*time.Location {
	t.Helper()
	names, err := os.ReadFile("testdata/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	var zones []*time.Location
	for name := range strings.FieldsSeq(string(names)) {
		zones = append(zones, zone(t, name))
	}
	if len(zones) < 500 {
		t.Fatalf("%d zones, want all", len(zones))
	}
	return zones
}

// hard has specs that are rare, or whose times lie where clocks change.
var hard = []string{
	"* * * * * *", "0 0 0 * * *", "0 */30 2 * * *", "0 30 2 * * *", "0 0 */2 * * *", "59 59 23 31 12 *",
	"0 0 0 29 2 *", "0 0 0 ? 2 SAT#5", "0 */30 2 ? 2 SAT#5", "0 */60 0 ? 2 6#5", "0 30 2 */28 2 SAT#5",
	"0 0 9 30 12 *", "0 */20 9 30 12 *", "0 0 0 31W * *", "0 0 0 L-30 * *", "0 */59 23 LW 2 *", "*/7 */7 */7 */7 */7 */4",
	"0 */30 2 * 3 SUN", "0 */30 2 * 10 0L", "0 */30 0 ? 4 FRI#4", "0 */60 0 1 1 *", "@every 1s", "@every 97h", "@every 2562047h",
}

func TestB62NextIsLaterThanAskedInEveryZone(t *testing.T) {
	random := rand.New(rand.NewPCG(62, 0))
	span := instant(t, "2200-01-01T00:00:00Z").Unix() - instant(t, "1900-01-01T00:00:00Z").Unix()
	for _, loc := range everyZone(t) {
		for _, spec := range hard {
			e, err := schedule.Parse(spec, schedule.Options{Seconds: true, Zone: loc})
			if err != nil {
				if !errors.Is(err, schedule.ErrNever) {
					t.Fatal(err)
				}
				continue
			}
			for range 4 {
				at := instant(t, "1900-01-01T00:00:00Z").Add(time.Duration(random.Int64N(span)) * time.Second)
				agrees(t, e, at)
			}
		}
	}
}

// agrees checks what Next and Prev promise, around an instant.
func agrees(t *testing.T, e *schedule.Expr, at time.Time) {
	t.Helper()
	next, prev := e.Next(at), e.Prev(at)
	if !next.After(at) {
		t.Fatalf("%q in %s: Next(%s) = %s", e, e.Zone(), at, next)
	}
	if prev.IsZero() || prev.After(at) {
		t.Fatalf("%q in %s: Prev(%s) = %s", e, e.Zone(), at, prev)
	}
	if got := e.Prev(next); !got.Equal(next) {
		t.Fatalf("%q in %s: Next(%s) = %s, and Prev of that is %s", e, e.Zone(), at, next, got)
	}
	if got := e.Prev(next.Add(-1)); !got.Equal(prev) {
		t.Fatalf("%q in %s: nothing fires from %s to %s, but Prev of right before the end is %s", e, e.Zone(), prev, next, got)
	}
	if got := e.Next(prev); !got.Equal(next) {
		t.Fatalf("%q in %s: nothing fires from %s to %s, but Next of the start is %s", e, e.Zone(), prev, next, got)
	}
	if next.Nanosecond() != 0 || prev.Nanosecond() != 0 || next.Location() != e.Zone() || prev.Location() != e.Zone() {
		t.Fatalf("%q in %s: %s and %s are not whole seconds of the zone", e, e.Zone(), prev, next)
	}
}

func TestB62TheDayThatSamoaLeftOut(t *testing.T) {
	apia := zone(t, "Pacific/Apia")
	for _, c := range []struct{ spec, after, want string }{
		{"0 9 30 12 *", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"0 9 30 12 *", "2011-12-31T00:00:00+14:00", "2012-12-30T09:00:00+14:00"},
		{"*/20 9 30 12 *", "2011-12-29T12:00:00-10:00", "2012-12-30T09:00:00+14:00"},
		{"0 0 * * *", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"0 * * * *", "2011-12-29T23:00:00-10:00", "2011-12-31T00:00:00+14:00"},
		{"0 12 * * FRI", "2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00"},
	} {
		e, err := schedule.Parse(c.spec, schedule.Options{Zone: apia})
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Next(instant(t, c.after)).Format(time.RFC3339); got != c.want {
			t.Errorf("%q: Next(%s) = %s, want %s", c.spec, c.after, got, c.want)
		}
		agrees(t, e, instant(t, c.after))
	}
}

func TestWorkingDaysNearestStayInTheMonth(t *testing.T) {
	for _, c := range []struct{ spec, month, want string }{
		{"0 0 1W * *", "2026-08", "2026-08-03"},  // a Saturday
		{"0 0 1W * *", "2026-11", "2026-11-02"},  // a Sunday
		{"0 0 15W * *", "2026-08", "2026-08-14"}, // a Saturday
		{"0 0 15W * *", "2026-11", "2026-11-16"}, // a Sunday
		{"0 0 31W * *", "2026-10", "2026-10-30"}, // a Saturday
		{"0 0 31W * *", "2026-05", "2026-05-29"}, // a Sunday
		{"0 0 31W * *", "2026-04", "2026-05-29"}, // no such day
		{"0 0 30W * *", "2026-04", "2026-04-30"},
		{"0 0 LW * *", "2026-01", "2026-01-30"}, // a Saturday
		{"0 0 LW * *", "2026-05", "2026-05-29"}, // a Sunday
		{"0 0 LW * *", "2026-02", "2026-02-27"},
		{"0 0 1W,3W * *", "2026-08", "2026-08-03"},
	} {
		e := schedule.MustParse(c.spec)
		if got := e.Next(instant(t, c.month+"-01T00:00:00Z").Add(-1)).Format(time.DateOnly); got != c.want {
			t.Errorf("%q fires in %s first on %s, want %s", c.spec, c.month, got, c.want)
		}
	}
}

func TestNothingIsAllocatedAndNothingLosesItsWay(t *testing.T) {
	for _, name := range []string{"UTC", "Europe/Berlin", "Pacific/Apia", "Africa/Casablanca"} {
		for _, spec := range hard {
			e, err := schedule.Parse(spec, schedule.Options{Seconds: true, Zone: zone(t, name)})
			if err != nil {
				t.Fatal(err)
			}
			at := instant(t, "2076-03-01T00:00:00Z")
			if n := testing.AllocsPerRun(2, func() { e.Next(at); e.Prev(at) }); n != 0 {
				t.Errorf("%q in %s: %v allocations", spec, name, n)
			}
		}
	}
}

func TestTheEndsOfTime(t *testing.T) {
	tokyo := zone(t, "Asia/Tokyo")
	zero, last := time.Time{}, instant(t, "9999-12-31T23:59:59Z")
	for _, c := range []struct {
		spec       string
		first, end string // the first fire, and the last
	}{
		{"* * * * * *", "0001-01-01T00:00:01Z", "9999-12-31T23:59:59Z"},
		{"*/30 * * * * *", "0001-01-01T00:00:30Z", "9999-12-31T23:59:30Z"},
		{"0 0 0 1 1 *", "0002-01-01T00:00:00Z", "9999-01-01T00:00:00Z"},
		{"0 0 0 29 2 *", "0004-02-29T00:00:00Z", "9996-02-29T00:00:00Z"},
		{"@every 1h", "0001-01-01T01:00:00Z", "9999-12-31T23:00:00Z"},
	} {
		e, err := schedule.Parse(c.spec, schedule.Options{Seconds: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, early := range []time.Time{zero, zero.AddDate(-5000, 0, 0), time.Unix(-1<<55, 0)} {
			if got := e.Next(early).Format(time.RFC3339); got != c.first {
				t.Errorf("%q: Next(%s) = %s, want %s", c.spec, early, got, c.first)
			}
			if got := e.Prev(early); !got.IsZero() {
				t.Errorf("%q: Prev(%s) = %s", c.spec, early, got)
			}
		}
		for _, late := range []time.Time{last, last.AddDate(5000, 0, 0), time.Unix(1<<55, 0)} {
			if got := e.Prev(late).Format(time.RFC3339); got != c.end {
				t.Errorf("%q: Prev(%s) = %s, want %s", c.spec, late, got, c.end)
			}
			if got := e.Next(late); !got.IsZero() {
				t.Errorf("%q: Next(%s) = %s", c.spec, late, got)
			}
		}
		agrees(t, e, instant(t, c.first))
		agrees(t, e, instant(t, c.end).Add(-1))
	}
	// A zone ahead of UTC is in the year 10000 while this one still lasts, and one behind it in the year 0.
	e, err := schedule.Parse("30 * * * *", schedule.Options{Zone: tokyo})
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Prev(last); got.Unix() != instant(t, "9999-12-31T23:30:00Z").Unix() {
		t.Errorf("Prev(%s) = %s", last, got)
	}
	e, err = schedule.Parse("0 */6 * * *", schedule.Options{Zone: time.FixedZone("behind", -11*3600)})
	if err != nil {
		t.Fatal(err)
	}
	if got := e.Next(zero); got.Unix() != instant(t, "0001-01-01T05:00:00Z").Unix() {
		t.Errorf("Next(%s) = %s", zero, got)
	}
}
