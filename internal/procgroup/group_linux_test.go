package procgroup

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCommandDiesWithAParentThatIsKilled(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	parent := exec.Command(self)
	parent.Env = append(os.Environ(), "PROCGROUP_TEST_PARENT=exec 3>"+fifo+"; echo started >&3; exec sleep 1000")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	held, err := os.Open(fifo)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	word := make([]byte, len("started\n"))
	if _, err := io.ReadFull(held, word); err != nil {
		t.Fatal(err)
	}
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait()
	// The command alone holds the writing end: it ends when the command does.
	if rest, err := io.ReadAll(held); err != nil || len(rest) > 0 {
		t.Errorf("read %q, %v", rest, err)
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
