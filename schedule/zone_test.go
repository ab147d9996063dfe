package schedule

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

// Searches go from span to span, so their speed hangs on spans being long and their truth on spans being right.
func TestB62SpansAreLongAndRight(t *testing.T) {
	names, err := os.ReadFile("testdata/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 62))
	from, to := time.Date(1840, 1, 1, 0, 0, 0, 0, time.UTC).Unix(), time.Date(2240, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	for name := range strings.FieldsSeq(string(names)) {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		offset := func(sec int64) int64 { return offsetAt(time.Unix(sec, 0).In(zone)) }
		spans := 0
		for sec := from; sec < to; spans++ {
			s := spanAt(zone, sec)
			if s.start > sec || s.end <= sec {
				t.Fatalf("%s: %d is not in its span %v", name, sec, s)
			}
			lo, hi := max(s.start, from), min(s.end, to)
			for _, at := range []int64{lo, hi - 1, lo + random.Int64N(hi-lo), lo + random.Int64N(hi-lo)} {
				if offset(at) != s.offset {
					t.Fatalf("%s: the offset at %d is %d, and that of its span %v is another", name, at, offset(at), s)
				}
			}
			if s.end < to && spanAt(zone, s.end-1).end != s.end {
				t.Fatalf("%s: the span %v ends elsewhere when asked at its end", name, s)
			}
			if s.end < to && spanAt(zone, s.end).start > s.end {
				t.Fatalf("%s: between %d and the span after it lies another", name, s.end)
			}
			sec = s.end
		}
		if spans > 4*400 {
			t.Errorf("%s: %d spans in 400 years", name, spans)
		}
	}
}

// The last day of a leap year lies outside its own bounds, in zones whose rules have no end.
func TestTheLastDayOfALeapYear(t *testing.T) {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2096, time.December, 31, 12, 0, 0, 0, time.UTC).Unix()
	if s := spanAt(zone, at); s.offset != 3600 || s.start > at || s.end < at+12*3600 {
		t.Errorf("the span is %v around %d", s, at)
	}
}

func TestZoneNames(t *testing.T) {
	for name, want := range map[string]bool{
		"UTC": true, "Europe/Berlin": true, "America/Port-au-Prince": true, "Etc/GMT+12": true, "America/Port_of_Spain": true,
		"America/North_Dakota/New_Salem": true, "EST5EDT": true, "W-SU": true, "": false, "Local": false, "localtime": false,
		"right/UTC": false, "Europe/": false, "/Europe": false, "Europe//Berlin": false, "..": false, "Europe/../UTC": false,
		"Europe/.": false, "Europe/berlin": false, "zone.tab": false, "+VERSION": false, "Europe\\Berlin": false,
		"Europe/Zürich": false, "A\x00": false, "posixrules": false,
	} {
		if isZoneName(name) != want {
			t.Errorf("%q is a zone name: %v, want %v", name, !want, want)
		}
	}
	names, err := os.ReadFile("testdata/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	for name := range strings.FieldsSeq(string(names)) {
		if _, ok := load(name); !ok {
			t.Errorf("%s is refused", name)
		}
	}
}
