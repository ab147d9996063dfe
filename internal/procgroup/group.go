//go:build unix

package procgroup

import (
	"errors"
	"syscall"
)

// gone reports whether no process of the group is alive. The command itself must have been reaped before.
func (g *group) gone() bool {
	g.reap()
	switch err := g.signal(0); {
	case errors.Is(err, syscall.ESRCH):
		return true
	case err != nil: // there is one that this user may not signal
		return false
	}
	if !g.dead() {
		return false
	}
	// A look at a list of processes may miss one that is just being forked. After SIGKILL none is.
	_ = g.signal(syscall.SIGKILL)
	if !g.dead() {
		return false
	}
	g.reap()
	return true
}

// reap reaps the dead of the group whose parent is this process: orphans that the kernel has given to it.
func (g *group) reap() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-g.pgid, &ws, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
	}
}
