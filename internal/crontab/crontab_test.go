package crontab

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

var update = flag.Bool("update", false, "write the golden files in testdata")

// golden compares got with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = "testdata/" + name
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("not what %s says; got:\n%s", name, got)
	}
}

func parse(t *testing.T, text string, opts Options) *File {
	t.Helper()
	f, err := Parse("jobs.cron", []byte(text), opts)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// reasons returns "line:column+length: reason" of each fault.
func reasons(t *testing.T, text string, opts Options) []string {
	t.Helper()
	f, err := Parse("jobs.cron", []byte(text), opts)
	all, ok := errors.AsType[*Errors](err)
	if !ok {
		t.Fatalf("%q: got %v, want *Errors", text, err)
	}
	if f != nil {
		t.Errorf("%q: a file and an error", text)
	}
	var list []string
	for _, e := range all.List {
		list = append(list, fmt.Sprintf("%d:%d+%d: %s", e.Line, e.Column, e.Length, e.Reason))
	}
	return list
}

func TestB64AllErrorsAtOnceWithLinesAndCarets(t *testing.T) {
	for name, opts := range map[string]Options{
		"first": {}, "faults": {}, "settings": {}, "env": {}, "tabs": {}, "long": {}, "system": {}, "seconds": {Seconds: true},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile("testdata/" + name + ".cron")
			if err != nil {
				t.Fatal(err)
			}
			_, err = Parse("jobs.cron", data, opts)
			if err == nil {
				t.Fatal("accepted")
			}
			golden(t, name+".golden", err.Error()+"\n")
		})
	}
}

func TestGoodFile(t *testing.T) {
	data, err := os.ReadFile("testdata/good.cron")
	if err != nil {
		t.Fatal(err)
	}
	f := parse(t, string(data), Options{})
	var b strings.Builder
	for _, notice := range f.Notices {
		fmt.Fprintln(&b, notice)
	}
	for _, j := range f.Jobs {
		fmt.Fprintf(&b, "\nline %d: %s\n  %s (%s)\n  %s -c %q\n  %+v\n", j.Line, j.Name, j.Spec, j.Zone, j.Shell, j.Command,
			j.Policies)
		for _, v := range j.Env {
			fmt.Fprintf(&b, "  %q\n", v)
		}
	}
	golden(t, "good.golden", b.String())
}

// TestStepsLargerThanTheirField are legal, and hardly meant.
func TestStepsLargerThanTheirField(t *testing.T) {
	f := parse(t, "*/61 * * * * a\n0 */24 */31 */12 */7 b\n5,*/99 */25 * */13 */8 c\n@every 90m d\n", Options{})
	want := []string{
		`jobs.cron:1: minute: "*/61" means 0 only: its step is larger than the field`,
		`jobs.cron:3: minute: "*/99" means 0 only: its step is larger than the field`,
		`jobs.cron:3: hour: "*/25" means 0 only: its step is larger than the field`,
		`jobs.cron:3: month: "*/13" means 1 only: its step is larger than the field`,
		`jobs.cron:3: day of week: "*/8" means 0 only: its step is larger than the field`,
	}
	if !slices.Equal(f.Notices, want) {
		t.Errorf("got %q", f.Notices)
	}
	f = parse(t, "*/90 */60 * * * * a\n", Options{Seconds: true})
	if want := []string{`jobs.cron:1: second: "*/90" means 0 only: its step is larger than the field`}; !slices.Equal(f.Notices, want) {
		t.Errorf("got %q", f.Notices)
	}
}

func TestB63OddFilesAreAccepted(t *testing.T) {
	for _, tt := range []struct {
		name, text string
	}{
		{"CRLF", "FOO=\r\n# comment\r\n\r\n#: name=a\r\n0 5 * * * cmd arg\r\n"},
		{"a byte order mark", "\ufeffFOO=\n#: name=a\n0 5 * * * cmd arg\n"},
		{"no final newline", "FOO=\n#: name=a\n0 5 * * * cmd arg"},
		{"tabs between fields", "FOO=\n#:\tname=a\n0\t5\t*\t*\t*\tcmd arg\n"},
		{"blanks everywhere", "  FOO =  \n \n  #:  name=a  \n  0  5 \t * * *   cmd arg  \n"},
		{"all of it", "\ufeffFOO=\r\n#: name=a\r\n0\t5\t*\t*\t*\tcmd arg"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := parse(t, tt.text, Options{})
			if len(f.Jobs) != 1 {
				t.Fatalf("%d jobs", len(f.Jobs))
			}
			j := f.Jobs[0]
			if j.Name != "a" || j.Spec != "0 5 * * *" || j.Command != "cmd arg" || !slices.Equal(j.Env, []string{"FOO="}) {
				t.Errorf("got %+v", j)
			}
		})
	}
	for _, text := range []string{"", "\n", "# nothing\n", "FOO=1", "\ufeff", "\r\n"} {
		if f := parse(t, text, Options{}); len(f.Jobs) != 0 {
			t.Errorf("%q has %d jobs", text, len(f.Jobs))
		}
	}
}

func TestB63SixFieldsAreRefusedNamingBothReadings(t *testing.T) {
	const want = "six fields, which has two readings: seconds first (say --seconds), or year last (not supported)"
	for _, tt := range []struct {
		text string
		n    int
	}{
		{"*/10 * * * * * cmd", 14},
		{"*/10 * * * * *", 14},
		{"0 5 * * * 2026 cmd", 14},
		{"0 5 * * * 2026-2030/2 cmd", 21},
		{"0 0 9 * * MON-FRI cmd", 17},
		{"0 0 9 * * mon,wed,5 cmd", 19},
		{"0 0 9 * * FRI#2 cmd", 15},
		{"0 0 9 * * 5L cmd", 12},
		{"0 0 9 * * sun cmd", 13},
		{"0 0 9 * * ? cmd", 11},
		{"0 0 9 * * ? 2026 cmd", 11},
	} {
		got := reasons(t, tt.text, Options{})
		if !slices.Equal(got, []string{fmt.Sprintf("1:1+%d: %s", tt.n, want)}) {
			t.Errorf("%s: %q", tt.text, got)
		}
	}
	if f := parse(t, "*/10 * * * * * cmd", Options{Seconds: true}); f.Jobs[0].Spec != "*/10 * * * * *" {
		t.Errorf("with seconds: %+v", f.Jobs[0])
	}
	for _, command := range []string{
		"*", "*/5", "5", "sun x", // only these are refused
		"*.sh", "*x y", "7z x", "sun", "Mon", "sunday x", "monit status", "./5 x", "'5' x", "5.sh", "2to3 x", "/bin/5", "@x", "?x", "L", "-", "1-a",
	} {
		refused := slices.Contains([]string{"*", "*/5", "5", "sun x"}, command)
		_, err := Parse("jobs.cron", []byte("0 5 * * * "+command), Options{})
		if (err != nil) != refused {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestB73RebootAndUserColumnAreRefused(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"@reboot cmd", "1:1+7: @reboot: a job that runs on one of many machines has no boot to follow"},
		{"0 5 * * * root cmd", `1:11+4: "root" looks like the user column of a system crontab; jobs run as the user that runs this program: leave it out`},
		{"@daily\twww-data\tcmd", `1:8+8: "www-data" looks like the user column of a system crontab; jobs run as the user that runs this program: leave it out`},
	} {
		if got := reasons(t, tt.text, Options{}); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: %q", tt.text, got)
		}
	}
	for _, command := range []string{"root", "root -b", "/usr/bin/root x", "rooter x", "postgres -D /data", "git pull", "sudo -u root x"} {
		if f := parse(t, "0 5 * * * "+command, Options{}); f.Jobs[0].Command != command {
			t.Errorf("%s: %q", command, f.Jobs[0].Command)
		}
	}
}

func TestB73PercentIsAnOrdinaryCharacter(t *testing.T) {
	const command = `date +\%F; printf '%s%%' x % y`
	if f := parse(t, "0 5 * * * "+command, Options{}); f.Jobs[0].Command != command {
		t.Errorf("got %q", f.Jobs[0].Command)
	}
}

func TestB73MailMakesOneNotice(t *testing.T) {
	f := parse(t, "# x\nMAILTO=a\n0 5 * * * a\nMAILTO=\nMAILFROM=b\n0 5 * * * b\n", Options{})
	if !slices.Equal(f.Notices, []string{"jobs.cron:2: MAILTO: no mail is sent; the output of jobs goes to the log"}) {
		t.Errorf("got %q", f.Notices)
	}
	if f := parse(t, "0 5 * * * a\n", Options{}); len(f.Notices) != 0 {
		t.Errorf("got %q", f.Notices)
	}
}

func TestB60BadSchedulesAreRefusedWithTheirPlace(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"60 * * * * cmd", `1:1+2: minute: "60" is out of range 0-59`},
		{"0 0 32 * * cmd", `1:5+2: day of month: "32" is out of range 1-31`},
		{"\t0\t \t0  32 * * cmd", `1:9+2: day of month: "32" is out of range 1-31`},
		{"*/0 * * * * cmd", `1:3+1: minute: the step "0" is less than 1`},
		{"1-5/ * * * * cmd", `1:4+1: minute: a step is missing after "/"`},
		{", * * * * cmd", `1:1+1: minute: an entry of the list is empty`},
		{"* * * *", "1:8+0: too short: a job has 5 fields and a command, 6 words at least"},
		{"* * * * *", "1:10+0: too short: a job has 5 fields and a command, 6 words at least"},
		{"* * * * /bin/x", `1:9+6: "/bin/x" looks like a command, after 4 of the 5 fields of a job`},
		{"* * * ./x y z", `1:7+3: "./x" looks like a command, after 3 of the 5 fields of a job`},
		{"@every", "1:1+6: interval: @every needs a duration, such as @every 90s or @every 1h30m"},
		{"@every  -1h cmd", "1:9+3: interval: -1h is shorter than one second"},
		{"TZ=UTC * * * * * cmd", "1:4+17: TZ: a zone is one word; for the jobs below, write CRON_TZ=UTC on a line of its own"},
		{"0 0 30 2 * cmd", "1:5+2: day of month: never fires: no such day in any of its months"},
		{"0 0 * * " + strings.Repeat("1,", 600) + "1 cmd", "1:1025+185: longer than 1024 bytes"},
		{"0\u00a05 * * * cmd x", `1:2+2: "\u00a0" has no place in a schedule; its fields are divided by blanks or tabs`},
		{"# ok\n0 5 * * * a\x00b", "2:12+1: a NUL byte: this is no text in UTF-8"},
	} {
		if got := reasons(t, tt.text, Options{}); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%q: %q", tt.text, got)
		}
	}
	if got := reasons(t, strings.Repeat("#\n", MaxSize), Options{}); !slices.Equal(got,
		[]string{"1:1+0: 2097152 bytes; a crontab has at most 1048576"}) {
		t.Errorf("a file that is too large: %q", got)
	}
}

func TestAssignmentsHoldForTheJobsBelow(t *testing.T) {
	f := parse(t, "0 1 * * * a\nX=1\n0 2 * * * b\nX=2\nCRON_TZ=Asia/Tokyo\nSHELL=/bin/bash\n0 3 * * * c\n", Options{})
	for i, want := range []struct {
		env         []string
		zone, shell string
	}{
		{nil, "UTC", "/bin/sh"},
		{[]string{"X=1"}, "UTC", "/bin/sh"},
		{[]string{"CRON_TZ=Asia/Tokyo", "SHELL=/bin/bash", "X=2"}, "Asia/Tokyo", "/bin/bash"},
	} {
		j := f.Jobs[i]
		if !slices.Equal(j.Env, want.env) || j.Zone.String() != want.zone || j.Shell != want.shell {
			t.Errorf("job %d: %q, %s, %s", i, j.Env, j.Zone, j.Shell)
		}
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	if got := f.Jobs[2].Expr.Next(at).UTC(); !got.Equal(at.Add(18 * time.Hour)) {
		t.Errorf("03:00 in Tokyo is %v", got)
	}
}

func TestZoneOfTheFile(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	f := parse(t, "0 1 * * * a\nCRON_TZ=UTC\n0 1 * * * b\nCRON_TZ=\n0 1 * * * c\n", Options{Zone: berlin})
	for i, want := range []string{"Europe/Berlin", "UTC", "Europe/Berlin"} {
		if got := f.Jobs[i].Zone.String(); got != want {
			t.Errorf("job %d: %s, want %s", i, got, want)
		}
	}
}

func TestNamesOfJobsWithoutOne(t *testing.T) {
	// These names are in users' ledgers: another hash would rename their jobs.
	for _, tt := range []struct{ text, want string }{
		{"0 5 * * * /usr/local/bin/invoice --all", "invoice-e152b8f9"},
		{"0  5 *\t* * /usr/local/bin/invoice --all  ", "invoice-e152b8f9"},
		{"CRON_TZ=Europe/Berlin\n0 5 * * * /usr/local/bin/invoice --all", "invoice-b5d8819f"},
		{"@daily /usr/local/bin/invoice --all", "invoice-f42e16c3"},
		{"@daily /usr/local/bin/invoice", "invoice-d05d825e"},
		{"@daily A=1 B=/x/y /opt/My_Tool.sh", "my_tool.sh-ad886285"},
		{"@daily [ -e x ] && y", "job-51db03b4"},
		{"@daily A=1", "job-182568f6"},
		{`@daily "/opt/my tool" x`, "my-7bb51a8e"},
		{"@daily übung x", "bung-9175cc57"},
		{"@daily " + strings.Repeat("x-", 40), "x-x-x-x-x-x-x-x-x-x-x-x-x-x-x-x-fcf1428e"},
	} {
		if got := parse(t, tt.text, Options{}).Jobs[0].Name; got != tt.want {
			t.Errorf("%s: %q", tt.text, got)
		}
	}
}

func TestPoliciesOfTheFile(t *testing.T) {
	defaults := Policies{Overlap: "queue", CatchUp: "all", CatchUpMax: 7, Window: time.Hour, OnInterrupt: "rerun", Timeout: time.Minute,
		Retry: 2, RetryDelay: time.Second, Jitter: time.Hour}
	f := parse(t, "0 5 * * * a\n#: overlap=allow catch-up=none window=2h retry=3 retry-delay=10s jitter=30s\n0 5 * * * b", Options{Policies: defaults})
	if got := f.Jobs[0].Policies; got != defaults {
		t.Errorf("without options: %+v", got)
	}
	want := defaults
	want.Overlap, want.CatchUp, want.Window = "allow", "none", 2*time.Hour
	want.Retry, want.RetryDelay, want.Jitter = 3, 10*time.Second, 30*time.Second
	if got := f.Jobs[1].Policies; got != want {
		t.Errorf("with options: %+v, want %+v", got, want)
	}
	if got := parse(t, "0 5 * * * a", Options{}).Jobs[0].Policies; got != (Policies{}) {
		t.Errorf("with nothing: %+v", got)
	}
}

func TestCatchUpAllDoesNotGoWithSkipAndReplace(t *testing.T) {
	const why = " does not go with overlap=skip: the ticks to make up wait for one another; say overlap=queue or allow"
	for _, tt := range []struct {
		text string
		opts Policies
		want string
	}{
		{"#: catch-up=all overlap=skip\n0 5 * * * a", Policies{}, "1:13+3: catch-up: all" + why},
		{"#: overlap=skip\n#: catch-up=all\n0 5 * * * a", Policies{}, "2:13+3: catch-up: all" + why},
		{
			"#: catch-up=all\n0 5 * * * a", Policies{Overlap: "skip"},
			"1:13+3: catch-up: all" + why + " here, because skip is the default given for the whole file",
		},
		{
			"#: overlap=skip\n0 5 * * * a", Policies{CatchUp: "all"},
			"1:12+4: overlap: skip does not go with catch-up=all, the default given for the whole file; say overlap=queue or allow",
		},
		{
			"#: catch-up=all overlap=replace\n0 5 * * * a", Policies{},
			"1:13+3: catch-up: all" + strings.ReplaceAll(why, "skip", "replace"),
		},
		{
			"#: catch-up=all\n0 5 * * * a", Policies{Overlap: "replace"},
			"1:13+3: catch-up: all" + strings.ReplaceAll(why, "skip", "replace") + " here, because replace is the default given for the whole file",
		},
		{
			"#: retry-delay=10s\n0 5 * * * a", Policies{},
			"1:16+3: retry-delay: nothing is retried; say how many attempts there are in all with retry=2 or more",
		},
	} {
		if got := reasons(t, tt.text, Options{Policies: tt.opts}); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%q: %q", tt.text, got)
		}
	}
	parse(t, "#: catch-up=all\n0 5 * * * a\n#: catch-up=latest overlap=skip\n0 5 * * * b", Options{})
}

func TestBadPoliciesOfTheFileAreReportedTogether(t *testing.T) {
	_, err := Parse("jobs.cron", nil, Options{Policies: Policies{
		Overlap: "forbid", CatchUp: "some", CatchUpMax: -1, Window: -1, OnInterrupt: "stop", Timeout: -1, Retry: 101, RetryDelay: -1, Jitter: -1,
	}})
	if _, ok := errors.AsType[*Errors](err); ok || err == nil {
		t.Fatalf("got %v", err)
	}
	for _, key := range []string{"overlap", "catch-up", "catch-up-max", "window", "on-interrupt", "timeout", "retry", "retry-delay", "jitter"} {
		if !strings.Contains(err.Error(), "crontab: "+key+": ") {
			t.Errorf("nothing about %s in %v", key, err)
		}
	}
	if _, err := Parse("jobs.cron", nil, Options{Policies: Policies{Overlap: "skip", CatchUp: "all"}}); err == nil {
		t.Error("accepted catch-up=all with overlap=skip")
	}
}

func TestErrorsUnwrapToEachFault(t *testing.T) {
	_, err := Parse("jobs.cron", []byte("0 25 * * * a\nhello\n"), Options{})
	one, ok := errors.AsType[*Error](err)
	if !ok || one.Line != 1 || one.Error() != `jobs.cron:1:3: hour: "25" is out of range 0-23` {
		t.Errorf("got %v", one)
	}
}
