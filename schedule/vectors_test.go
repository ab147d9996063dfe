package schedule_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

// vector is a row of testdata/cron.tsv: the right fires of a spec after an instant. Until a wall time they are all of
// them; without one they are the first few.
type vector struct {
	id, spec string
	zone     *time.Location
	after    time.Time
	until    time.Time // the zero time where the list is only the first fires
	fires    []time.Time
	never    bool
}

func vectors(t *testing.T) []vector {
	t.Helper()
	data, err := os.ReadFile("testdata/cron.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		columns := strings.Split(line, "\t")
		if len(columns) != 6 {
			t.Fatalf("row %q has %d columns", line, len(columns))
		}
		v := vector{id: columns[0], zone: zone(t, columns[1]), spec: columns[4], never: columns[5] == "never"}
		v.after = instant(t, columns[2])
		if columns[3] != "-" {
			if v.until, err = time.ParseInLocation("2006-01-02T15:04", columns[3], v.zone); err != nil {
				t.Fatal(err)
			}
		}
		if !v.never {
			for fire := range strings.FieldsSeq(columns[5]) {
				v.fires = append(v.fires, instant(t, fire))
			}
		}
		all = append(all, v)
	}
	return all
}

func TestVectors(t *testing.T) {
	all := vectors(t)
	if len(all) < 60 {
		t.Fatalf("%d vectors, want at least 60", len(all))
	}
	for _, v := range all {
		t.Run(v.id, func(t *testing.T) {
			e, err := schedule.Parse(v.spec, schedule.Options{Zone: v.zone})
			if v.never {
				if !errors.Is(err, schedule.ErrNever) {
					t.Fatalf("Parse(%q) = %v, want ErrNever", v.spec, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			at := v.after
			for _, want := range v.fires {
				got := e.Next(at)
				if got.Format(time.RFC3339) != want.Format(time.RFC3339) {
					t.Fatalf("Next(%s) = %s, want %s", at.Format(time.RFC3339), got.Format(time.RFC3339), want.Format(time.RFC3339))
				}
				// The one before is the last as long as the next has not come, and no longer.
				for _, early := range []time.Time{at, want.Add(-time.Nanosecond), at.Add(want.Sub(at) / 2)} {
					if prev := e.Prev(early); prev.After(early) || prev.After(at) && !prev.Equal(at) {
						t.Errorf("Prev(%s) = %s, and nothing fires after %s", early, prev, at)
					}
				}
				for _, late := range []time.Time{want, want.Add(time.Nanosecond), want.Add(time.Second - 1)} {
					if prev := e.Prev(late); !prev.Equal(want) {
						t.Errorf("Prev(%s) = %s, want %s", late, prev, want)
					}
				}
				at = want
			}
			if !v.until.IsZero() {
				if next := e.Next(at); !next.After(v.until) {
					t.Errorf("also fires at %s", next)
				}
			}
		})
	}
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return loc
}

func instant(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
