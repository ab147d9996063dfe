//go:build unix

package procgroup

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// endWhen runs script and ends its context, with a cause, as soon as it has written the line "ready".
func endWhen(t *testing.T, script string, spec Spec) (Result, *lines) {
	t.Helper()
	cause := errors.New("the lease is lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	out := &lines{}
	spec.Argv = sh(script)
	spec.Output = func(stream string, line []byte) {
		out.add(stream, line)
		if string(line) == "ready" {
			cancel(cause)
		}
	}
	res := run(t, ctx, spec)
	if res.Cause != cause {
		t.Errorf("cause %v, want %v", res.Cause, cause)
	}
	if res.Leftover {
		t.Error("a process of the group is left")
	}
	gone(t, out.of("stdout"))
	return res, out
}

// never is a KillAfter that a test does not live to see: it is bounded, so that a fault fails the test.
func never(error) time.Duration { return 20 * time.Second }

func TestB70NoProcessOfTheGroupSurvivesTheEndOfTheContext(t *testing.T) {
	res, _ := endWhen(t, `echo pid $$; sleep 100 & echo ready; wait`, Spec{KillAfter: never})
	if res.Signal != syscall.SIGTERM {
		t.Errorf("got %v, want SIGTERM to have been enough", res)
	}
}

func TestTermReachesTheWholeGroup(t *testing.T) {
	_, out := endWhen(t, `
		echo pid $$
		trap "wait; echo command got TERM; exit 7" TERM
		sh -c 'trap "echo child got TERM; exit 0" TERM; echo ready; while :; do sleep 0.02; done' &
		while :; do sleep 0.02; done`, Spec{KillAfter: never})
	got := out.of("stdout")
	for _, want := range []string{"child got TERM", "command got TERM"} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

func TestGrandchildThatIgnoresTermIsKilled(t *testing.T) {
	var asked error
	spec := Spec{KillAfter: func(cause error) time.Duration { asked = cause; return 50 * time.Millisecond }}
	res, _ := endWhen(t, `
		echo pid $$
		trap "" TERM
		(trap "" TERM; i=0; while [ $i -lt 15 ]; do sleep 1; i=$((i+1)); done) &
		echo ready
		wait`, spec)
	if res.Signal != syscall.SIGKILL {
		t.Errorf("got %v, want SIGKILL", res)
	}
	if asked != res.Cause || asked == nil {
		t.Errorf("KillAfter was asked with %v, want the cause", asked)
	}
}

func TestGroupHasUntilKillAfterWhenTheCommandEndsFirst(t *testing.T) {
	// The shell dies of SIGTERM at once; what it has started needs longer than the half second of a normal end.
	_, out := endWhen(t, `
		echo pid $$
		(trap "sleep 0.8; echo saved; exit" TERM; echo ready; while :; do sleep 0.02; done) &
		wait`, Spec{KillAfter: never})
	if got := out.of("stdout"); !slices.Contains(got, "saved") {
		t.Errorf("got %q: killed before it had saved", got)
	}
}

func TestDeadSessionKillsAtOnce(t *testing.T) {
	asked := 0
	spec := Spec{KillAfter: never, Alive: func() bool { asked++; return asked < 3 }}
	res, _ := endWhen(t, `echo pid $$; trap "" TERM; echo ready; i=0; while [ $i -lt 15 ]; do sleep 1; i=$((i+1)); done`, spec)
	if res.Signal != syscall.SIGKILL || asked != 3 {
		t.Errorf("got %v after %d questions, want SIGKILL after 3", res, asked)
	}
}

func TestStoppedGroupIsKilled(t *testing.T) {
	spec := Spec{KillAfter: func(error) time.Duration { return 0 }}
	if res, _ := endWhen(t, `echo pid $$; echo ready; kill -STOP $$`, spec); res.ExitCode < 128 {
		t.Errorf("got %v, want a signal", res)
	}
}

func TestBackgroundChildrenEndWithTheCommand(t *testing.T) {
	for _, tt := range []struct{ name, script string }{
		{"obedient", `echo pid $$; sleep 100 & exit 5`},
		{"deaf", `echo pid $$; (trap "" TERM; echo deaf; while :; do sleep 1; done) & exit 5`},
		{"silent", `echo pid $$; sleep 100 >/dev/null 2>&1 & exit 5`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out lines
			res := run(t, t.Context(), Spec{Argv: sh(tt.script), Output: out.add})
			if res.ExitCode != 5 || res.Cause != nil || res.Leftover {
				t.Errorf("got %+v, want exit status 5 and nothing left", res)
			}
			gone(t, out.of("stdout"))
		})
	}
}

func TestOutputHeldOpenOutsideTheGroupDoesNotHang(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out lines
	res := run(t, t.Context(), Spec{
		Argv:   []string{"sh", "-c", `echo pid $$; "$0" & read word < "$PROCGROUP_TEST_ESCAPE"; echo $word $!`, self},
		Env:    append(os.Environ(), "PROCGROUP_TEST_ESCAPE="+fifo),
		Output: out.add,
	})
	got := out.of("stdout")
	gone(t, got)
	text, ok := strings.CutPrefix(got[len(got)-1], "escaped ")
	pid, err := strconv.Atoi(text)
	if !ok || err != nil || pid < 2 {
		t.Fatalf("no escaped process in %q", got)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Errorf("the escaped process should be alive: %v", err)
	}
	if res.Leftover {
		t.Error("the escaped process counts as one of the group")
	}
}
