package schedule_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/go-singleton/singleton/schedule"
)

// fuzzZones are a choice of zones: constant, with rules without an end, with odd offsets, with skipped days.
var fuzzZones = []string{
	"UTC", "America/New_York", "Europe/Berlin", "Australia/Lord_Howe", "Pacific/Apia", "America/Sao_Paulo", "Africa/Cairo",
	"Antarctica/Troll", "Africa/Casablanca", "Asia/Kathmandu", "America/Santiago", "Asia/Gaza",
}

// year1900 and year2200 enclose the instants that are tried.
var year1900, year2200 = time.Date(1900, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// within turns any number into an instant from 1900 to 2200.
func within(sec int64) time.Time {
	n := year2200.Unix() - year1900.Unix()
	return time.Unix(year1900.Unix()+(sec%n+n)%n, 0)
}

func FuzzParse(f *testing.F) {
	for i, spec := range hard {
		f.Add(spec, true, uint8(i), int64(1_764_439_931))
	}
	for _, spec := range []string{
		"", "* * * *", "60 * * * *", "1-5/ * * * *", ", * * * *", "TZ=UTC", "CRON_TZ=UTC", "TZ=", "TZ=../../etc/passwd * * * * *",
		"@every", "@every -1h", "@every 90s", "@daily", "@reboot", "0 0 30 2 *", "0 0 31 2 MON", "0 0 29 2 *", "0 9 30 12 *",
		"*/10 * * * * *", "0 0 L-3,15W,LW * *", "0 0 ? * MON#5,FRIL", "CRON_TZ=Europe/Berlin */30 2 * 3 0L", "0 22-2 * NOV-FEB SAT-SUN",
		"0 0 1-31 * 4", "30 18 21-31 * */6", "0 0 *\n* *", "5/15,*/7 0 7-7,*/2 * 7-2/2",
	} {
		f.Add(spec, false, uint8(len(spec)), int64(len(spec))<<33)
	}
	f.Fuzz(func(t *testing.T, spec string, seconds bool, zoneIndex uint8, sec int64) {
		opts := schedule.Options{Seconds: seconds, Zone: zone(t, fuzzZones[int(zoneIndex)%len(fuzzZones)])}
		e, err := schedule.Parse(spec, opts)
		if err != nil {
			bad, ok := errors.AsType[*schedule.SyntaxError](err)
			if !ok || bad.Offset < 0 || bad.Offset > len(spec) || bad.Length < 1 || bad.Offset+bad.Length > len(spec)+1 ||
				bad.Reason == "" || strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("Parse(%q) = %#v", spec, err)
			}
			return
		}
		if e.Describe() == "" || e.String() != spec {
			t.Fatalf("%q is written %q and described %q", spec, e, e.Describe())
		}
		at := within(sec)
		agrees(t, e, at)

		again := reparsed(t, e)
		if again.Zone().String() != e.Zone().String() {
			return // of @every the key has no zone
		}
		for range 5 {
			want := e.Next(at)
			if got := again.Next(at); !got.Equal(want) {
				t.Fatalf("%q fires at %s, and its key %q at %s", spec, want, e.Key(), got)
			}
			at = want
		}
	})
}

// common are the specs that both dialects read, without those that mean different things: a star with a step in a day
// field makes both days count here and does not there, and Sunday is 7 only here.
var common = regexp.MustCompile(`^` +
	strings.Repeat(commonField(`[0-9]{1,2}`, `\*|\*/[1-9][0-9]?`)+" ", 2) +
	commonField(`[0-9]{1,2}`, `\*`) + " " +
	commonField(`[0-9]{1,2}|[A-Za-z]{3}`, `\*|\*/[1-9][0-9]?`) + " " +
	commonField(`[0-6]|[A-Za-z]{3}`, `\*`) + `$`)

func commonField(value, alone string) string {
	entry := `(` + value + `)(-(` + value + `))?(/[1-9][0-9]?)?`
	return `(` + alone + `|` + entry + `(,` + entry + `){0,4})`
}

func FuzzAgainstRobfig(f *testing.F) {
	for i, spec := range []string{
		"* * * * *", "*/5 * * * *", "0 3 * * MON-FRI", "30 2 1,15 * *", "0 0 13 * FRI", "0 9-17/2 * JAN-mar 1-5", "59 23 31 12 *",
		"5/15 */6 * * *", "0 0 29 2 *", "0 0 31 * *", "7 7 7 7 0", "0-59/7 1,3,5-9 * */5 6", "0 0 30 1 1", "0 0 30 2 *",
	} {
		f.Add(spec, uint8(i), int64(1_764_439_931)+int64(i)<<24)
	}
	f.Fuzz(func(t *testing.T, spec string, zoneIndex uint8, sec int64) {
		againstRobfig(t, spec, fuzzZones[int(zoneIndex)%len(fuzzZones)], within(sec))
	})
}

// againstRobfig compares Next where both read a spec alike and no clock changes, and reports whether it did.
func againstRobfig(t *testing.T, spec, name string, at time.Time) bool {
	t.Helper()
	if name == "Pacific/Apia" || !common.MatchString(spec) { // there theirs does not return
		return false
	}
	loc := zone(t, name)
	ours, err := schedule.Parse(spec, schedule.Options{Zone: loc})
	theirs, theirErr := cron.ParseStandard("CRON_TZ=" + name + " " + spec)
	if err != nil {
		if theirErr == nil && !errors.Is(err, schedule.ErrNever) {
			t.Fatalf("%q is refused: %v; they accept it", spec, err)
		}
		return false
	}
	if theirErr != nil {
		if strings.Contains(theirErr.Error(), "beyond end of range") { // a range that goes round
			return false
		}
		t.Fatalf("%q is accepted; they refuse it: %v", spec, theirErr)
	}
	at = at.In(loc)
	got, want := ours.Next(at), theirs.Next(at)
	if want.IsZero() { // they give up after five years
		if got.Before(at.AddDate(5, 0, 0)) {
			t.Fatalf("%q in %s: Next(%s) = %s, and they find none", spec, name, at, got)
		}
		return false
	}
	if !steady(at, got) || !steady(at, want) {
		return false
	}
	if !got.Equal(want) {
		t.Fatalf("%q in %s: Next(%s) = %s, and theirs is %s", spec, name, at, got, want)
	}
	return true
}

func TestAgainstRobfig(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 20261129))
	field := func(lo, hi int, alone ...string) string {
		n := lo + random.IntN(hi-lo+1)
		switch random.IntN(5) {
		case 0:
			return fmt.Sprint(n)
		case 1:
			return fmt.Sprintf("%d-%d", n, n+random.IntN(hi-n+1))
		case 2:
			return fmt.Sprintf("%d-%d/%d,%d", n, hi, 1+random.IntN(hi), lo)
		case 3:
			return fmt.Sprintf("%d/%d", n, 1+random.IntN(hi))
		default:
			return alone[random.IntN(len(alone))]
		}
	}
	compared := 0
	for range 20_000 {
		spec := strings.Join([]string{
			field(0, 59, "*", "*/7"), field(0, 23, "*", "*/5"), field(1, 31, "*"), field(1, 12, "*", "*/4"), field(0, 6, "*"),
		}, " ")
		if !common.MatchString(spec) {
			t.Fatalf("%q is not common", spec)
		}
		if againstRobfig(t, spec, fuzzZones[random.IntN(len(fuzzZones))], within(random.Int64())) {
			compared++
		}
	}
	if compared < 8_000 {
		t.Errorf("only %d of 20000 compared", compared)
	}
}

// steady reports that no clock is changed from the month of one instant to another, nor within a day of that, and that
// clocks show whole minutes when UTC does. Theirs rests on both, and goes back to the first of the month on its way.
func steady(from, to time.Time) bool {
	_, end := time.Date(from.Year(), from.Month(), 0, 0, 0, 0, 0, from.Location()).ZoneBounds()
	_, offset := from.Zone()
	return offset%60 == 0 && (end.IsZero() || to.AddDate(0, 0, 1).Before(end))
}
