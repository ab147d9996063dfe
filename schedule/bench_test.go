package schedule_test

import (
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/go-singleton/singleton/schedule"
)

// benchmarks are specs that both dialects read, and zones in which they are asked from a summer's day.
var benchmarks = []struct{ name, spec, zone string }{
	{"minute/UTC", "* * * * *", "UTC"},
	{"minute/Berlin", "* * * * *", "Europe/Berlin"},
	{"nightly/UTC", "0 3 * * *", "UTC"},
	{"nightly/Berlin", "0 3 * * *", "Europe/Berlin"},
	{"workdays/Berlin", "*/10 9-17 * * 1-5", "Europe/Berlin"},
	{"monthly/Berlin", "30 4 1 * *", "Europe/Berlin"},
	{"leap-day/UTC", "0 0 29 2 *", "UTC"},
	{"leap-day/Berlin", "0 0 29 2 *", "Europe/Berlin"},
}

var asked = time.Date(2026, time.July, 15, 12, 34, 56, 0, time.UTC)

func bothParsed(b *testing.B, spec, name string) (*schedule.Expr, cron.Schedule, time.Time) {
	b.Helper()
	ours, err := schedule.Parse(spec, schedule.Options{Zone: zone(b, name)})
	if err != nil {
		b.Fatal(err)
	}
	theirs, err := cron.ParseStandard("CRON_TZ=" + name + " " + spec)
	if err != nil {
		b.Fatal(err)
	}
	return ours, theirs, asked.In(ours.Zone())
}

func BenchmarkNext(b *testing.B) {
	for _, c := range benchmarks {
		ours, theirs, at := bothParsed(b, c.spec, c.zone)
		for _, s := range []struct {
			whose string
			schedule.Schedule
		}{{"ours", ours}, {"robfig", theirs}} {
			b.Run(c.name+"/"+s.whose, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					s.Next(at)
				}
			})
		}
	}
}

func BenchmarkPrev(b *testing.B) {
	for _, c := range benchmarks {
		ours, _, at := bothParsed(b, c.spec, c.zone)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ours.Prev(at)
			}
		})
	}
}

// BenchmarkNextAtWorst has what the search takes longest for.
func BenchmarkNextAtWorst(b *testing.B) {
	for _, c := range []struct{ name, spec, zone, at string }{
		{"40-years/UTC", "0 0 ? 2 SAT#5", "UTC", "2076-03-01T00:00:00Z"},
		{"40-years/Berlin", "0 0 ? 2 SAT#5", "Europe/Berlin", "2076-03-01T00:00:00Z"},
		{"40-years-by-the-clock/Berlin", "*/30 2 ? 2 SAT#5", "Europe/Berlin", "2076-03-01T00:00:00Z"},
		{"40-years-by-the-clock/Gaza", "*/30 2 ? 2 SAT#5", "Asia/Gaza", "2076-03-01T00:00:00Z"},
		{"a-day-left-out/Apia", "0 9 30 12 *", "Pacific/Apia", "2011-12-29T10:00:00Z"},
	} {
		e, err := schedule.Parse(c.spec, schedule.Options{Zone: zone(b, c.zone)})
		if err != nil {
			b.Fatal(err)
		}
		at := instant(b, c.at)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				e.Next(at)
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, spec string }{
		{"daily", "@daily"},
		{"plain", "0 3 * * *"},
		{"long", "0,15,30-40/2 9-17 1,15 JAN-JUN MON-FRI"},
		{"zone", "CRON_TZ=Europe/Berlin 0 3 * * *"},
	} {
		b.Run(c.name+"/ours", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := schedule.Parse(c.spec, schedule.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(c.name+"/robfig", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := cron.ParseStandard(c.spec); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
