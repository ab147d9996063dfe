package cli

import "testing"

func TestNext(t *testing.T) {
	const help = "; see singleton next --help\n"
	for _, c := range []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{[]string{"30 2 * * MON-FRI"}, 0, "2026-11-30T02:30:00Z\n2026-12-01T02:30:00Z\n2026-12-02T02:30:00Z\n" +
			"2026-12-03T02:30:00Z\n2026-12-04T02:30:00Z\n", ""},
		{[]string{"-n", "2", "--tz", "Europe/Berlin", "@daily"}, 0, "2026-11-30T00:00:00+01:00\n2026-12-01T00:00:00+01:00\n", ""},
		{[]string{"-n", "1", "--tz", "Europe/Berlin", "CRON_TZ=Asia/Tokyo @daily"}, 0, "2026-11-30T00:00:00+09:00\n", ""},
		{[]string{"-n", "2", "--seconds", "*/30 * * * * *"}, 0, "2026-11-29T12:00:30Z\n2026-11-29T12:01:00Z\n", ""},
		{[]string{"-n", "1", "--from", "2026-12-24T18:00:00+01:00", "@hourly"}, 0, "2026-12-24T17:00:00Z\n", ""},
		{[]string{"-n", "1", "--tz", "Europe/Berlin", "--from", "2026-12-24T18:00", "@hourly"}, 0, "2026-12-24T18:00:00+01:00\n", ""},
		{[]string{"-n", "1", "--from", "2026-12-24T18:00:01", "@hourly"}, 0, "2026-12-24T19:00:00Z\n", ""},
		{[]string{"-n", "1", "--from", "2026-12-24T17:59:59.9Z", "@hourly"}, 0, "2026-12-24T18:00:00Z\n", ""},
		{[]string{"-n", "1", "--from", "2026-12-24", "@hourly"}, 0, "2026-12-24T00:00:00Z\n", ""},
		{[]string{"--from", "9999-12-31T22:30:00Z", "@hourly"}, 0, "9999-12-31T23:00:00Z\n", ""},
		{[]string{"--from", "yesterday", "@hourly"}, 2, "",
			`singleton: next: --from: "yesterday" is no time such as 2026-12-24T18:00:00Z or 2026-12-24` + help},
		{[]string{"0 25 * * *"}, 2, "", `singleton: next: column 3: hour: "25" is out of range 0-23` + help},
		{[]string{"* * * * * *"}, 2, "", "singleton: next: six fields, which has two readings: seconds first (say --seconds), " +
			"or year last (not supported)" + help},
		{[]string{"@reboot"}, 2, "", "singleton: next: column 1: @reboot names no time: a job that one of many machines runs has " +
			"no boot to follow" + help},
	} {
		t.Run(c.args[len(c.args)-1], func(t *testing.T) {
			call(t, nil, append([]string{"next"}, c.args...)...).want(t, c.code, c.stdout, c.stderr)
		})
	}
}

func TestB61NeverFiringIsRefusedWithTheReason(t *testing.T) {
	call(t, nil, "next", "0 0 30 2 *").want(t, exitUsage, "",
		"singleton: next: column 5: day of month: never fires: no such day in any of its months; see singleton next --help\n")
}
