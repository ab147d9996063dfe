package schedule

import (
	"math/rand/v2"
	"testing"
	"time"
)

func TestCountAgreesWithWalking(t *testing.T) {
	specs := []string{
		"* * * * *", "0 3 * * *", "30 2 * * *", "*/7 1-5 * * *", "0 0 1 * *", "15 12 * * MON", "0 0 L * *", "0 */5 29 2 *",
		"@every 7m", "@hourly", "0 9 13 * FRI",
	}
	zones := []string{"UTC", "America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Antarctica/Troll"}
	random := rand.New(rand.NewPCG(1, 2))
	for _, name := range zones {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, spec := range specs {
			e, err := Parse(spec, Options{Zone: zone})
			if err != nil {
				t.Fatal(err)
			}
			for range 6 {
				from := time.Date(2008+random.IntN(20), time.January, 1, 0, 0, random.IntN(366*86400), 0, time.UTC)
				to := from.Add(time.Duration(random.IntN(200*86400)) * time.Second)
				want := 0
				for at := e.Next(from); !at.After(to); at = e.Next(at) {
					want++
				}
				if got := e.Count(from, to); got != want {
					t.Errorf("%s %q: Count(%v, %v) is %d; walking gives %d", name, spec, from, to, got, want)
				}
			}
		}
	}
}

func TestCountOfNothing(t *testing.T) {
	e := MustParse("* * * * *")
	at := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	for _, until := range []time.Time{at, at.Add(-time.Hour), at.Add(59 * time.Second)} {
		if n := e.Count(at, until); n != 0 {
			t.Errorf("Count(%v, %v) is %d", at, until, n)
		}
	}
	if n := e.Count(at.Add(-time.Second), at); n != 1 {
		t.Errorf("the last instant does not count: %d", n)
	}
}

func BenchmarkCountTwoWeeksOfSeconds(b *testing.B) {
	e, err := Parse("* * * * * *", Options{Seconds: true})
	if err != nil {
		b.Fatal(err)
	}
	from := time.Date(2026, 11, 29, 12, 34, 56, 0, time.UTC)
	for b.Loop() {
		if e.Count(from, from.AddDate(0, 0, 14)) != 14*86400 {
			b.Fatal("wrong count")
		}
	}
}
