package cli

import (
	"strings"
	"testing"
)

func TestEnvironmentStandsForFlags(t *testing.T) {
	spec := []string{"next", "-n", "1", "@daily"}
	for _, c := range []struct {
		name   string
		env    map[string]string
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{"none", nil, spec, 0, "2026-11-30T00:00:00Z\n", ""},
		{"variable", map[string]string{"SINGLETON_TZ": "Asia/Tokyo"}, spec, 0, "2026-11-30T00:00:00+09:00\n", ""},
		{"empty variable", map[string]string{"SINGLETON_TZ": ""}, spec, 0, "2026-11-30T00:00:00Z\n", ""},
		{"flag wins", map[string]string{"SINGLETON_TZ": "Asia/Tokyo"}, append(spec, "--tz", "UTC"), 0, "2026-11-30T00:00:00Z\n", ""},
		{"flag wins over a bad variable", map[string]string{"SINGLETON_COUNT": "x"}, spec, 0, "2026-11-30T00:00:00Z\n", ""},
		{"bad zone", map[string]string{"SINGLETON_TZ": "Mars"}, spec, 2, "",
			"singleton: next: environment variable SINGLETON_TZ: unknown time zone \"Mars\"; want an IANA name such as " +
				"Europe/Berlin; see singleton next --help\n"},
		{"bad number", map[string]string{"SINGLETON_COUNT": "x"}, []string{"next", "@daily"}, 2, "",
			"singleton: next: environment variable SINGLETON_COUNT: \"x\" is not a whole number; " +
				"see singleton next --help\n"},
		{"bad switch", map[string]string{"SINGLETON_SECONDS": "perhaps"}, spec, 2, "",
			"singleton: next: environment variable SINGLETON_SECONDS: \"perhaps\" is neither true nor false; " +
				"see singleton next --help\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			call(t, c.env, c.args...).want(t, c.code, c.stdout, c.stderr)
		})
	}
}

func TestBadVariablesOfCronAreNamed(t *testing.T) {
	for name, text := range map[string]string{
		"SINGLETON_LEASE": "15", "SINGLETON_GRACE": "long", "SINGLETON_OVERLAP": "forbid", "SINGLETON_CATCH_UP": "yes",
		"SINGLETON_ON_INTERRUPT": "retry", "SINGLETON_MAX_RUNNING": "many", "SINGLETON_LOG_LEVEL": "loud",
		"SINGLETON_LOG_FORMAT": "xml", "SINGLETON_CATCH_UP_MAX": "1.5", "SINGLETON_WINDOW": "1d", "SINGLETON_HISTORY": "-",
	} {
		r := call(t, map[string]string{name: text}, "cron", "--group", "a", "--store", "memory:", "no-such-file")
		if r.code != exitUsage || !strings.HasPrefix(r.stderr, "singleton: cron: environment variable "+name+": ") {
			t.Errorf("%s=%s: exit code %d, %s", name, text, r.code, r.stderr)
		}
	}
}
