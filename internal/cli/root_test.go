package cli

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/go-singleton/singleton/store"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

func TestUsageErrorsAreOneLineThatPointsToHelp(t *testing.T) {
	for _, c := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"stauts"}, `singleton: unknown command "stauts"; did you mean "status"?; see singleton --help`},
		{[]string{"frobnicate"}, `singleton: unknown command "frobnicate"; see singleton --help`},
		{[]string{"help", "stauts"}, `singleton: help: unknown command "stauts"; did you mean "status"?; see singleton help --help`},
		{[]string{"redis://:" + canary + "@h"}, `singleton: unknown command; see singleton --help`},
		{[]string{"status", "--frob"}, `singleton: status: unknown flag: --frob; see singleton status --help`},
		{[]string{"status"}, `singleton: status: --group is missing: give the name under which the machines compete; ` +
			`see singleton status --help`},
		{[]string{"status", "--group", "a b"}, `singleton: status: --group "a b": use 1 to 128 letters, digits, '.', '_' ` +
			`and '-', starting with a letter or digit; see singleton status --help`},
		{[]string{"status", "--group", "a", "b"}, `singleton: status: takes no arguments, 1 is given; see singleton status --help`},
		{[]string{"status", "--group", "a", "--store", "memory:"}, `singleton: status: --store memory: lives inside of one ` +
			`running cron process; nobody else can look into it; see singleton status --help`},
		{[]string{"history", "--group", "a", "--limit", "0"}, `singleton: history: --limit 0 is less than 1; --all prints all; ` +
			`see singleton history --help`},
		{[]string{"history", "--group", "a", "x/y"}, `singleton: history: the argument is no job name: use 1 to 128 letters, ` +
			`digits, '.', '_' and '-'; see singleton history --help`},
		{[]string{"cron", "--group", "a"}, `singleton: cron: FILE is missing; see singleton cron --help`},
		{[]string{"cron", "--group", "a", "--overlap", "forbid", "f"}, `singleton: cron: --overlap: unknown value "forbid"; ` +
			`one of skip, queue, replace, allow; see singleton cron --help`},
		{[]string{"cron", "--group", "a", "--lease", "100", "f"}, `singleton: cron: --lease: "100" is not a duration such as ` +
			`90s or 1h30m; see singleton cron --help`},
		{[]string{"cron", "--group", "a", "--history", "x", "f"}, `singleton: cron: --history: "x" is not a whole number; ` +
			`see singleton cron --help`},
		{[]string{"cron", "--group", "a", "--seconds=perhaps", "f"}, `singleton: cron: --seconds: "perhaps" is neither true ` +
			`nor false; see singleton cron --help`},
		{[]string{"next", "--tz", "Mars", "@daily"}, `singleton: next: --tz: unknown time zone "Mars"; want an IANA name such as ` +
			`Europe/Berlin; see singleton next --help`},
		{[]string{"cron", "--group", "a", "--history", "0", "f"}, `singleton: cron: --history 0 is out of range 1-10000; ` +
			`see singleton cron --help`},
		{[]string{"cron", "--group", "a", "--grace", "0s", "f"}, `singleton: cron: --grace 0s is too short: it must be more than 0; ` +
			`see singleton cron --help`},
		{[]string{"cron", "--group", "a", "--window", "-1h", "f"}, `singleton: cron: --window -1h is too short: it must be ` +
			`more than 0; see singleton cron --help`},
		{[]string{"cron", "--group", "a", "--catch-up-max", "0", "f"}, `singleton: cron: --catch-up-max 0 is out of range ` +
			`1-10000; see singleton cron --help`},
		{[]string{"cron", "--group", "a", "--catch-up", "all", "--overlap", "skip", "f"}, `singleton: cron: --catch-up=all does ` +
			`not go with --overlap=skip: the ticks to make up wait for one another; say queue or allow; see singleton cron --help`},
		{[]string{"validate", "no-such-file"}, `singleton: validate: the crontab cannot be read: open no-such-file: no such file ` +
			`or directory`},
		{[]string{"next"}, `singleton: next: SPEC is missing; see singleton next --help`},
		{[]string{"next", "*", "*", "*", "*", "*"}, `singleton: next: takes one SPEC, 5 arguments are given; put quotes around ` +
			`the whole expression; see singleton next --help`},
		{[]string{"next", "--count", "0", "@daily"}, `singleton: next: --count 0 is out of range 1-10000; see singleton next --help`},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			call(t, nil, c.args...).want(t, exitUsage, "", c.stderr+"\n")
		})
	}
}

func TestCronRefusesWhatTheSchedulerRefuses(t *testing.T) {
	file := write(t, "jobs.cron", "@daily true\n")
	for _, c := range []struct {
		flags  []string
		stderr string
	}{
		{[]string{"--lease", "100ms"}, "--lease 100ms is too short: at least 500ms"},
		{[]string{"--id", "a b"}, `--id "a b": use`},
		{[]string{"--history", "10001"}, "history 10001 is out of range"},
		{[]string{"--max-running", "-1"}, "--max-running -1 is negative"},
	} {
		r := call(t, nil, append(append([]string{"cron", "--group", "a", "--store", "memory:"}, c.flags...), file)...)
		if r.code != exitUsage || !strings.Contains(r.stderr, c.stderr) || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("%v: exit code %d, %s", c.flags, r.code, r.stderr)
		}
	}
}

// TestEveryCommandExplainsItself reads the help of every command.
func TestEveryCommandExplainsItself(t *testing.T) {
	root := (&app{}).newRootCommand()
	for _, c := range append(root.Commands(), root) {
		if c.Short == "" || c.Long == "" || c.Example == "" {
			t.Errorf("%s has no short or long text, or no example", c.CommandPath())
		}
		for text := range strings.Lines(c.Long + "\n" + c.Example) {
			if len(text) > 130 {
				t.Errorf("help of %s has a long line: %s", c.CommandPath(), text)
			}
		}
	}
	r := call(t, nil, "cron", "--help")
	if r.code != 0 || !strings.Contains(r.stdout, "SINGLETON_JOB") || !strings.Contains(r.stdout, "--catch-up-max") || r.stderr != "" {
		t.Errorf("cron --help: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	for _, option := range []string{"name", "overlap", "catch-up", "catch-up-max", "window", "on-interrupt", "timeout", "retry", "retry-delay", "jitter"} {
		if !strings.Contains(r.stdout, "\n  "+option+"=") {
			t.Errorf("cron --help lacks the option %s:\n%s", option, r.stdout)
		}
	}
	for _, end := range []string{"made up (default 24h)\n", "after a stop (default 25s)\n", "  --seconds    ", "no limit (default 64)\n"} {
		if !strings.Contains(r.stdout, end) {
			t.Errorf("cron --help has no %q:\n%s", end, r.stdout)
		}
	}
	if r := call(t, nil, "--help"); r.code != 0 || !strings.Contains(r.stdout, "singleton [command] --help") {
		t.Errorf("--help: exit code %d\n%s", r.code, r.stdout)
	}
}

// TestDocumentationNamesEveryFlag compares docs/cli.md with the commands.
func TestDocumentationNamesEveryFlag(t *testing.T) {
	data, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	each := func(c *cobra.Command) {
		_, section, found := strings.Cut(text, "\n## singleton "+c.Name()+"\n")
		if !found {
			t.Errorf("docs/cli.md has no section for %s", c.Name())
			return
		}
		section, _, _ = strings.Cut(section, "\n## ")
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if f.Name != "help" && !strings.Contains(section, "--"+f.Name+"`") && !strings.Contains(section, "--"+f.Name+" ") {
				t.Errorf("docs/cli.md: section %s lacks --%s", c.Name(), f.Name)
			}
		})
	}
	for _, c := range (&app{}).newRootCommand().Commands() {
		if c.Name() != "help" {
			each(c)
		}
	}
}

// TestSEC9ErrorsAreOneSafeLine reports an error whose text came from a server.
func TestSEC9ErrorsAreOneSafeLine(t *testing.T) {
	var stderr bytes.Buffer
	a := &app{stderr: &stderr}
	root := a.newRootCommand()
	status, _, err := root.Find([]string{"status"})
	if err != nil {
		t.Fatal(err)
	}
	code := a.report(status, store.Permanent("do this", errors.Join(errors.New("a\x1b[2J\tb"), errors.New("\u202ec\r"))))
	if want := "singleton: status: a\\x1b[2J b; \\u202ec\\r: do this\n"; code != exitFailed || stderr.String() != want {
		t.Errorf("exit code %d, got %q, want %q", code, stderr.String(), want)
	}
}
