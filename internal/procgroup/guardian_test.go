//go:build unix

package procgroup

import (
	"errors"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func startGuardian(t *testing.T) *Guardian {
	t.Helper()
	g, err := StartGuardian(slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// pid returns the guardian's process, 0 while there is none.
func (g *Guardian) pid() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.process == nil {
		return 0
	}
	return g.process.Pid
}

// sleeper starts a group that is not Run's, and returns its number and a channel that is closed when its leader has
// ended.
func sleeper(t *testing.T, env ...string) (pgid int, ended <-chan struct{}) {
	t.Helper()
	cmd := exec.Command("sleep", "1000")
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = cmd.Wait() // says how it was killed
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // one that has ended is no matter
		<-done
	})
	return cmd.Process.Pid, done
}

// within fails the test where something does not happen.
func within(t *testing.T, what string, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(20 * time.Second):
		t.Fatalf("waited in vain: %s", what)
	}
}

// until waits for what no event tells.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for limit := time.Now().Add(20 * time.Second); !condition(); <-ticker.C {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

func TestGuardianKillsWhatIsLeftAndNothingElse(t *testing.T) {
	g := startGuardian(t)
	left, leftEnded := sleeper(t)
	done, doneEnded := sleeper(t)
	g.add(left, g.expect())
	g.add(done, g.expect())
	g.remove(done)
	g.Close()
	within(t, "the group that is left ends", leftEnded)
	select {
	case <-doneEnded:
		t.Error("a group that was taken back has been killed")
	default:
	}
}

func TestGuardianThatEndsIsReplacedByOneThatKnowsTheGroups(t *testing.T) {
	for _, tt := range []struct {
		name string
		harm func(g *Guardian)
	}{
		{"killed", func(g *Guardian) { _ = syscall.Kill(g.pid(), syscall.SIGKILL) }},
		{"frozen", func(g *Guardian) {
			_ = syscall.Kill(g.pid(), syscall.SIGSTOP)
			for range 20_000 { // more than a pipe holds; nobody waits
				g.add(1<<30, g.expect())
				g.remove(1 << 30)
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			g := startGuardian(t)
			pgid, ended := sleeper(t)
			g.add(pgid, g.expect())
			first := g.pid()
			tt.harm(g)
			until(t, "another guardian is there", func() bool { return g.pid() != 0 && g.pid() != first })
			if err := syscall.Kill(first, 0); !errors.Is(err, syscall.ESRCH) {
				t.Errorf("the first one is left: %v", err)
			}
			g.Close()
			within(t, "the group ends", ended)
		})
	}
}

func TestGuardianHoldsNoFilesOfOthers(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := unix.FcntlInt(w.Fd(), unix.F_SETFD, 0); err != nil { // as if it came from a parent
		t.Fatal(err)
	}
	g := startGuardian(t)
	defer g.Close()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if n, err := r.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("read %d bytes, %v: the guardian holds the other end", n, err)
	}
}

func TestGuardReadsWhateverComes(t *testing.T) {
	living, livingEnded := sleeper(t)
	other, otherEnded := sleeper(t)
	guard(strings.NewReader("\n+\n-\n?\n!\n?x\n!x\n+x\n+-1\n+0\n+1\n*7\n-99999\n+"+itoa(other)+"\n+"+itoa(living)+"\n-"+itoa(other)+"\n"), os.Getpid())
	within(t, "the group ends", livingEnded)
	select {
	case <-otherEnded:
		t.Error("a group that was taken back has been killed")
	default:
	}
}

func TestGuardianIsToldBeforeAndAfterTheFork(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	g := &Guardian{name: "g", groups: map[int]bool{}, forks: map[string]bool{}, pipe: w}
	var out lines
	run(t, t.Context(), Spec{Argv: sh("echo pid $$; echo $" + Mark), Output: out.add, Guardian: g})
	if _, err := Run(t.Context(), Spec{Argv: []string{"no-such-program-here"}, Guardian: g}); err == nil {
		t.Error("started what is not there")
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	told, err := io.ReadAll(r)
	pid := itoa(groupOf(t, out.of("stdout")))
	if want := "?g.1\n+" + pid + "\n!g.1\n-" + pid + "\n?g.2\n!g.2\n"; err != nil || string(told) != want {
		t.Errorf("told %q, %v; want %q", told, err, want)
	}
	if got := out.of("stdout"); len(got) != 2 || got[1] != "g.1" {
		t.Errorf("the command's mark in %q, want g.1", got)
	}
}
