//go:build unix

package procgroup

import (
	"context"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// own are the children of this process that somebody waits for.
var own = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// fork starts a command that its caller waits for, and calls forget for then.
func fork(cmd *exec.Cmd) error {
	own.Lock() // so that nobody takes the child for an orphan before it is known
	defer own.Unlock()
	err := cmd.Start()
	if err == nil {
		own.pids[cmd.Process.Pid] = true
	}
	return err
}

// forget is called when a child has been waited for.
func forget(cmd *exec.Cmd) {
	own.Lock()
	defer own.Unlock()
	delete(own.pids, cmd.Process.Pid)
}

// reapAgain is when to look again, where a child lies in front of the orphans that is waited for by somebody else.
const reapAgain = 50 * time.Millisecond

// ReapOrphans reaps the dead that the kernel has given to this process, until ctx ends: those whose parent has died, where
// this is process 1 of a container. It leaves alone what Run and StartGuardian have started, and no other part of the
// program may start processes meanwhile.
func ReapOrphans(ctx context.Context) {
	deaths := make(chan os.Signal, 1)
	signal.Notify(deaths, syscall.SIGCHLD)
	defer signal.Stop(deaths)
	again := time.NewTicker(reapAgain)
	defer again.Stop()
	for {
		if reapAll() {
			again.Stop()
		} else {
			again.Reset(reapAgain)
		}
		select {
		case <-ctx.Done():
			return
		case <-deaths:
		case <-again.C:
		}
	}
}

// reapAll reaps the dead; false when somebody else has to reap one first.
func reapAll() bool {
	own.Lock()
	defer own.Unlock()
	for {
		pid := deadChild()
		if pid == 0 {
			return true
		}
		if own.pids[pid] {
			return false
		}
		var ws syscall.WaitStatus
		_, _ = syscall.Wait4(pid, &ws, syscall.WNOHANG, nil) // another thread may have been faster
	}
}
