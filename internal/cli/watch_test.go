package cli

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/redisstore"
)

// A watch prints what has changed, and nothing else: not the time that passes.
func TestWatchPrintsChanges(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out, now: func() time.Time { return noon }, local: time.UTC}
	w := &watching{app: a, query: new(asking), known: make(map[string]string)}
	show := func(st scheduler.Status, trouble string, want ...string) {
		t.Helper()
		out.Reset()
		if err := w.show(st, trouble); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(want, ""); out.String() != got {
			t.Errorf("got:\n%swant:\n%s", out.String(), got)
		}
	}
	st := someStatus()
	st.Jobs, st.Running = st.Jobs[1:3], st.Running[:1]
	show(st, "", "12:00:00 web-2-7f3a leads\n",
		"12:00:00 3 replicas: web-1-c01d, web-2-7f3a, web-3-90be\n",
		"12:00:00 cleanup: scheduled\n",
		"12:00:00 cleanup@2026-11-29T11:53:17Z: attempt 1 on web-2-7f3a succeeded\n",
		"12:00:00 export: scheduled\n",
		"12:00:00 export@2026-11-29T11:48:00Z: attempt 1 runs on web-1-c01d\n")
	st.Leader.Remaining, st.Jobs[0].Next = time.Second, noon.Add(time.Hour)
	show(st, "")
	st.Jobs[1].Paused = &scheduler.Pause{Reason: "db upgrade", Author: "ann@laptop", Until: noon.Add(time.Hour)}
	show(st, "", "12:00:00 export: paused by ann@laptop until 29 Nov 13:00:00: db upgrade\n")
	show(scheduler.Status{}, "the store does not answer: no route", "12:00:00 the store does not answer: no route\n")
	st.Leader.Replica, st.Running = "", nil
	show(st, "", "12:00:00 the store answers\n", "12:00:00 nobody leads\n")
	st.Jobs, st.Replicas = st.Jobs[:1], nil
	show(st, "", "12:00:00 no replicas\n", "12:00:00 export: gone\n")
	show(st, "")
}

func TestWatchPrintsObjectsThatDiffer(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out, now: func() time.Time { return noon }, local: time.UTC}
	w := &watching{app: a, query: &asking{json: true}}
	st := someStatus()
	for range 3 {
		st.Leader.Remaining -= time.Second
		if err := w.show(st, ""); err != nil {
			t.Fatal(err)
		}
	}
	if n := strings.Count(out.String(), "\n"); n != 1 {
		t.Errorf("%d objects:\n%s", n, out.String())
	}
	st.Leader.Replica = ""
	if err := w.show(st, ""); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "\n"); n != 2 {
		t.Errorf("%d objects:\n%s", n, out.String())
	}
}

func TestWatchOnATerminal(t *testing.T) {
	var out bytes.Buffer
	a := &app{stdout: &out, now: func() time.Time { return noon }, local: time.UTC, terminal: true}
	w := &watching{app: a, query: new(asking)}
	for range 2 {
		out.Reset()
		if err := w.show(someStatus(), ""); err != nil {
			t.Fatal(err)
		}
		if text := out.String(); !strings.HasPrefix(text, "\x1b[H\x1b[Jbilling: web-2-7f3a leads;") || !strings.Contains(text, "times are UTC") {
			t.Errorf("%q", text)
		}
	}
	if err := w.show(scheduler.Status{}, "the store does not answer: x"); err != nil || !strings.Contains(out.String(), "the store does not answer: x") {
		t.Errorf("%v, %q", err, out.String())
	}
}

// A watch of a real group goes on while things change, and ends with exit code 0 at a signal.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	env := []string{"SINGLETON_STORE=" + server.URL(), "SINGLETON_GROUP=watched", "SINGLETON_AUTHOR=ann"}
	watch := start(t, env, "status", "--watch", "--every", "100ms")
	watch.await("nobody leads")
	st := redisstore.New(server.Client(), nil)
	if err := errors.Join(scheduler.Create(t.Context(), st, "watched"), st.Close()); err != nil {
		t.Fatal(err)
	}
	start(t, env, "cron", "--id", "m1", write(t, "jobs.cron", "#: name=report\n0 0 1 1 * true\n"))
	watch.await("m1-", " leads")
	watch.await("report: scheduled")
	if code := start(t, env, "pause", "report", "--why", "db upgrade").exit(); code != 0 {
		t.Errorf("pause exits with %d", code)
	}
	watch.await("report: paused by ann: db upgrade")
	if code := start(t, env, "trigger", "report", "--wait").exit(); code != 0 {
		t.Errorf("trigger exits with %d", code)
	}
	watch.await("report@", "succeeded")
	watch.signal(syscall.SIGINT)
	if code := watch.exit(); code != 0 {
		t.Errorf("the watch exits with %d", code)
	}
}
