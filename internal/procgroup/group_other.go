//go:build unix && !linux

package procgroup

import "syscall"

// group is the process group of a command.
type group struct{ pgid int }

// attributes returns how the command is forked: in a group of its own.
func (g *group) attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// signal signals every process of the group; ESRCH when there is none.
func (g *group) signal(sig syscall.Signal) error { return syscall.Kill(-g.pgid, sig) }

func (g *group) close() {}

// dead reports whether all that is left of the group are dead processes that their parent has not reaped; launchd reaps
// at once.
func (g *group) dead() bool { return false }

// adopted returns group pgid for a guardian.
func adopted(pgid, _ int) *group { return &group{pgid: pgid} }

// deadChild returns 0: only on Linux does this program become process 1.
func deadChild() int { return 0 }

// marked returns nothing: processes do not show their environment here.
func marked(map[string]bool) []int { return nil }
