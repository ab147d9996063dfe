package schedule_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

// refusal is a spec that is refused; wrong marks the part that is named as wrong with carets, from the spec's first byte.
type refusal struct {
	spec, wrong, field, reason string
	cause                      error
	seconds                    bool
}

func (r refusal) check(t *testing.T) {
	t.Helper()
	e, err := schedule.Parse(r.spec, schedule.Options{Seconds: r.seconds})
	if err == nil {
		t.Fatalf("Parse(%q) is accepted: %s", r.spec, e.Describe())
	}
	bad, ok := errors.AsType[*schedule.SyntaxError](err)
	if !ok {
		t.Fatalf("Parse(%q) = %T, want a *SyntaxError", r.spec, err)
	}
	if got := strings.Repeat(" ", bad.Offset) + strings.Repeat("^", bad.Length); got != r.wrong {
		t.Errorf("Parse(%q) is wrong at\n|%s|\n|%s|, want\n|%s|", r.spec, r.spec, got, r.wrong)
	}
	if bad.Field != r.field || !strings.Contains(bad.Reason, r.reason) {
		t.Errorf("Parse(%q) = field %q, reason %q; want %q, %q", r.spec, bad.Field, bad.Reason, r.field, r.reason)
	}
	if bad.Spec != r.spec {
		t.Errorf("Parse(%q): the error is about %q", r.spec, bad.Spec)
	}
	if errors.Unwrap(bad) != r.cause {
		t.Errorf("Parse(%q) wraps %v, want %v", r.spec, errors.Unwrap(bad), r.cause)
	}
	want := "schedule: " + bad.Reason
	if r.field != "" {
		want = "schedule: " + r.field + ": " + bad.Reason
	}
	if err.Error() != want {
		t.Errorf("Parse(%q) says %q, want %q", r.spec, err, want)
	}
}

func TestB60RefusedWithFieldAndPosition(t *testing.T) {
	for _, r := range []refusal{
		{spec: "", wrong: "^", reason: "empty; want 5 fields"},
		{spec: "* * * *", wrong: "^^^^^^^", reason: "4 fields; want 5 fields: minute, hour, day of month, month, day of week"},
		{spec: "60 * * * *", wrong: "^^", field: "minute", reason: `"60" is out of range 0-59`},
		{spec: "0 0 32 * *", wrong: "    ^^", field: "day of month", reason: `"32" is out of range 1-31`},
		{spec: "*/0 * * * *", wrong: "  ^", field: "minute", reason: `the step "0" is less than 1`},
		{spec: "1-5/ * * * *", wrong: "   ^", field: "minute", reason: `a step is missing after "/"`},
		{spec: ", * * * *", wrong: "^", field: "minute", reason: "an entry of the list is empty"},
		{spec: "1,,2 * * * *", wrong: "  ^", field: "minute", reason: "an entry of the list is empty"},
		{spec: "TZ=UTC", wrong: "      ^", reason: "nothing after the time zone; want 5 fields"},
		{spec: "TZ=", wrong: "^^^", field: "time zone", reason: `a name is missing after "TZ="`},
		{
			spec: "TZ=../../etc/passwd * * * * *", wrong: "   ^^^^^^^^^^^^^^^^", field: "time zone",
			reason: `unknown time zone "../../etc/passwd"`,
		},
		{spec: "@every", wrong: "^^^^^^", field: "interval", reason: "@every needs a duration"},
		{spec: "@every -1h", wrong: "       ^^^", field: "interval", reason: "-1h is shorter than one second"},
		{spec: "@every 0s", wrong: "       ^^", field: "interval", reason: "0s is shorter than one second"},
		{spec: "0 0 *\n* *", wrong: "     ^", reason: "a line break inside"},
		{spec: "0 0 * * *\n", wrong: "         ^", reason: "a line break inside"},
		{
			spec: strings.Repeat("1,", 510) + "1 * * * *", wrong: strings.Repeat(" ", 1024) + "^^^^^",
			reason: "longer than 1024 bytes",
		},
	} {
		r.check(t)
	}
}

func TestB60ALongSpecWithinTheLimitIsAccepted(t *testing.T) {
	spec := strings.Repeat("1,", 507) + "1 * * * *"
	spec += strings.Repeat(" ", schedule.MaxLength-len(spec))
	if _, err := schedule.Parse(spec, schedule.Options{}); err != nil {
		t.Errorf("a spec of %d bytes: %v", len(spec), err)
	}
}

func TestB61NeverFiring(t *testing.T) {
	const days = "never fires: no such day in any of its months"
	for _, r := range []refusal{
		{spec: "0 0 30 2 *", wrong: "    ^^", field: "day of month", reason: days, cause: schedule.ErrNever},
		{spec: "0 0 31 4,6,9,11 *", wrong: "    ^^", field: "day of month", reason: days, cause: schedule.ErrNever},
		{spec: "0 0 31W 2-2 ?", wrong: "    ^^^", field: "day of month", reason: days, cause: schedule.ErrNever},
		{spec: "0 0 L-30 2,4 *", wrong: "    ^^^^", field: "day of month", reason: days, cause: schedule.ErrNever},
		{
			spec: "0 0 */9 2 MON#5", wrong: "    ^^^^^^^^^^^", cause: schedule.ErrNever, // a fifth Monday is the 29th
			reason: "never fires: no month of it has such a day",
		},
		{
			spec: "CRON_TZ=America/New_York */30 2 * 3 SUN#2", wrong: "                         ^^^^^^", cause: schedule.ErrNever,
			reason: "never fires: on each of its days the clocks of America/New_York skip the time",
		},
	} {
		r.check(t)
	}
}

func TestB61RareIsNotNever(t *testing.T) {
	for _, c := range []struct{ spec, after, want string }{
		{"0 0 31 2 MON", "2026-01-01T00:00:00Z", "2026-02-02T00:00:00Z"},
		{"0 0 29 2 *", "2026-01-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"0 0 29 2 *", "2096-02-29T00:00:00Z", "2104-02-29T00:00:00Z"},
		{"0 0 ? 2 SAT#5", "2020-02-29T00:00:00Z", "2048-02-29T00:00:00Z"}, // a Saturday 29 February
		{"0 0 */28 2 SAT#5", "2020-02-29T00:00:00Z", "2048-02-29T00:00:00Z"},
		{"0 0 ? 2 SAT#5", "2076-02-29T00:00:00Z", "2116-02-29T00:00:00Z"}, // 40 years: 2100 has none
		{"0 0 */28 2 6", "2076-02-29T00:00:00Z", "2081-02-01T00:00:00Z"},
		{"0 0 L-28 2 *", "2026-01-01T00:00:00Z", "2028-02-01T00:00:00Z"},
		{"CRON_TZ=Europe/Berlin */30 2 * 3 SUN", "2026-03-29T00:00:00Z", "2027-03-07T02:00:00+01:00"},
	} {
		e := schedule.MustParse(c.spec)
		at := instant(t, c.after)
		if got := e.Next(at).Format(time.RFC3339); got != c.want {
			t.Errorf("%q: Next(%s) = %s, want %s", c.spec, c.after, got, c.want)
		}
		if prev := e.Prev(instant(t, c.want).Add(-1)); prev.After(at) {
			t.Errorf("%q: fires at %s, between %s and %s", c.spec, prev, c.after, c.want)
		}
	}
}

func TestB63SixFieldsHaveTwoReadings(t *testing.T) {
	const reason = "six fields, which has two readings: seconds first (say the Seconds option), or year last (not supported)"
	refusal{spec: "*/10 * * * * *", wrong: "^^^^^^^^^^^^^^", reason: reason, cause: schedule.ErrSixFields}.check(t)
	refusal{spec: "TZ=UTC 0 0 1 1 * 2027", wrong: "       ^^^^^^^^^^^^^^", reason: reason, cause: schedule.ErrSixFields}.check(t)
	if _, err := schedule.Parse("*/10 * * * * *", schedule.Options{Seconds: true}); err != nil {
		t.Error(err)
	}
}

func TestRefused(t *testing.T) {
	for _, r := range []refusal{
		{spec: " \t ", wrong: "^^^", reason: "empty"},
		{spec: "0 25 * * *", wrong: "  ^^", field: "hour", reason: `"25" is out of range 0-23`},
		{spec: "  0\t25 * * *", wrong: "    ^^", field: "hour", reason: `"25" is out of range 0-23`},
		{spec: "0 0 0 * *", wrong: "    ^", field: "day of month", reason: `"0" is out of range 1-31`},
		{spec: "0 0 * 13 *", wrong: "      ^^", field: "month", reason: `"13" is out of range 1-12`},
		{spec: "0 0 * 0 *", wrong: "      ^", field: "month", reason: `"0" is out of range 1-12`},
		{spec: "0 0 * * 8", wrong: "        ^", field: "day of week", reason: `"8" is out of range 0-7`},
		{spec: "0 0 * * 1-8", wrong: "          ^", field: "day of week", reason: `"8" is out of range 0-7`},
		{spec: "99999999999999999999 * * * *", wrong: "^^^^^^^^^^^^^^^^^^^^", field: "minute", reason: "is out of range 0-59"},
		{spec: "+5 * * * *", wrong: "^^", field: "minute", reason: `"+5" is not a number`},
		{spec: "-5 * * * *", wrong: "^", field: "minute", reason: `a value is missing before "-"`},
		{spec: "5- * * * *", wrong: " ^", field: "minute", reason: `a value is missing after "-"`},
		{spec: "1-2-3 * * * *", wrong: "  ^^^", field: "minute", reason: `"2-3" is not a number`},
		{spec: "/5 * * * *", wrong: "^", field: "minute", reason: `a value is missing before "/"`},
		{spec: "*/5/5 * * * *", wrong: "  ^^^", field: "minute", reason: `the step "5/5" is not a number`},
		{spec: "*/-5 * * * *", wrong: "  ^^", field: "minute", reason: `the step "-5" is not a number`},
		{spec: "1,2, * * * *", wrong: "   ^", field: "minute", reason: "an entry of the list is empty"},
		{spec: "** * * * *", wrong: "^^", field: "minute", reason: `in "**", "*" does not stand alone`},
		{spec: "*-5 * * * *", wrong: "^", field: "minute", reason: `"*" does not stand alone`},
		{spec: "0 0 * FOO *", wrong: "      ^^^", field: "month", reason: `"FOO" is neither a number nor a name such as FEB`},
		{spec: "0 0 * * MONDAY", wrong: "        ^^^^^^", field: "day of week", reason: `neither a number nor a name such as MON`},
		{spec: "0 0 MON * *", wrong: "    ^^^", field: "day of month", reason: `"MON" is not a number`},
		{spec: "H H * * *", wrong: "^", field: "minute", reason: `"H" is not a number`},
		{spec: "? * * * *", wrong: "^", field: "minute", reason: `"?" is for a day field`},
		{spec: "0 0 ?/2 * *", wrong: "    ^^^", field: "day of month", reason: `"?" is for a day field, and stands alone in it`},
		{spec: "L * * * *", wrong: "^", field: "minute", reason: `"L" is not a number`},
		{spec: "0 0 LL * *", wrong: "    ^^", field: "day of month", reason: `"LL" is none of L, LW and L-3`},
		{spec: "0 0 L-0 * *", wrong: "    ^^^", field: "day of month", reason: `"L-0" is not L-1 to L-30`},
		{spec: "0 0 L-31 * *", wrong: "    ^^^^", field: "day of month", reason: `"L-31" is not L-1 to L-30`},
		{spec: "0 0 1,L- * *", wrong: "      ^^", field: "day of month", reason: `"L-" is not L-1 to L-30`},
		{spec: "0 0 32W * *", wrong: "    ^^", field: "day of month", reason: `"32" is out of range 1-31`},
		{spec: "0 0 W * *", wrong: "    ^", field: "day of month", reason: `"" is not a number`},
		{spec: "0 0 1-5W * *", wrong: "    ^^^", field: "day of month", reason: `"1-5" is not a number`},
		{spec: "0 0 * * L", wrong: "        ^", field: "day of week", reason: `"L" needs a weekday before it, such as 5L`},
		{spec: "0 0 * * 8L", wrong: "        ^", field: "day of week", reason: `"8" is out of range 0-7`},
		{spec: "0 0 * * MON#6", wrong: "        ^^^^^", field: "day of week", reason: `"MON#6" is not the 1st to 5th`},
		{spec: "0 0 * * MON#0", wrong: "        ^^^^^", field: "day of week", reason: `"MON#0" is not the 1st to 5th`},
		{spec: "0 0 * * #2", wrong: "        ^", field: "day of week", reason: "is neither a number nor a name"},
		{spec: "0 0 * * 1-3#2", wrong: "        ^^^", field: "day of week", reason: `"1-3" is neither a number nor a name`},
		{spec: "0 0 * * 15W", wrong: "        ^^^", field: "day of week", reason: `"15W" is neither a number nor a name`},
		{spec: "0 0 * * * extra words", wrong: "^^^^^^^^^^^^^^^^^^^^^", reason: "7 fields; want 5 fields"},
		{spec: "0 0 * * *", wrong: "^^^^^^^^^", reason: "5 fields; want 6 fields: second, minute,", seconds: true},
		{spec: "60 0 0 * * *", wrong: "^^", field: "second", reason: `"60" is out of range 0-59`, seconds: true},
		{spec: "0\u00a00 * * *", wrong: " ^", reason: "the byte 0xc2 is no printable ASCII"},
		{spec: "0 0 * * \u017fun", wrong: "        ^", reason: "the byte 0xc5 is no printable ASCII"},
		{spec: "0 0 * * \x00", wrong: "        ^", reason: "the byte 0x00 is no printable ASCII"},
		{spec: "0 0\r* * *", wrong: "   ^", reason: "a line break inside"},
		{spec: "@reboot", wrong: "^^^^^^^", reason: "@reboot names no time"},
		{spec: "@fortnightly", wrong: "^^^^^^^^^^^^", reason: `unknown descriptor "@fortnightly"`},
		{spec: "@daily at noon", wrong: "       ^^^^^^^", reason: "@daily takes nothing after it"},
		{spec: "@every soon", wrong: "       ^^^^", field: "interval", reason: `"soon" is not a duration`},
		{spec: "@every 1h 30m", wrong: "       ^^^^^^", field: "interval", reason: `"1h 30m" is not a duration`},
		{spec: "@every 1500ms", wrong: "       ^^^^^^", field: "interval", reason: "1500ms is not a whole number of seconds"},
		{spec: "@every 1ns", wrong: "       ^^^", field: "interval", reason: "1ns is shorter than one second"},
		{spec: "@every 999999999h", wrong: "       ^^^^^^^^^^", field: "interval", reason: "is not a duration"},
		{spec: "CRON_TZ=UTC", wrong: "           ^", reason: "nothing after the time zone"},
		{spec: "CRON_TZ=", wrong: "^^^^^^^^", field: "time zone", reason: `a name is missing after "CRON_TZ="`},
		{spec: "CRON_TZ= UTC * * * * *", wrong: "^^^^^^^^", field: "time zone", reason: "a name is missing"},
		{spec: "CRON_TZ=Mars/Base * * * * *", wrong: "        ^^^^^^^^^", field: "time zone", reason: `unknown time zone "Mars/Base"`},
		{spec: "TZ=Local * * * * *", wrong: "   ^^^^^", field: "time zone", reason: `unknown time zone "Local"`},
		{spec: "TZ=localtime * * * * *", wrong: "   ^^^^^^^^^", field: "time zone", reason: "unknown time zone"},
		{spec: "TZ=right/UTC * * * * *", wrong: "   ^^^^^^^^^", field: "time zone", reason: "unknown time zone"},
		{spec: "TZ=posix/Europe/Berlin * * * * *", wrong: "   ^^^^^^^^^^^^^^^^^^^", field: "time zone", reason: "unknown time zone"},
		{spec: "TZ=/etc/localtime * * * * *", wrong: "   ^^^^^^^^^^^^^^", field: "time zone", reason: "unknown time zone"},
		{spec: "TZ=Europe//Berlin * * * * *", wrong: "   ^^^^^^^^^^^^^^", field: "time zone", reason: "unknown time zone"},
		{spec: "TZ=Europe/ * * * * *", wrong: "   ^^^^^^^", field: "time zone", reason: "unknown time zone"},
		{spec: `TZ=Europe\Berlin * * * * *`, wrong: "   ^^^^^^^^^^^^^", field: "time zone", reason: "unknown time zone"},
		{spec: "TZ=UTC TZ=UTC * * * * *", wrong: "       ^^^^^^^^^^^^^^^^", reason: "six fields", cause: schedule.ErrSixFields},
		{spec: "tz=UTC 0 0 * * *", wrong: "^^^^^^^^^^^^^^^^", reason: "six fields", cause: schedule.ErrSixFields},
	} {
		r.check(t)
	}
}
