package cli

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

// ago returns noon less d.
func ago(d time.Duration) time.Time { return noon.Add(-d) }

// ended is an attempt that took a while and ended some time ago.
func ended(job string, ended, took time.Duration, outcome scheduler.Outcome, detail string) *scheduler.Entry {
	start := ago(ended + took)
	tick := start.Truncate(time.Second)
	return &scheduler.Entry{
		RunID: job + "@" + tick.Format(time.RFC3339), Job: job, Tick: tick, LastTick: tick, Ticks: 1, Attempt: 1,
		Reason: scheduler.ReasonSchedule, Token: 1795972592123456, Replica: "web-2-7f3a", Started: start, Ended: ago(ended),
		Outcome: outcome, Detail: detail, Sequence: 7,
	}
}

// someStatus has one job of each kind.
func someStatus() scheduler.Status {
	report := ended("report", 228*time.Second, 400*time.Millisecond, scheduler.Failed, "exit status 1\nno such host")
	report.Attempt = 3
	return scheduler.Status{
		Group:    "billing",
		Leader:   store.Leader{Replica: "web-2-7f3a", Token: 1795972592123456, Remaining: 12_400 * time.Millisecond},
		Lease:    15 * time.Second,
		Replicas: []store.Replica{{ID: "web-1-c01d"}, {ID: "web-2-7f3a"}, {ID: "web-3-90be"}},
		Jobs: []scheduler.JobStatus{
			{Name: "broken", Spec: "??", Zone: "UTC", Problem: "its record cannot be read"},
			{Name: "cleanup", Spec: "*/10 * * * *", Zone: "UTC", Next: noon.Add(3 * time.Minute),
				Last: ended("cleanup", 401*time.Second, 2*time.Second, scheduler.Succeeded, "")},
			{Name: "export", Spec: "@hourly", Zone: "UTC", Next: noon.Add(43 * time.Minute)},
			{Name: "fresh", Spec: "0 0 1 1 *", Zone: "Europe/Berlin", Next: time.Date(2026, 12, 31, 23, 0, 0, 0, time.UTC)},
			{Name: "gone", Spec: "@daily", Zone: "UTC", Next: noon.Add(12 * time.Hour), Unowned: ago(90 * time.Minute)},
			{Name: "invoice", Spec: "0 3 * * *", Zone: "Asia/Tokyo", Next: noon.Add(6 * time.Hour),
				Last: ended("invoice", 18*time.Hour, 41*time.Second, scheduler.Succeeded, "")},
			{Name: "late", Spec: "@hourly", Zone: "UTC", Next: noon.Add(time.Hour), Overdue: ago(20 * time.Second),
				Last: ended("late", time.Hour, time.Second, scheduler.Succeeded, "")},
			{Name: "left", Spec: "@hourly", Zone: "UTC", Next: noon.Add(time.Hour)},
			{Name: "report", Spec: "*/5 * * * *", Zone: "UTC", Next: noon.Add(72 * time.Second), Last: report, Overdue: ago(20 * time.Hour)},
			{Name: "retried", Spec: "*/5 * * * * *", Zone: "UTC", Next: noon.Add(300 * time.Millisecond)},
			{Name: "slow", Spec: "* * * * *", Zone: "UTC", Next: noon.Add(time.Minute),
				Last:    ended("slow", 5*time.Minute, 4*time.Minute, scheduler.Succeeded, ""),
				Skipped: &scheduler.Entry{Job: "slow", Tick: ago(8 * time.Minute), LastTick: ago(6 * time.Minute), Ticks: 3, Outcome: scheduler.Skipped, Detail: "overlap"}},
			{Name: "two", Spec: "label of its own", Zone: "UTC"},
		},
		Running: []scheduler.Entry{
			{RunID: "export@2026-11-29T11:48:00Z", Job: "export", Tick: ago(12 * time.Minute), Attempt: 1, Replica: "web-1-c01d", Started: ago(12 * time.Minute)},
			{RunID: "left@2026-11-29T11:59:00Z", Job: "left", Tick: ago(time.Minute), Attempt: 2, Replica: "web-4-77d2", Started: ago(time.Minute)},
			{RunID: "retried@2026-11-29T11:59:55Z", Job: "retried", Tick: ago(5 * time.Second), Attempt: 2},
			{RunID: "two@2026-11-29T11:00:00Z", Job: "two", Tick: ago(time.Hour), Attempt: 1, Replica: "web-1-c01d", Started: ago(time.Hour)},
			{RunID: "two@2026-11-29T11:30:00Z", Job: "two", Tick: ago(30 * time.Minute), Attempt: 1, Replica: "web-3-90be", Started: ago(30 * time.Minute)},
		},
	}
}

func printStatus(t *testing.T, st scheduler.Status, zone string) string {
	t.Helper()
	loc, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (&statusPage{Status: st, now: noon, zone: loc, footer: true}).print(&out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestStatusForPeople(t *testing.T) {
	const want = `billing: web-2-7f3a leads; lease renewed 2.6 s ago, 12.4 s left
3 replicas: web-1-c01d, web-2-7f3a, web-3-90be
4 of 12 jobs need attention

JOB      SCHEDULE                     NEXT             LAST                               STATE
broken   ??                           -                -                                  not scheduled: its record cannot be read
cleanup  every 10 minutes             in 3 m           succeeded 6 m 41 s ago, 2 s
export   hourly                       in 43 m          running for 12 m on web-1-c01d
fresh    at 00:00, on 1 January       Fri 1 Jan 00:00  -
gone     daily at 00:00 (UTC)         -                -                                  no leader has it, for 1 h 30 m
invoice  daily at 03:00 (Asia/Tokyo)  in 6 h           succeeded 18 h ago, 41 s
late     hourly                       in 1 h           succeeded 1 h ago, 1 s             overdue since 12:59:40
left     hourly                       in 1 h           open on web-4-77d2, which is gone  the leader records how it ended
report   every 5 minutes              in 1 m 12 s      failed 3 m 48 s ago                overdue since yesterday 17:00:00, exit status 1, attempt 3
retried  every 5 seconds              now              attempt 2 is about to start        attempt 2
slow     every minute                 in 1 m           succeeded 5 m ago, 4 m             then 3 ticks skipped: overlap
two      label of its own             -                running for 30 m on web-3-90be     2 runs are open
times are local (Europe/Berlin); --utc, --json
`
	if got := printStatus(t, someStatus(), "Europe/Berlin"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestStatusOfAnUnknownTime is that of a store that says how long a lease is left at most, and no more.
func TestStatusOfAnUnknownTime(t *testing.T) {
	st := someStatus()
	st.Leader.Remaining = 10 * time.Second
	p := statusPage{Status: st, whole: true}
	if got, want := p.leader(), "billing: web-2-7f3a leads; at most 10 s left"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStatusWithoutLeader(t *testing.T) {
	st := scheduler.Status{Group: "billing", Replicas: []store.Replica{{ID: "web-3-90be"}}}
	if got, want := printStatus(t, st, "UTC"), "billing: NO LEADER\n1 replica: web-3-90be\nno jobs are known yet\n"; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	st.Replicas = nil
	st.Jobs = someStatus().Jobs[1:2]
	const want = `billing: NO LEADER
no replicas: start its replicas, such as singleton cron --group billing, or look whether the name is right
1 job; nobody fires it

JOB      SCHEDULE          NEXT  LAST                         STATE
cleanup  every 10 minutes  -     succeeded 6 m 41 s ago, 2 s
times are UTC; --json
`
	if got := printStatus(t, st, "UTC"); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	st.Running = []scheduler.Entry{{Job: "cleanup", Attempt: 1, Replica: "web-3-90be", Started: ago(time.Minute)}}
	const open = "cleanup  every 10 minutes  -     open on web-3-90be, which is gone  the next leader records how it ended\n"
	if got := printStatus(t, st, "UTC"); !strings.Contains(got, open) {
		t.Errorf("got:\n%s\nwant:\n%s", got, open)
	}
}

func TestHeadOfTheStatus(t *testing.T) {
	jobs := someStatus().Jobs
	for _, c := range []struct {
		leads bool
		jobs  []scheduler.JobStatus
		want  string
	}{
		{true, jobs[1:2], "1 job, all is well"},
		{true, jobs[1:3], "2 jobs, all is well"},
		{true, jobs[0:2], "1 of 2 jobs needs attention"},
		{true, jobs, "4 of 12 jobs need attention"},
		{false, jobs[1:2], "1 job; nobody fires it"},
		{false, jobs[1:3], "2 jobs; nobody fires them"},
		{false, jobs[0:2], "1 of 2 jobs needs attention; nobody fires them"},
		{false, jobs, "4 of 12 jobs need attention; nobody fires them"},
	} {
		p := statusPage{Status: scheduler.Status{Jobs: c.jobs}}
		if c.leads {
			p.Leader.Replica = "web-2-7f3a"
		}
		if got := p.attention(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestWhatNeedsAttention(t *testing.T) {
	for _, c := range []struct {
		outcome scheduler.Outcome
		running string // its open run
		want    bool
	}{
		{scheduler.Succeeded, "", false},
		{scheduler.Failed, "", true},
		{scheduler.Failed, "a@2026-11-29T11:00:00Z", false}, // it is tried again
		{scheduler.Failed, "a@2026-11-29T11:05:00Z", true},
		{scheduler.TimedOut, "", true},
		{scheduler.Interrupted, "", true},
		{scheduler.Interrupted, "a@2026-11-29T11:00:00Z", false},
		{scheduler.NotStarted, "", true},
		{scheduler.Cancelled, "", false},
	} {
		j := scheduler.JobStatus{Name: "a", Last: &scheduler.Entry{RunID: "a@2026-11-29T11:00:00Z", Job: "a", Outcome: c.outcome}}
		st := scheduler.Status{Jobs: []scheduler.JobStatus{j}, Running: []scheduler.Entry{{RunID: c.running, Job: "a"}}}
		if got := needsAttention(st, j); got != c.want {
			t.Errorf("%s with %q open: %v", c.outcome, c.running, got)
		}
	}
}

// hostile is what somebody who may write to the store could put there.
const hostile = "x\x1b]0;owned\x07\u009b2J\u202e\nline\r"

// TestSEC9StoredTextIsEscaped prints a status and a history whose every text is hostile.
func TestSEC9StoredTextIsEscaped(t *testing.T) {
	st := someStatus()
	st.Leader.Replica = hostile
	st.Replicas[0].ID = hostile
	for i := range st.Jobs {
		j := &st.Jobs[i]
		j.Name, j.Spec, j.Zone = j.Name+hostile, j.Spec+hostile, j.Zone+hostile
		if j.Problem != "" {
			j.Problem = hostile
		}
		if j.Last != nil {
			j.Last.Detail, j.Last.Outcome, j.Last.Replica = hostile, scheduler.Outcome(hostile), hostile
		}
	}
	for i := range st.Running {
		st.Running[i].Job, st.Running[i].Replica = st.Running[i].Job+hostile, hostile
	}
	entry := *ended(hostile, time.Minute, time.Second, scheduler.Outcome(hostile), hostile)
	entry.Note, entry.Replica, entry.Reason = hostile, hostile, scheduler.Reason(hostile)

	var out bytes.Buffer
	page := historyPage{entries: []scheduler.Entry{entry}, found: 1, now: noon, zone: time.UTC}
	if err := page.print(&out); err != nil {
		t.Fatal(err)
	}
	a := &app{stdout: &out}
	if err := a.printJSON(viewEntry(entry)); err != nil {
		t.Fatal(err)
	}
	if err := a.printJSON(viewStatus(st, noon)); err != nil {
		t.Fatal(err)
	}
	text := printStatus(t, st, "UTC") + out.String()
	for _, bad := range []string{"\x1b", "\x07", "\u009b", "\u202e", "\r", "\nline"} {
		if strings.Contains(text, bad) {
			t.Errorf("%q is printed as it is:\n%s", bad, text)
		}
	}
}

func TestStatusForPrograms(t *testing.T) {
	st := someStatus()
	st.Jobs, st.Running = slices.Concat(st.Jobs[5:6], st.Jobs[8:9]), st.Running[:3]
	var out bytes.Buffer
	a := &app{stdout: &out}
	if err := a.printJSON(viewStatus(st, noon)); err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`{"group":"billing","time":"2026-11-29T12:00:00Z",
"leader":{"replica":"web-2-7f3a","token":1795972592123456,"lease_seconds":15,"remaining_seconds":12.4},
"replicas":[{"id":"web-1-c01d"},{"id":"web-2-7f3a"},{"id":"web-3-90be"}],
"jobs":[
{"name":"invoice","spec":"0 3 * * *","zone":"Asia/Tokyo","description":"daily at 03:00","next":"2026-11-29T18:00:00Z",
"last":{"job":"invoice","run_id":"invoice@2026-11-28T17:59:19Z","tick":"2026-11-28T17:59:19Z","last_tick":"2026-11-28T17:59:19Z",
"ticks":1,"attempt":1,"reason":"schedule","outcome":"succeeded","replica":"web-2-7f3a","token":1795972592123456,
"started":"2026-11-28T17:59:19Z","ended":"2026-11-28T18:00:00Z","late_seconds":0,"took_seconds":41},"needs_attention":false},
{"name":"report","spec":"*/5 * * * *","zone":"UTC","description":"every 5 minutes","next":"2026-11-29T12:01:12Z",
"last":{"job":"report","run_id":"report@2026-11-29T11:56:11Z","tick":"2026-11-29T11:56:11Z","last_tick":"2026-11-29T11:56:11Z",
"ticks":1,"attempt":3,"reason":"schedule","outcome":"failed","detail":"exit status 1\nno such host","replica":"web-2-7f3a",
"token":1795972592123456,"started":"2026-11-29T11:56:11.6Z","ended":"2026-11-29T11:56:12Z","took_seconds":0.4},
"overdue_since":"2026-11-28T16:00:00Z","needs_attention":true}],
"running":[{"job":"export","run_id":"export@2026-11-29T11:48:00Z","tick":"2026-11-29T11:48:00Z","last_tick":"0001-01-01T00:00:00Z",
"ticks":0,"attempt":1,"replica":"web-1-c01d","started":"2026-11-29T11:48:00Z","late_seconds":0,"replica_alive":true},
{"job":"left","run_id":"left@2026-11-29T11:59:00Z","tick":"2026-11-29T11:59:00Z","last_tick":"0001-01-01T00:00:00Z",
"ticks":0,"attempt":2,"replica":"web-4-77d2","started":"2026-11-29T11:59:00Z","replica_alive":false},
{"job":"retried","run_id":"retried@2026-11-29T11:59:55Z","tick":"2026-11-29T11:59:55Z","last_tick":"0001-01-01T00:00:00Z",
"ticks":0,"attempt":2}]}`, "\n", "") + "\n"
	if got := out.String(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	out.Reset()
	if err := a.printJSON(viewStatus(scheduler.Status{Group: "x"}, noon)); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), `{"group":"x","time":"2026-11-29T12:00:00Z","leader":null,"replicas":[],"jobs":[],"running":[]}`+"\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
