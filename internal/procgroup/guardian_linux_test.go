package procgroup

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestGuardianSurvivesTheSignalsOfATerminalAndAServiceManager(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, GuardianWord)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the guardian ignores signals", func() bool { return ignores(t, cmd.Process.Pid, syscall.SIGTERM) })
	pgid, ended := sleeper(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := fmt.Fprintf(in, "+%d\n", pgid); err != nil {
		t.Error(err)
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the guardian: %v", err)
	}
	within(t, "the group ends", ended)
}

func TestGuardianKillsWhatACommandHasStartedBeforeItsGroupWasKnown(t *testing.T) {
	_, ended := sleeper(t, Mark+"=a.1")
	_, otherEnded := sleeper(t, Mark+"=a.11")
	_, startedEnded := sleeper(t, Mark+"=a.2")
	guard(strings.NewReader("?a.1\n?a.2\n!a.2\n"), os.Getpid())
	within(t, "the group ends", ended)
	for _, other := range []<-chan struct{}{otherEnded, startedEnded} {
		select {
		case <-other:
			t.Error("another group has been killed")
		default:
		}
	}
}

func TestGuardianHasASessionOfItsOwn(t *testing.T) {
	g := startGuardian(t)
	defer g.Close()
	if sid, err := unix.Getsid(g.pid()); err != nil || sid != g.pid() {
		t.Errorf("session %d of guardian %d (%v): a terminal's end reaches it", sid, g.pid(), err)
	}
}

// pkill and killall go by this name, and who kills all that is called singleton means the commands to end.
func TestGuardianHasANameOfItsOwn(t *testing.T) {
	g := startGuardian(t)
	defer g.Close()
	until(t, "the guardian is called so", func() bool {
		name, err := os.ReadFile(filepath.Join("/proc", itoa(g.pid()), "comm"))
		return err == nil && strings.TrimSpace(string(name)) == GuardianWord
	})
}

// ignores reports whether a process ignores a signal.
func ignores(t *testing.T, pid int, sig syscall.Signal) bool {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "\nSigIgn:\t")
	text, _, _ := strings.Cut(rest, "\n")
	mask, err := strconv.ParseUint(text, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return mask&(1<<(sig-1)) != 0
}
