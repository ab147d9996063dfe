package cli

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestDurationsForPeople(t *testing.T) {
	for _, c := range []struct {
		d                time.Duration
		humanely, finely string
	}{
		{-time.Second, "0 s", "0 ms"},
		{0, "0 s", "0 ms"},
		{400 * time.Microsecond, "0 s", "<1 ms"},
		{1600 * time.Microsecond, "0 s", "2 ms"},
		{400 * time.Millisecond, "0 s", "0.4 s"},
		{2 * time.Second, "2 s", "2 s"},
		{12_400 * time.Millisecond, "12 s", "12.4 s"},
		{59_960 * time.Millisecond, "1 m", "1 m"},
		{72 * time.Second, "1 m 12 s", "1 m 12 s"},
		{5 * time.Minute, "5 m", "5 m"},
		{43*time.Minute + 20*time.Second, "43 m", "43 m"},
		{59*time.Minute + 40*time.Second, "1 h", "1 h"},
		{3*time.Hour + 12*time.Minute + 50*time.Second, "3 h 13 m", "3 h 13 m"},
		{23*time.Hour + 59*time.Minute + 50*time.Second, "1 d", "1 d"},
		{24 * time.Hour, "1 d", "1 d"},
		{122 * time.Hour, "5 d 2 h", "5 d 2 h"},
	} {
		if got := humane(c.d); got != c.humanely {
			t.Errorf("humane(%v) = %q, want %q", c.d, got, c.humanely)
		}
		if got := fine(c.d); got != c.finely {
			t.Errorf("fine(%v) = %q, want %q", c.d, got, c.finely)
		}
	}
}

// TestSEC9TablesEscapeWhatTheyAreGiven prints cells that would take over a terminal.
func TestSEC9TablesEscapeWhatTheyAreGiven(t *testing.T) {
	var tab table
	tab.add("JOB", "LAST", "STATE")
	tab.add("a\x1b[2J", "größer", "two\nlines\tand a tab")
	tab.add("b", "", "")
	tab.add("c", "\u202ertl", "\x00\x9b\xff")
	var out bytes.Buffer
	if err := tab.print(&out); err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		`JOB       LAST       STATE`,
		`a\x1b[2J  größer     two; lines and a tab`,
		`b`,
		`c         \u202ertl  \x00\x9b\xff`,
		``,
	}, "\n")
	if got := out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestShorten(t *testing.T) {
	for _, c := range [][2]string{{"short", "short"}, {"exactly it", "exactly it"}, {"a bit longer", "a bit lon…"}, {"one\ntwo", "one"}, {"ääääääääääää", "äääääääää…"}} {
		if got := shorten(c[0], 10); got != c[1] {
			t.Errorf("shorten(%q) = %q, want %q", c[0], got, c[1])
		}
	}
}

func TestDaysForPeople(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, time.November, 29, 23, 30, 0, 0, time.UTC) // the 30th in Berlin
	for _, c := range []struct {
		t    time.Time
		want string
	}{
		{now, "today"},
		{now.Add(-time.Hour), "yesterday"},
		{now.Add(time.Hour), "today"},
		{now.Add(-48 * time.Hour), "Sat 28 Nov"},
		{now.AddDate(-1, 0, 0), "30 Nov 2025"},
	} {
		if got := day(c.t.In(berlin), now); got != c.want {
			t.Errorf("day(%v) = %q, want %q", c.t, got, c.want)
		}
	}
}

func TestLocalZoneHasItsName(t *testing.T) {
	for value, want := range map[string]string{"Europe/Berlin": "Europe/Berlin", ":Asia/Tokyo": "Asia/Tokyo", "": "UTC", "EST5EDT,M3": "Local"} {
		if got := localZone(func(string) (string, bool) { return value, true }).String(); got != want {
			t.Errorf("TZ=%q: %s, want %s", value, got, want)
		}
	}
}
