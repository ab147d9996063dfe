package procgroup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// killParent runs a script in a process of its own, kills that once the script has written "started" to the fifo that it
// has open as 3, and fails where somebody goes on to hold that.
func killParent(t *testing.T, script string, env ...string) {
	t.Helper()
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), append(env, "PROCGROUP_TEST_PARENT=exec 3>"+fifo+"; "+script)...)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	if err := held.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	var group int
	if _, err := fmt.Fscanf(held, "started %d\n", &group); err != nil || group < 2 {
		t.Fatalf("group %d: %v", group, err)
	}
	defer func() { _ = syscall.Kill(-group, syscall.SIGKILL) }() // after a failure
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // says how it was killed
	if rest, err := io.ReadAll(held); err != nil || len(rest) > 0 {
		t.Errorf("a process of the command lives on: read %q, %v", rest, err)
	}
}

func TestCommandDiesWithAParentThatIsKilled(t *testing.T) {
	killParent(t, `echo started $$ >&3; exec sleep 1000`)
}

func TestB70WholeGroupDiesWithAParentThatIsKilled(t *testing.T) {
	killParent(t, `trap "" TERM HUP; (trap "" TERM; sleep 1000) & sleep 1000 & echo started $$ >&3; wait`, "PROCGROUP_TEST_GUARDED=1")
}

func TestGuardianNamesGroupsByTheirLeader(t *testing.T) {
	child, _ := sleeper(t)
	g := adopted(child, os.Getpid())
	defer g.close()
	if g.pidfd < 0 {
		t.Error("a child of the parent is not recognised")
	}
	if other := adopted(child, 1); other.pidfd >= 0 {
		other.close()
		t.Error("somebody else's child is taken for the parent's")
	}
	if other := adopted(os.Getpid(), os.Getppid()); syscall.Getpgrp() != os.Getpid() && other.pidfd >= 0 {
		other.close()
		t.Error("a process that leads no group is taken for one that does")
	}
}

func TestReapOrphansTakesOrphansAlone(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	ctx, cancel := context.WithCancel(t.Context())
	var reaper sync.WaitGroup
	reaper.Go(func() { ReapOrphans(ctx) })
	defer reaper.Wait()
	defer cancel()
	var runs sync.WaitGroup
	for i := range 20 {
		runs.Go(func() { // an orphan that has left the group, and a command whose exit status must not be taken
			var out lines
			res, err := Run(t.Context(), Spec{Argv: sh(`(setsid sh -c 'echo pid $$' &); exit ` + itoa(i)), Output: out.add})
			if err != nil || res.ExitCode != i {
				t.Errorf("%d: %v, %v", i, res, err)
			}
			for _, line := range out.of("stdout") { // none where the group was faster to end than the orphan to leave it
				var orphan int
				if _, err := fmt.Sscanf(line, "pid %d", &orphan); err != nil {
					t.Error(err)
				}
				until(t, "the orphan is reaped", func() bool { return errors.Is(syscall.Kill(orphan, 0), syscall.ESRCH) })
			}
		})
	}
	runs.Wait()
}

func TestReapersLeaveADeadCommandToWhoWaitsForIt(t *testing.T) {
	cmd := exec.Command("true")
	if err := fork(cmd); err != nil {
		t.Fatal(err)
	}
	defer forget(cmd)
	until(t, "it is dead", func() bool { return deadChild() == cmd.Process.Pid })
	if reapAll() {
		t.Error("nobody else has to reap it")
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("its exit status is gone: %v", err)
	}
}

func TestOrphansGivenToThisProcessAreReaped(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) }()
	var out lines
	res := run(t, t.Context(), Spec{Argv: sh(`echo pid $$; sleep 100 & sleep 100 & exit 0`), Output: out.add})
	if res.Leftover {
		t.Error("a process of the group is left")
	}
	if err := syscall.Kill(-groupOf(t, out.of("stdout")), 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("the group after Run: %v, want %v", err, syscall.ESRCH)
	}
}

func TestGroupIsNamedBeyondItsLeader(t *testing.T) {
	for _, tt := range []struct {
		name       string
		descriptor bool
	}{{"by its descriptor", true}, {"by its number", false}} {
		t.Run(tt.name, func(t *testing.T) {
			var g group
			cmd := exec.Command("sh", "-c", "sleep 100 >/dev/null 2>&1 &")
			cmd.SysProcAttr = g.attributes()
			if err := cmd.Run(); err != nil {
				t.Fatal(err)
			}
			defer g.close()
			if g.pidfd < 0 {
				t.Fatal("the kernel gave no descriptor; it has since Linux 5.2")
			}
			g.pgid = cmd.Process.Pid
			err := unix.PidfdSendSignal(g.pidfd, 0, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)
			if tt.descriptor && !errors.Is(err, syscall.EINVAL) { // before Linux 6.9 the number must do
				defer func(pgid int) { _ = syscall.Kill(-pgid, syscall.SIGKILL) }(g.pgid)
				g.pgid = 1 << 30 // nobody's
			} else if !tt.descriptor {
				g.close()
			}
			if err := g.signal(0); err != nil {
				t.Errorf("the leader is reaped, and its child is taken for gone: %v", err)
			}
			if err := g.signal(syscall.SIGKILL); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDeadTellsTheDeadFromTheLiving(t *testing.T) {
	var g group
	cmd := exec.Command("cat")
	cmd.SysProcAttr = g.attributes()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer g.close()
	g.pgid = cmd.Process.Pid
	if g.dead() {
		t.Error("a living process is taken for dead")
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	// Wait until it is dead, and leave it unreaped.
	var info unix.Siginfo
	if err := unix.Waitid(unix.P_PID, g.pgid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if err := g.signal(0); err != nil {
		t.Errorf("a process that is not reaped: %v", err)
	}
	if !g.dead() {
		t.Error("a dead process is taken for a living one")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
