package cli

import (
	"bytes"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/scheduler"
)

// someHistory is what became of a job's ticks, newest first.
func someHistory() []scheduler.Entry {
	at := func(text string) time.Time {
		t, err := time.Parse(time.RFC3339Nano, "2026-11-"+text+"Z")
		if err != nil {
			panic(err)
		}
		return t
	}
	attempt := func(n int, why scheduler.Reason, tick, started, ended string, outcome scheduler.Outcome, detail string) scheduler.Entry {
		return scheduler.Entry{
			Job: "report", RunID: "report@", Tick: at(tick), LastTick: at(tick), Ticks: 1, Attempt: n, Reason: why,
			Started: at(started), Ended: at(ended), Outcome: outcome, Detail: detail, Replica: "web-2-7f3a",
		}
	}
	skip := func(first, last string, n int, why string) scheduler.Entry {
		return scheduler.Entry{Job: "report", Tick: at(first), LastTick: at(last), Ticks: n, Outcome: scheduler.Skipped, Detail: why}
	}
	return []scheduler.Entry{
		attempt(2, "rerun", "29T11:10:00", "29T11:10:04", "29T11:10:04.4", scheduler.Failed, "exit status 1\nno such host"),
		attempt(1, "schedule", "29T11:10:00", "29T11:10:00.002", "29T11:10:03", scheduler.Interrupted, "its replica's session ended"),
		skip("29T10:55:00", "29T11:05:00", 3, "overlap"),
		attempt(1, "catch-up", "29T10:50:00", "29T10:50:01.8", "29T11:09:01", scheduler.Succeeded, ""),
		attempt(1, "schedule", "28T12:00:00", "28T12:00:00", "28T12:10:00", scheduler.TimedOut, "timed out after 10 m; killed by signal 15 (terminated)"),
		attempt(1, "schedule", "28T11:00:00", "28T11:00:00", "28T11:00:00", scheduler.NotStarted, ""),
		skip("27T22:00:00", "28T10:00:00", 144, "unowned"),
		skip("27T21:00:00", "27T21:00:00", 1, "late"),
	}
}

func printHistory(t *testing.T, page historyPage) string {
	t.Helper()
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	page.now, page.zone, page.footer = noon, berlin, true
	var out bytes.Buffer
	if err := page.print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestHistoryForPeople(t *testing.T) {
	const want = `
TICK                                    ATTEMPT  WHY       LATE   TOOK   OUTCOME                                                 REPLICA
today      12:10:00                     2        rerun            0.4 s  failed: exit status 1                                   web-2-7f3a
           12:10:00                     1        schedule  2 ms          interrupted: its replica's session ended                web-2-7f3a
           11:55:00–12:05:00            -        -                       3 ticks skipped: overlap
           11:50:00                     1        catch-up  1.8 s  19 m   succeeded                                               web-2-7f3a
yesterday  13:00:00                     1        schedule  0 ms   10 m   timed out after 10 m; killed by signal 15 (terminated)  web-2-7f3a
           12:00:00                     1        schedule                not started                                             web-2-7f3a
Fri 27 Nov 23:00:00–yesterday 11:00:00  -        -                       144 ticks skipped: unowned
           22:00:00                     -        -                       1 tick skipped: late
8 of 97 entries, last ended first; --all, --failed
times are local (Europe/Berlin); --utc, --json
`
	if got := "\n" + printHistory(t, historyPage{job: "report", entries: someHistory(), found: 97}); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestHistoryOfAllJobsNamesThem(t *testing.T) {
	const want = `
TICK            JOB     ATTEMPT  WHY    LATE  TOOK   OUTCOME                REPLICA
today 12:10:00  report  2        rerun        0.4 s  failed: exit status 1  web-2-7f3a
1 of 1 entry, last ended first; --all, --failed
times are local (Europe/Berlin); --utc, --json
`
	if got := "\n" + printHistory(t, historyPage{entries: someHistory()[:1], found: 1}); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	if got := printHistory(t, historyPage{}); got != "no entries\n" {
		t.Errorf("got %q", got)
	}
}

func TestHistoryFitsItsTerminal(t *testing.T) {
	const narrow = `
TICK                  ATTEMPT  WHY       LATE   TOOK   OUTCOME
today      12:10:00   2        rerun            0.4 s  failed: exit status 1
           12:10:00   1        schedule  2 ms          interrupted: its replica…
           11:55:00…  -        -                       3 ticks skipped: overlap
           11:50:00   1        catch-up  1.8 s  19 m   succeeded
yesterday  13:00:00   1        schedule  0 ms   10 m   timed out after 10 m; ki…
           12:00:00   1        schedule                not started
Fri 27 Nov 23:00:00…  -        -                       144 ticks skipped: unown…
           22:00:00   -        -                       1 tick skipped: late
8 of 97 entries, last ended first; --all, --failed
times are local (Europe/Berlin); --utc, --json
`
	if got := "\n" + printHistory(t, historyPage{job: "report", entries: someHistory(), found: 97, columns: 80}); got != narrow {
		t.Errorf("got:\n%s\nwant:\n%s", got, narrow)
	}
	for _, columns := range []int{80, 90, 100, 120} {
		for _, job := range []string{"report", ""} {
			got := printHistory(t, historyPage{job: job, entries: someHistory(), found: 97, columns: columns})
			for l := range strings.Lines(got) {
				if n := utf8.RuneCountInString(strings.TrimRight(l, "\n")); n > columns {
					t.Errorf("%d characters on a terminal of %d:\n%s", n, columns, l)
				}
			}
			for _, what := range []string{"ATTEMPT", "LATE", "TOOK", "OUTCOME", "today", "12:10:00", "succeeded"} {
				if !strings.Contains(got, what) {
					t.Errorf("%s has been lost on a terminal of %d columns:\n%s", what, columns, got)
				}
			}
		}
	}
}

func TestFailedAttempts(t *testing.T) {
	var outcomes []scheduler.Outcome
	for _, e := range someHistory() {
		if failed(e) {
			outcomes = append(outcomes, e.Outcome)
		}
	}
	want := []scheduler.Outcome{scheduler.Failed, scheduler.Interrupted, scheduler.TimedOut, scheduler.NotStarted}
	if !slices.Equal(outcomes, want) {
		t.Errorf("got %v, want %v", outcomes, want)
	}
}

// TestHistoryShowsWhatCanBeRead spoils one entry: the others are printed, and then the error.
func TestHistoryShowsWhatCanBeRead(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	file := write(t, "jobs.cron", "#: name=tick\n* * * * * * true\n")
	p := start(t, nil, "cron", "--group", "g", "--seconds", "--lease", "500ms", "--store", server.URL(), file)
	until(t, "the end of a run is recorded", func() bool { // after a stop it would wait for another leader
		return strings.Contains(call(t, nil, "history", "--group", "g", "--store", server.URL()).stdout, "succeeded")
	})
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	if err := server.Client().HSet(t.Context(), "singleton:{g}:r:history/tick", "zzz", "x").Err(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--json"}, nil} {
		r := call(t, nil, append([]string{"history", "--group", "g", "--store", server.URL()}, args...)...)
		if r.code != exitFailed || !strings.Contains(r.stdout, "succeeded") {
			t.Errorf("exit code %d, printed %q", r.code, r.stdout)
		}
		if !strings.Contains(r.stderr, "zzz") || strings.Contains(r.stderr, "is it running") {
			t.Errorf("the error is %q", r.stderr)
		}
	}
}
