package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/crontab"
	"github.com/go-singleton/singleton/scheduler"
)

// accepts validates a crontab and returns what is printed about its jobs.
func accepts(t *testing.T, text string, flags ...string) string {
	t.Helper()
	r := callWith(t, text, nil, append(append([]string{"validate", "--json"}, flags...), "-")...)
	if r.code != 0 {
		t.Errorf("%q: exit code %d\n%s", text, r.code, r.stderr)
	}
	return r.stdout
}

// refuses validates a crontab that is wrong, and looks for the reason.
func refuses(t *testing.T, text, reason string, flags ...string) {
	t.Helper()
	r := callWith(t, text, nil, append(append([]string{"validate"}, flags...), "-")...)
	if r.code != exitUsage || !strings.Contains(r.stderr, reason) {
		t.Errorf("%q: exit code %d, no %q in\n%s", text, r.code, reason, r.stderr)
	}
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("no %q in:\n%s", part, text)
		}
	}
}

// job reads the one job of a crontab with the policies that cron has by default.
func job(t *testing.T, text string) (crontab.Job, scheduler.Job) {
	t.Helper()
	file, err := crontab.Parse("f", []byte(text), crontab.Options{})
	if err != nil || len(file.Jobs) != 1 {
		t.Fatal(err)
	}
	return file.Jobs[0], schedulerJob(file.Jobs[0], nil)
}

const migrationJobs = `MAILTO=a@example.org
MAILFROM=b@example.org
A=b
#: name=percent
* * * * * * echo 100%; echo '\%'
#: name=stdin
* * * * * * cat; echo end of input
#: name=env
* * * * * * echo $A $INHERITED $SINGLETON_JOB ${SINGLETON_ID-none}; pwd
#: name=back
* * * * * * echo group $$; sleep 1000 &
#: name=long
* * * * * * trap 'echo told to end; exit 0' TERM; sleep 1000 & wait
`

// TestMigration shows what each row of docs/migration.md says of singleton.
func TestMigration(t *testing.T) {
	t.Parallel()
	file := write(t, "jobs.cron", migrationJobs)
	p := start(t, []string{"INHERITED=yes", "SINGLETON_ID=web"}, "cron", "--group", "g", "--seconds", "--store", "memory:", "--lease", "2s",
		"--grace", "1s", file)
	rows := map[string]func(t *testing.T){
		"time zone": func(t *testing.T) { // call runs in Europe/Berlin
			has(t, accepts(t, "0 3 * * * true\n"), `"zone":"UTC"`, `T03:00:00Z`)
			has(t, accepts(t, "CRON_TZ=Asia/Tokyo\n0 3 * * * true\n"), `"zone":"Asia/Tokyo"`, `T18:00:00Z`)
			has(t, accepts(t, "0 3 * * * true\n", "--tz", "Asia/Tokyo"), `"zone":"Asia/Tokyo"`)
		},
		"seconds": func(t *testing.T) {
			has(t, accepts(t, "*/10 * * * * * true\n", "--seconds"), `T12:00:10Z`)
			refuses(t, "*/10 * * * * * true\n", "six fields, which has two readings: seconds first (say --seconds), or year last (not supported)")
			refuses(t, "0 0 3 * * * 2027 true\n", "seven fields", "--seconds")
			refuses(t, "0 0 3 * * * 2027 true\n", "six fields")
		},
		"@reboot": func(t *testing.T) { refuses(t, "@reboot true\n", "has no boot to follow") },
		"@every":  func(t *testing.T) { has(t, accepts(t, "@every 90s true\n"), `T12:01:30Z`) },
		"user column": func(t *testing.T) {
			refuses(t, "0 3 * * * root /bin/clean\n", "looks like the user column of a system crontab")
		},
		"percent sign": func(t *testing.T) {
			p.await("job=percent", `line=100%`)
			p.await("job=percent", `line=\%`)
		},
		"standard input": func(t *testing.T) { p.await("job=stdin", `line="end of input"`) },
		"mail": func(t *testing.T) {
			p.await("no mail is sent; the output of jobs goes to the log")
			if n := p.count("no mail is sent"); n != 1 {
				t.Errorf("%d notices", n)
			}
		},
		"environment": func(t *testing.T) { p.await("job=env", `line="b yes env none"`) },
		"working directory": func(t *testing.T) {
			dir, err := os.Getwd()
			if err != nil {
				t.Fatal(err)
			}
			p.await("job=env", "line="+dir)
		},
		"overlap": func(t *testing.T) {
			p.await("ticks skipped", "job=long", "reason=overlap")
			for _, choice := range []string{"queue", "replace", "allow"} {
				accepts(t, "#: overlap="+choice+"\n@daily true\n")
			}
		},
		"missed times": func(t *testing.T) {
			_, plain := job(t, "@daily true\n")
			if plain.CatchUp != scheduler.CatchUpLatest || plain.Window != 0 { // for which the scheduler takes 24 h
				t.Errorf("%+v", plain)
			}
			accepts(t, "#: catch-up=none\n@daily true\n#: catch-up=all\n@daily false\n")
		},
		"background processes": func(t *testing.T) {
			group := p.group()
			p.await("run ended", "job=back", "outcome=succeeded")
			none(t, group)
		},
		"a changed file": func(t *testing.T) {
			rewrite(t, file, migrationJobs+"#: name=new\n@daily true\n")
			p.again(1, "added=new")
			p.signal(syscall.SIGHUP)
			p.again(2)
		},
		"a mistake in it": func(t *testing.T) {
			refuses(t, "0 25 * * * true\n61 * * * * true\n@daily true\n", ": 2 errors; 1 of 3 jobs are fine")
			rewrite(t, file, migrationJobs+"61 * * * * * true\n0 61 * * * * true\n")
			p.await("level=ERROR", "the jobs stay as they were", file+":14:1: ")
			p.await("level=ERROR", "the jobs stay as they were", file+":15:3: ")
		},
		"equal lines": func(t *testing.T) {
			refuses(t, "@daily true\n@daily true\n", "name")
			accepts(t, "#: name=first\n@daily true\n@daily true\n")
		},
		"random delay": func(t *testing.T) {
			j, s := job(t, "RANDOM_DELAY=10\n#: jitter=5m\n@daily true\n")
			if s.Jitter != 5*time.Minute || !slices.Equal(j.Env, []string{"RANDOM_DELAY=10"}) {
				t.Errorf("%+v, %v", s, j.Env)
			}
		},
		"SHELL": func(t *testing.T) {
			refuses(t, "SHELL=bash\n@daily true\n", `"bash" is not an absolute path`)
			accepts(t, "SHELL=/bin/bash\n@daily true\n")
		},
		"empty variables": func(t *testing.T) {
			if j, _ := job(t, "A=\n@daily true\n"); !slices.Equal(j.Env, []string{"A="}) {
				t.Errorf("%v", j.Env)
			}
		},
		"stopping": func(t *testing.T) {
			p.signal(syscall.SIGTERM)
			p.await("leadership is handed over")
			p.await("job=long", "command is told to end", "the grace is nearly over")
			p.await("job=long", `line="told to end"`)
			if code := p.exit(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		},
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "migration.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`(?m)^\| \*\*(.+?)\*\* \|`).FindAllStringSubmatch(string(page), -1) {
		test := rows[m[1]]
		delete(rows, m[1])
		if test == nil {
			t.Errorf("the row %q has no test", m[1])
			continue
		}
		t.Logf("row %q", m[1])
		test(t)
	}
	for name := range rows {
		t.Errorf("the test %q has no row", name)
	}
}
