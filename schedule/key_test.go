package schedule_test

import (
	"testing"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

func TestKey(t *testing.T) {
	for _, c := range []struct{ spec, want string }{
		{"0 3 * * MON-FRI", "CRON_TZ=UTC 0 0 3 * * 1-5"},
		{"CRON_TZ=Europe/Berlin  0 3 * * 7", "CRON_TZ=Europe/Berlin 0 0 3 * * 0"},
		{"* * * * *", "CRON_TZ=UTC 0 * * * * *"},
		{"0-59 * * * *", "CRON_TZ=UTC 0 * * * * *"},
		{"0-59 0-23 * * *", "CRON_TZ=UTC 0 0-59 0-23 * * *"},
		{"*/15 * * * *", "CRON_TZ=UTC 0 */15 * * * *"},
		{"0,15,30,45 * * * *", "CRON_TZ=UTC 0 */15 * * * *"},
		{"*/30 2 * * *", "CRON_TZ=UTC 0 */30 2 * * *"},
		{"0,30 2 * * *", "CRON_TZ=UTC 0 0,30 2 * * *"},
		{"*/30 0 * * *", "CRON_TZ=UTC 0 */30 0 * * *"},
		{"0,30 */24 * * *", "CRON_TZ=UTC 0 */30 0 * * *"},
		{"5 */8 * * *", "CRON_TZ=UTC 0 5 */8 * * *"},
		{"*/40,7 3 * * *", "CRON_TZ=UTC 0 */40,7 3 * * *"},
		{"@hourly", "CRON_TZ=UTC 0 0 * * * *"},
		{"@yearly", "CRON_TZ=UTC 0 0 0 1 1 *"},
		{"0 0 13 * FRI", "CRON_TZ=UTC 0 0 0 13 * 5"},
		{"0 0 */2 * WED", "CRON_TZ=UTC 0 0 0 */2 * 3"},
		{"0 0 1-31/2 * WED", "CRON_TZ=UTC 0 0 0 1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31 * 3"},
		{"0 0 1,5 * */3", "CRON_TZ=UTC 0 0 0 */31,5 * */3"}, // both days must fit, which a star says
		{"0 0 15W,L,LW,L-2,3 * *", "CRON_TZ=UTC 0 0 0 3,L,L-2,LW,15W * *"},
		{"0 0 ? * FRIL,MON#2", "CRON_TZ=UTC 0 0 0 * * 1#2,5L"},
		{"0 0 1 */4 *", "CRON_TZ=UTC 0 0 0 1 */4 *"},
		{"@every 90s", "@every 1m30s"},
		{"CRON_TZ=Europe/Berlin @every 24h", "@every 24h0m0s"},
	} {
		e := schedule.MustParse(c.spec)
		if got := e.Key(); got != c.want {
			t.Errorf("%q has key %q, want %q", c.spec, got, c.want)
		}
		reparsed(t, e)
	}
}

// reparsed checks that the key of an expression is a spec for the same, and returns that.
func reparsed(t *testing.T, e *schedule.Expr) *schedule.Expr {
	t.Helper()
	again, err := schedule.Parse(e.Key(), schedule.Options{Seconds: true})
	if err != nil {
		t.Fatalf("key of %q: %v", e, err)
	}
	if again.Key() != e.Key() {
		t.Fatalf("%q has key %q, and that has key %q", e, e.Key(), again.Key())
	}
	if again.Describe() != e.Describe() {
		t.Fatalf("%q is %q, and its key %q is %q", e, e.Describe(), e.Key(), again.Describe())
	}
	return again
}

func TestStarsThatMatterAreKept(t *testing.T) {
	for _, c := range []struct{ a, b string }{
		{"*/30 2 * * *", "0,30 2 * * *"},      // daylight saving
		{"0 * * * *", "0 0-23 * * *"},         // daylight saving
		{"0 0 */2 * WED", "0 0 1-31/2 * WED"}, // both days, or one of them
		{"0 3 * * *", "0 3,4 * * *"},
		{"@every 1h", "@hourly"},
	} {
		if a, b := schedule.MustParse(c.a).Key(), schedule.MustParse(c.b).Key(); a == b {
			t.Errorf("%q and %q both have key %q", c.a, c.b, a)
		}
	}
	for _, c := range []struct{ a, b string }{
		{"0 0 1,5 * */3", "0 0 */31,5 * 0,3,6"},
		{"*/60,30 0,6 * * *", "0,30 */24,6 * * *"},
		{"*/5 * * * *", "*/5 0-23 * * *"},
	} {
		a, b := schedule.MustParse(c.a), schedule.MustParse(c.b)
		if a.Key() != b.Key() {
			t.Errorf("%q has key %q, and %q has %q, for the same times", c.a, a.Key(), c.b, b.Key())
		}
		reparsed(t, a)
	}
}

func TestKeyOfZones(t *testing.T) {
	tokyo := zone(t, "Asia/Tokyo")
	key := func(spec string, loc *time.Location) string {
		e, err := schedule.Parse(spec, schedule.Options{Zone: loc})
		if err != nil {
			t.Fatal(err)
		}
		return e.Key()
	}
	for _, c := range []struct {
		spec string
		zone *time.Location
		want string
	}{
		{"0 3 * * *", nil, "CRON_TZ=UTC 0 0 3 * * *"},
		{"0 3 * * *", time.UTC, "CRON_TZ=UTC 0 0 3 * * *"},
		{"0 3 * * *", zone(t, "Etc/UTC"), "CRON_TZ=UTC 0 0 3 * * *"},
		{"0 3 * * *", tokyo, "CRON_TZ=Asia/Tokyo 0 0 3 * * *"},
		{"TZ=Asia/Tokyo 0 3 * * *", nil, "CRON_TZ=Asia/Tokyo 0 0 3 * * *"},
		{"CRON_TZ=Asia/Tokyo 0 3 * * *", time.UTC, "CRON_TZ=Asia/Tokyo 0 0 3 * * *"},
		{"0 3 * * *", zone(t, "Etc/GMT-1"), "CRON_TZ=Etc/GMT-1 0 0 3 * * *"},
		{"0 3 * * *", time.FixedZone("Etc/GMT-1", 7200), "CRON_TZ=+7200s 0 0 3 * * *"},
		{"0 3 * * *", time.FixedZone("Asia/Tokyo", 9*3600), "CRON_TZ=+32400s 0 0 3 * * *"},
		{"0 3 * * *", time.FixedZone("mine", -1800), "CRON_TZ=-1800s 0 0 3 * * *"},
		{"0 3 * * *", time.FixedZone("mine", 0), "CRON_TZ=UTC 0 0 3 * * *"},
	} {
		if got := key(c.spec, c.zone); got != c.want {
			t.Errorf("%q in %v has key %q, want %q", c.spec, c.zone, got, c.want)
		}
	}
}
