package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/crontab"
	"github.com/go-singleton/singleton/internal/procgroup"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

func TestKillFollowsTermByReason(t *testing.T) {
	c := &commands{lease: 15 * time.Second, grace: 25 * time.Second}
	for _, x := range []struct {
		cause error
		after time.Duration
		lost  bool
	}{
		{scheduler.ErrStopping, 4500 * time.Millisecond, false}, // so that what it leaves can still be told within the grace
		{fmt.Errorf("wrapped: %w", scheduler.ErrStopping), 4500 * time.Millisecond, false},
		{scheduler.ErrReplaced, 5 * time.Second, false},
		{scheduler.ErrCancelled, 5 * time.Second, false},
		{context.DeadlineExceeded, 5 * time.Second, false},
		{election.ErrExpired, 1200 * time.Millisecond, true},
		{store.ErrEnded, 1200 * time.Millisecond, true},
		{errNow, 0, false},
	} {
		if after, lost := c.killAfter(x.cause); after != x.after || lost != x.lost {
			t.Errorf("%v: %v, %t; want %v, %t", x.cause, after, lost, x.after, x.lost)
		}
	}
	c = &commands{lease: 500 * time.Millisecond, grace: 10 * time.Minute}
	if after, _ := c.killAfter(context.DeadlineExceeded); after != 10*time.Second {
		t.Errorf("timeout with a long grace: %v", after)
	}
	if after, _ := c.killAfter(election.ErrExpired); after != 40*time.Millisecond {
		t.Errorf("session of a short lease: %v", after)
	}
}

func TestReasonsAreWords(t *testing.T) {
	for cause, want := range map[error]string{
		context.DeadlineExceeded: "timed out after 2 s",
		scheduler.ErrStopping:    "the replica stops, and the grace is nearly over",
		errNow:                   "second signal",
		election.ErrExpired:      election.ErrExpired.Error(),
	} {
		if got := reason(cause, 2*time.Second); got != want {
			t.Errorf("%v: got %q, want %q", cause, got, want)
		}
	}
}

func TestDetailOfAFailedCommand(t *testing.T) {
	for _, c := range []struct {
		res  procgroup.Result
		want string
	}{
		{procgroup.Result{ExitCode: 3}, "exit status 3"},
		{procgroup.Result{ExitCode: 143, Signal: syscall.SIGTERM, Tail: []byte("\n\n")}, "killed by signal 15 (terminated)"},
		{procgroup.Result{ExitCode: 143, Signal: syscall.SIGTERM, Cause: context.DeadlineExceeded, Tail: []byte("busy\n")},
			"timed out after 1 m 30 s; killed by signal 15 (terminated)\nbusy"},
		{procgroup.Result{ExitCode: 1, Cause: scheduler.ErrStopping}, "exit status 1"},
		{procgroup.Result{ExitCode: 1, Tail: []byte("1\n2\n3\n\n5\n\x1b[31m6\n7")}, "exit status 1\n1\n2\n3\n5\n" + `\x1b[31m6` + "\n7"},
		{procgroup.Result{ExitCode: 1, Tail: []byte(strings.Repeat("ä", 2000))}, "exit status 1\n…" + strings.Repeat("ä", 1991)},
		{procgroup.Result{ExitCode: 1, Tail: []byte(strings.Repeat("a", 2000) + "\n" + strings.Repeat("b", 1995) + "\nlast\n")},
			"exit status 1\n" + strings.Repeat("b", 1995) + "\nlast"},
	} {
		got := detail(c.res, 90*time.Second)
		if got != c.want || !utf8.ValidString(got) {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestEnvironmentOfACommand(t *testing.T) {
	t.Setenv("SINGLETON_ID", "web-1")
	t.Setenv("SINGLETON_JOB", "of a parent")
	t.Setenv("INHERITED", "yes")
	c := &commands{group: "billing"}
	run := scheduler.Run{
		Job: "report", Tick: time.Date(2026, 11, 29, 13, 5, 0, 0, time.FixedZone("CET", 3600)), Attempt: 2,
		Reason: scheduler.ReasonRerun, Token: 1795972592123456, Replica: "web-1-0a1b2c3d",
	}
	got := map[string]string{}
	for _, s := range c.environment(crontab.Job{Env: []string{"FOO=bar baz", "INHERITED=no", "SINGLETON_TICK=fake"}}, run) {
		name, value, _ := strings.Cut(s, "=")
		got[name] = value // the last one wins
	}
	for name, want := range map[string]string{
		"FOO": "bar baz", "INHERITED": "no", "SINGLETON_GROUP": "billing", "SINGLETON_REPLICA": "web-1-0a1b2c3d",
		"SINGLETON_JOB": "report", "SINGLETON_TICK": "2026-11-29T12:05:00Z", "SINGLETON_TICK_UNIX": "1795953900",
		"SINGLETON_RUN_ID": "report@2026-11-29T12:05:00Z", "SINGLETON_ATTEMPT": "2", "SINGLETON_REASON": "rerun",
		"SINGLETON_TOKEN": "1795972592123456",
	} {
		if got[name] != want {
			t.Errorf("%s=%s, want %s", name, got[name], want)
		}
	}
	if id, ok := got["SINGLETON_ID"]; ok {
		t.Errorf("SINGLETON_ID=%s is handed on", id)
	}
}

func TestSecondSignalIsAStop(t *testing.T) {
	if !errors.Is(errNow, scheduler.ErrStopping) {
		t.Error("the scheduler cannot tell that a command was killed because its replica stops")
	}
}
