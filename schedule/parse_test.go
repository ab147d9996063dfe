package schedule_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

func TestFieldsName(t *testing.T) {
	// Each pair names the same.
	for _, c := range []struct{ spec, plain string }{
		{"0 0 * JAN,feb,Mar *", "0 0 * 1,2,3 *"},
		{"0 0 * * sun,Mon,TUE", "0 0 * * 0,1,2"},
		{"0 0 * * 7", "0 0 * * 0"},
		{"0 0 * * 5-7", "0 0 * * 5,6,0"},
		{"0 0 * * 7-2", "0 0 * * 0,1,2"},
		{"0 0 * * 7-7", "0 0 * * 0"},
		{"0 0 * * SAT-SUN", "0 0 * * 0,6"},
		{"0 0 * * FRI-MON", "0 0 * * 5,6,0,1"},
		{"0 0 * * MON-7", "0 0 * * 0-6"},
		{"0 0 * * 0-7/7", "0 0 * * 0"},
		{"0 0 * * 5-2/2", "0 0 * * 5,0,2"},
		{"0 0 * * 5/2", "0 0 * * 5"},
		{"0 0 * * 7/2", "0 0 * * 0,2,4,6"},
		{"0 22-2 * * *", "0 22,23,0,1,2 * * *"},
		{"0 22-3/2 * * *", "0 22,0,2 * * *"},
		{"50-10/5 0 * * *", "50,55,0,5,10 0 * * *"},
		{"0 0 29-2 * *", "0 0 29,30,31,1,2 * *"},
		{"0 0 29-3/2 * *", "0 0 29,31,2 * *"},
		{"0 0 1 NOV-FEB *", "0 0 1 11,12,1,2 *"},
		{"5/15 0 * * *", "5,20,35,50 0 * * *"},
		{"10-30/10 0 * * *", "10,20,30 0 * * *"},
		{"0/100 0 * * *", "0 0 * * *"},
		{"7/99999999999999999999 0 * * *", "7 0 * * *"},
		{"05 003 * * *", "5 3 * * *"},
		{"1,1,1-2 0 * * *", "1,2 0 * * *"},
		{"0 0 ? * ?", "0 0 * * *"},
		{"0 0 l-03,15w,lw,l * *", "0 0 L,LW,15W,L-3 * *"},
		{"0 0 * * fri#2,7L,6l", "0 0 * * 5#2,0L,SATL"},
		{"0 0 * * FRI,FRI#2,5L", "0 0 * * 5"},
		{"0 0 1-31 * 4", "0 0 * * *"},
		{"0 0 13 * 0-6", "0 0 * * *"},
		{"\t 0   0\t*  * * ", "0 0 * * *"},
		{"@yearly", "0 0 1 1 *"},
		{"@annually", "0 0 1 1 *"},
		{"@monthly", "0 0 1 * *"},
		{"@weekly", "0 0 * * 0"},
		{"@Daily", "0 0 * * *"},
		{" @midnight ", "0 0 * * *"},
		{"@hourly", "0 * * * *"},
		{"@EVERY 90m", "@every 1h30m"},
		{"@every 1.5h", "@every 1h30m"},
		{"TZ=UTC @every 1h30m", "CRON_TZ=Asia/Tokyo @every 90m"},
		{"TZ=Asia/Tokyo @daily", "CRON_TZ=Asia/Tokyo 0 0 * * *"},
	} {
		a, b := schedule.MustParse(c.spec), schedule.MustParse(c.plain)
		if a.Key() != b.Key() {
			t.Errorf("%q is %q, and %q is %q", c.spec, a.Key(), c.plain, b.Key())
		}
		at := instant(t, "2026-11-29T17:52:11Z")
		for range 50 {
			want := b.Next(at)
			if got := a.Next(at); !got.Equal(want) {
				t.Errorf("%q fires at %s, %q at %s", c.spec, got, c.plain, want)
				break
			}
			at = want
		}
	}
}

func TestDescriptorsWithSeconds(t *testing.T) {
	for _, spec := range []string{"@daily", "@every 5m", "CRON_TZ=Asia/Tokyo @hourly"} {
		e, err := schedule.Parse(spec, schedule.Options{Seconds: true})
		if err != nil {
			t.Fatal(err)
		}
		if want := schedule.MustParse(spec); e.Key() != want.Key() {
			t.Errorf("%q with seconds is %q, without %q", spec, e.Key(), want.Key())
		}
	}
}

func TestB31EveryHangsOnTheEpoch(t *testing.T) {
	e := schedule.MustParse("@every 60s")
	at := instant(t, "2026-11-29T17:52:11Z")
	for _, late := range []time.Duration{0, 23 * time.Second, 48 * time.Second, 48*time.Second + time.Second - 1} {
		if got := e.Next(at.Add(late)); got.Format(time.RFC3339) != "2026-11-29T17:53:00Z" {
			t.Errorf("Next %s later is %s", late, got)
		}
	}
	e = schedule.MustParse("@every 7h")
	for _, at := range []time.Time{at, time.Unix(-1, 0), time.Unix(0, 0), time.Unix(-7*3600, 1)} {
		next, prev := e.Next(at), e.Prev(at)
		if next.Unix()%(7*3600) != 0 || prev.Unix() != next.Unix()-7*3600 || !next.After(at) || prev.After(at) {
			t.Errorf("around %s: %s and %s", at, prev, next)
		}
	}
}

func TestMustParse(t *testing.T) {
	defer func() {
		if err, ok := recover().(error); !ok || !errors.Is(err, schedule.ErrNever) {
			t.Errorf("panicked with %v, want the error", err)
		}
	}()
	schedule.MustParse("0 0 30 2 *")
}

func TestZoneComesFromThePrefixThenTheOption(t *testing.T) {
	berlin := zone(t, "Europe/Berlin")
	for _, c := range []struct {
		spec string
		opts schedule.Options
		want string
	}{
		{"0 3 * * *", schedule.Options{}, "UTC"},
		{"0 3 * * *", schedule.Options{Zone: berlin}, "Europe/Berlin"},
		{"CRON_TZ=Asia/Tokyo 0 3 * * *", schedule.Options{Zone: berlin}, "Asia/Tokyo"},
		{"TZ=Etc/GMT+1 0 3 * * *", schedule.Options{}, "Etc/GMT+1"},
		{"TZ=America/Port-au-Prince 0 3 * * *", schedule.Options{}, "America/Port-au-Prince"},
		{"TZ=America/Argentina/Buenos_Aires 0 3 * * *", schedule.Options{}, "America/Argentina/Buenos_Aires"},
		{"TZ=EST5EDT @daily", schedule.Options{Seconds: true}, "EST5EDT"},
	} {
		e, err := schedule.Parse(c.spec, c.opts)
		if err != nil {
			t.Fatal(err)
		}
		if e.Zone().String() != c.want || e.Next(time.Now()).Location() != e.Zone() || e.Prev(time.Now()).Location() != e.Zone() {
			t.Errorf("%q is in %s, want %s", c.spec, e.Zone(), c.want)
		}
		if e.String() != c.spec {
			t.Errorf("%q is written %q", c.spec, e)
		}
	}
}

func TestTheZeroExprNeverFires(t *testing.T) {
	var e schedule.Expr
	if !e.Next(time.Now()).IsZero() || !e.Prev(time.Now()).IsZero() || e.Key() != "" || e.Describe() != "never" {
		t.Error("the zero Expr fires")
	}
}
