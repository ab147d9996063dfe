package cli

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/crontab"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/memstore"
)

const goodCrontab = `MAILTO=ops@example.org
#: name=report overlap=queue catch-up=all catch-up-max=7 window=2h on-interrupt=rerun timeout=10m retry=3 jitter=30s
*/5 * * * *  /usr/local/bin/report --all
CRON_TZ=Europe/Berlin
SHELL=/bin/bash
#: name=backup
0 3 * * MON-FRI  backup 100%
`

func TestValidateSaysWhatAFileMeans(t *testing.T) {
	path := write(t, "jobs.cron", goodCrontab)
	const want = `JOB     SCHEDULE                    NEXT
report  every 5 minutes             2026-11-29 12:05:00 UTC
backup  at 03:00, Monday to Friday  2026-11-30 03:00:00 CET
FILE:1: MAILTO: no mail is sent; the output of jobs goes to the log
FILE: 2 jobs are fine
`
	call(t, nil, "validate", path).want(t, 0, strings.ReplaceAll(want, "FILE", path), "")

	if err := os.Chmod(path, 0o666); err != nil {
		t.Fatal(err)
	}
	const notice = "FILE: everybody on this machine may write to it, and so run commands; chmod o-w it\n"
	whole := strings.Replace(want, "FILE: 2", notice+"FILE: 2", 1)
	call(t, nil, "validate", path).want(t, 0, strings.ReplaceAll(whole, "FILE", path), "")

	empty := write(t, "empty.cron", "# nothing\n")
	call(t, nil, "validate", empty).want(t, 0, empty+": 0 jobs are fine\n", "")
}

func TestValidateReadsStandardInput(t *testing.T) {
	callWith(t, "#: name=a\n@daily true\n*/61 * * * * b\n", nil, "validate", "-").want(t, 0, `JOB         SCHEDULE        NEXT
a           daily at 00:00  2026-11-30 00:00:00 UTC
b-55dd9c6c  hourly          2026-11-29 13:00:00 UTC
stdin:3: minute: "*/61" means 0 only: its step is larger than the field
stdin: 2 jobs are fine
`, "")
	callWith(t, "0 25 * * * true\n", nil, "validate", "-").want(t, exitUsage, "",
		"stdin:1:3: hour: \"25\" is out of range 0-23\n  1 | 0 25 * * * true\n    |   ^^\nstdin: 1 error; 0 of 1 jobs are fine\n")
	if r := call(t, nil, "cron", "--group", "g", "-"); r.code != exitUsage || !strings.Contains(r.stderr, "cannot be read: open -: ") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
}

func TestValidateForPrograms(t *testing.T) {
	path := write(t, "jobs.cron", goodCrontab)
	const want = `{"name":"report","line":3,"spec":"*/5 * * * *","zone":"UTC","description":"every 5 minutes","next":"2026-11-29T12:05:00Z",` +
		`"command":"/usr/local/bin/report --all","shell":"/bin/sh","overlap":"queue","catch_up":"all","catch_up_max":7,` +
		`"window_seconds":7200,"on_interrupt":"rerun","timeout_seconds":600,"retry":3,"retry_delay_seconds":1,"jitter_seconds":30}
{"name":"backup","line":7,"spec":"0 3 * * MON-FRI","zone":"Europe/Berlin","description":"at 03:00, Monday to Friday",` +
		`"next":"2026-11-30T02:00:00Z","command":"backup 100%","shell":"/bin/bash","overlap":"skip","catch_up":"latest",` +
		`"catch_up_max":100,"window_seconds":86400,"on_interrupt":"record","timeout_seconds":0,"retry":1,"retry_delay_seconds":0,"jitter_seconds":0}
`
	call(t, nil, "validate", "--json", path).want(t, 0, want, path+":1: MAILTO: no mail is sent; the output of jobs goes to the log\n")
}

func TestValidateTakesTheDefaultsOfCron(t *testing.T) {
	path := write(t, "jobs.cron", "#: name=a overlap=skip\n@daily true\n")
	r := call(t, nil, "validate", "--catch-up", "all", path)
	if r.code != exitUsage || !strings.Contains(r.stderr, ":1:19: overlap: skip does not go with catch-up=all") {
		t.Errorf("exit code %d\n%s", r.code, r.stderr)
	}
	r = call(t, map[string]string{"SINGLETON_CATCH_UP": "all", "SINGLETON_SECONDS": "true", "SINGLETON_TZ": "Asia/Tokyo"},
		"validate", "--json", write(t, "jobs.cron", "30 0 3 * * * true\n"))
	if r.code != 0 || !strings.Contains(r.stdout, `"next":"2026-11-29T18:00:30Z"`) || !strings.Contains(r.stdout, `"overlap":"queue"`) {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestB63FormsOfCrontabsAreAccepted validates files as other systems write them.
func TestB63FormsOfCrontabsAreAccepted(t *testing.T) {
	for name, text := range map[string]string{
		"empty value":      "FOO=\n@daily true\n",
		"carriage returns": "FOO=bar\r\n@daily true\r\n",
		"byte order mark":  "\ufeff@daily true\n",
		"no final newline": "@daily true",
		"tabs":             "0\t3\t*\t*\t*\ttrue\n",
	} {
		path := write(t, "jobs.cron", text)
		if r := call(t, nil, "validate", path); r.code != 0 || !strings.HasSuffix(r.stdout, path+": 1 job is fine\n") || r.stderr != "" {
			t.Errorf("%s: exit code %d\n%s%s", name, r.code, r.stdout, r.stderr)
		}
	}
	path := write(t, "jobs.cron", "*/10 * * * * * cmd\n")
	r := call(t, nil, "validate", path)
	if r.code != exitUsage || !strings.Contains(r.stderr, "seconds first (say --seconds), or year last (not supported)") {
		t.Errorf("six fields: exit code %d\n%s", r.code, r.stderr)
	}
	if r := call(t, nil, "validate", "--seconds", path); r.code != 0 {
		t.Errorf("six fields with --seconds: exit code %d\n%s", r.code, r.stderr)
	}
}

// TestB64AllErrorsOfAFileAtOnce compares the whole output of validate; cron refuses the file in the same words.
func TestB64AllErrorsOfAFileAtOnce(t *testing.T) {
	path := write(t, "jobs.cron", `# comment
@daily fine
0 25 * * *  /usr/local/bin/invoice
*/10 * * * * *  curl -fsS https://example.org/ping
#: name=sync overlap=forbid
@hourly sync
`)
	const want = `FILE:3:3: hour: "25" is out of range 0-23
  3 | 0 25 * * *  /usr/local/bin/invoice
    |   ^^
FILE:4:1: six fields, which has two readings: seconds first (say --seconds), or year last (not supported)
  4 | */10 * * * * *  curl -fsS https://example.org/ping
    | ^^^^^^^^^^^^^^
FILE:5:22: overlap: unknown policy "forbid"; one of skip, queue, replace, allow
  5 | #: name=sync overlap=forbid
    |                      ^^^^^^
FILE: 3 errors; 1 of 4 jobs are fine
`
	call(t, nil, "validate", path).want(t, exitUsage, "", strings.ReplaceAll(want, "FILE", path))
	call(t, nil, "cron", "--group", "a", "--store", "memory:", path).want(t, exitUsage, "", strings.ReplaceAll(want, "FILE", path))
}

// TestWhatValidatePassesTheSchedulerTakes adds jobs with every policy to a scheduler.
func TestWhatValidatePassesTheSchedulerTakes(t *testing.T) {
	s, err := scheduler.New(memstore.New(), scheduler.Config{Group: "g"})
	if err != nil {
		t.Fatal(err)
	}
	for _, overlap := range []string{"", "skip", "queue", "replace", "allow"} {
		for _, catchUp := range []string{"", "none", "latest", "all"} {
			for _, onInterrupt := range []string{"", "record", "rerun"} {
				r := reading{crontab.Options{Policies: crontab.Policies{
					Overlap: overlap, CatchUp: catchUp, OnInterrupt: onInterrupt, CatchUpMax: 10_000, Window: 1,
					Retry: 100, RetryDelay: time.Hour, Jitter: 1,
				}}}
				name := strings.Join([]string{"j", overlap, catchUp, onInterrupt}, "-")
				path := write(t, "jobs.cron", "#: name="+name+"\n@daily true\n")
				if r.check() != nil {
					continue
				}
				file, _, err := r.readCrontab(path)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if err := s.Add(schedulerJob(file.Jobs[0], (&commands{}).do(file.Jobs[0]))); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if n := len(s.Jobs()); n != 5*4*3-6 {
		t.Errorf("%d jobs were added", n)
	}
}
