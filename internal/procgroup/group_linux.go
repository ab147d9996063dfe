package procgroup

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// group is the process group of a command. The descriptor of the command's process, where the kernel gives one, names
// the group beyond doubt: its number may stand for another group once this one has ended.
type group struct {
	pgid    int
	pidfd   int   // -1 is none
	members []int // who was alive at the last look
}

// attributes returns how the command is forked: in a group of its own, killed by the kernel when its parent dies.
func (g *group) attributes() *syscall.SysProcAttr {
	g.pidfd = -1
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL, PidFD: &g.pidfd}
}

// signal signals every process of the group; ESRCH when there is none.
func (g *group) signal(sig syscall.Signal) error {
	if g.pidfd >= 0 {
		err := unix.PidfdSendSignal(g.pidfd, sig, nil, unix.PIDFD_SIGNAL_PROCESS_GROUP)
		if err == nil || errors.Is(err, syscall.ESRCH) {
			return err
		}
		// Kernels before 6.9 do not know the flag (EINVAL), sandboxes refuse the call (ENOSYS, EPERM).
	}
	return syscall.Kill(-g.pgid, sig)
}

// adopted returns group pgid for a guardian, by a descriptor of its leader where that is certainly the child of parent that
// it was told of.
func adopted(pgid, parent int) *group {
	g := &group{pgid: pgid, pidfd: -1}
	fd, err := unix.PidfdOpen(pgid, 0)
	if err != nil {
		return g // the command has been reaped by now; what it has left still has its number
	}
	if stat := statOf(pgid); len(stat) < 3 || string(stat[1]) != strconv.Itoa(parent) || string(stat[2]) != strconv.Itoa(pgid) {
		_ = unix.Close(fd)
		return g
	}
	g.pidfd = fd
	return g
}

// marked returns the groups of the processes whose environment holds one of marks.
func marked(marks map[string]bool) []int {
	var groups []int
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	for _, name := range environs {
		environ, err := os.ReadFile(name)
		if err != nil {
			continue // somebody else's, or it has ended
		}
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			mark, ok := bytes.CutPrefix(variable, []byte(Mark+"="))
			if !ok || !marks[string(mark)] {
				continue
			}
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(name)))
			if stat := statOf(pid); len(stat) > 2 {
				if pgid, err := strconv.Atoi(string(stat[2])); err == nil && pgid > 1 {
					groups = append(groups, pgid)
				}
			}
		}
	}
	return groups
}

// deadChild returns a child of this process that has died and has not been reaped, or 0.
func deadChild() int {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil || info.Signo == 0 {
			return 0
		}
		return int(pidOf(&info))
	}
}

// pidOf returns whom a SIGCHLD is about: the first field behind the three that all signals have, aligned as a pointer is.
func pidOf(info *unix.Siginfo) int32 {
	const align = unsafe.Sizeof(uintptr(0))
	at := (unsafe.Sizeof(info.Signo) + unsafe.Sizeof(info.Errno) + unsafe.Sizeof(info.Code) + align - 1) / align * align
	return *(*int32)(unsafe.Add(unsafe.Pointer(info), at))
}

func (g *group) close() {
	if g.pidfd >= 0 {
		_ = unix.Close(g.pidfd)
		g.pidfd = -1
	}
}

// dead reports whether all that is left of the group are dead processes that their parent, process 1 as a rule, has not
// reaped. Some never do, others take seconds, and signals cannot tell the dead from the living.
func (g *group) dead() bool {
	g.members = slices.DeleteFunc(g.members, func(pid int) bool { return !alive(pid, g.pgid) })
	if len(g.members) > 0 {
		return false
	}
	// A /proc of other processes than ours (of another namespace, or none at all) says nothing.
	if self, err := os.Readlink("/proc/self"); err != nil || self != strconv.Itoa(os.Getpid()) {
		return false
	}
	dir, err := os.Open("/proc")
	if err != nil {
		return false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return false
	}
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil && alive(pid, g.pgid) {
			g.members = append(g.members, pid)
		}
	}
	return len(g.members) == 0
}

// alive reports whether process pid is of group pgid and not dead.
func alive(pid, pgid int) bool {
	fields := statOf(pid)
	if len(fields) < 18 || string(fields[2]) != strconv.Itoa(pgid) {
		return false
	}
	// A process whose first thread has ended looks dead while its other threads go on.
	ended := string(fields[0]) == "Z" || string(fields[0]) == "X"
	return !ended || string(fields[17]) != "0" && string(fields[17]) != "1"
}

// statOf returns what /proc says of a process, from its state on, or nil: "pid (name) state parent group session tty
// foreground flags 4×faults 4×times priority nice threads …".
func statOf(pid int) [][]byte {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return nil
	}
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name may hold anything
}
