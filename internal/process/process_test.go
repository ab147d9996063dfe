//go:build unix

package process_test

import (
	"bytes"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/process"
)

// limit is how long a test waits for what must come.
const limit = time.Minute

// launch runs a line of the shell until the test ends.
func launch(t *testing.T, line string, change ...func(*process.Command)) *process.Process {
	t.Helper()
	c := process.Command{Args: []string{"sh", "-c", line}}
	for _, f := range change {
		f(&c)
	}
	p := &process.Process{}
	if err := p.Launch(c); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p
}

// says waits until the process has said text.
func says(t *testing.T, p *process.Process, text string) {
	t.Helper()
	if err := p.Wait(limit, func() bool { return strings.Contains(p.Output(), text) }); err != nil {
		t.Fatal(err)
	}
}

func TestAProcessRunsWhereAndWithWhatItIsGiven(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PROCESS_TEST", "inherited")
	t.Setenv("PROCESS_REST", "rest")
	var log bytes.Buffer
	p := launch(t, `echo "$PWD $PROCESS_TEST $PROCESS_REST" >&2; echo up; exec sleep 1000`, func(c *process.Command) {
		c.Dir, c.Env, c.Output = dir, []string{"PROCESS_TEST=own"}, &log
	})
	says(t, p, "up")
	p.Kill()
	if want := dir + " own rest\nup\n"; log.String() != want || p.Output() != want {
		t.Errorf("it said %q and %q, want %q", log.String(), p.Output(), want)
	}
}

func TestAProcessThatEndsAtOnceSaysWhy(t *testing.T) {
	p := launch(t, "echo no such option; exit 3")
	err := p.Wait(limit, func() bool { return false })
	if !errors.Is(err, process.ErrEnded) || !strings.Contains(err.Error(), "no such option") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("got %v", err)
	}
}

func TestAProcessThatIsNotReadyInTimeIsKilledAndSaysWhatItDid(t *testing.T) {
	p := launch(t, "echo loading; exec sleep 1000")
	says(t, p, "loading")
	err := p.Wait(time.Millisecond, func() bool { return false })
	if err == nil || errors.Is(err, process.ErrEnded) || !strings.Contains(err.Error(), "loading") {
		t.Errorf("got %v", err)
	}
	if err := p.Wait(limit, func() bool { return false }); !errors.Is(err, process.ErrEnded) {
		t.Errorf("it still runs: %v", err)
	}
}

func TestAFrozenProcessDoesNothingUntilItIsThawed(t *testing.T) {
	p := launch(t, "trap 'echo heard' USR1; echo up; while :; do sleep 0.01; done")
	says(t, p, "up")
	p.Stop()
	p.Signal(syscall.SIGUSR1)
	if strings.Contains(p.Output(), "heard") {
		t.Error("a frozen process has acted")
	}
	p.Cont()
	says(t, p, "heard")
}

func TestAFrozenProcessCanBeKilledAndAnotherTakesItsPlace(t *testing.T) {
	p := launch(t, "echo first; exec sleep 1000")
	says(t, p, "first")
	p.Stop()
	if err := p.Launch(process.Command{Args: []string{"sh", "-c", "echo second; exec sleep 1000"}}); err != nil {
		t.Fatal(err)
	}
	says(t, p, "second")
	if strings.Contains(p.Output(), "first") {
		t.Errorf("the output of another process stays: %s", p.Output())
	}
}

func TestNothingIsDoneWithoutAProcess(t *testing.T) {
	var p process.Process
	p.Stop()
	p.Cont()
	p.Kill()
	if err := p.Wait(limit, func() bool { return true }); err == nil {
		t.Error("nothing is ready")
	}
	if err := p.Launch(process.Command{Args: []string{"no-such-program"}}); err == nil {
		t.Error("no such program was launched")
	}
	if p.Output() != "" {
		t.Errorf("nothing said %q", p.Output())
	}
}

func TestTheLastThatAProcessSaysIsKept(t *testing.T) {
	p := launch(t, "echo first; i=0; while [ $i -lt 3000 ]; do echo 0123456789012345678901234567890; i=$((i+1)); done; echo last; exec sleep 1000")
	says(t, p, "last")
	if said := p.Output(); strings.Contains(said, "first") || len(said) != 64<<10 {
		t.Errorf("%d bytes are kept", len(said))
	}
}
