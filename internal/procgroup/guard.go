//go:build unix

package procgroup

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Guard is what a guardian does, from the start of its process to its end: it reads which groups there are from standard
// input, until that ends because the process that holds the other end has died or closes it, and kills those that are
// left. It returns an exit code.
func Guard() int {
	if info, err := os.Stdin.Stat(); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		fmt.Fprintln(os.Stderr, "singleton: "+GuardianWord+": this is for singleton itself: it starts one, which ends what commands are left when it is killed")
		return 2
	}
	// Nothing but the end of the pipe ends it: a service manager signals all processes of a service, and those that are
	// to be killed may take their time.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	closeInherited()
	// Nor does it bear the name of who it outlives: `pkill -9 singleton` and `killall -9 singleton` are to leave it. Where
	// there is no such file the name stays.
	_ = os.WriteFile("/proc/self/comm", []byte(GuardianWord), 0)
	guard(os.Stdin, os.Getppid())
	return 0
}

// How often, and how many times, a guardian looks for the marks of commands that were just being started.
const (
	looks     = 10
	lookEvery = 20 * time.Millisecond
)

// guard does the work for the commands of process parent.
func guard(in io.Reader, parent int) {
	groups, marks := map[int]*group{}, map[string]bool{}
	for words := bufio.NewScanner(in); words.Scan(); {
		word := words.Text()
		if word == "" {
			continue
		}
		switch what, text := word[0], word[1:]; what {
		case '?':
			marks[text] = true
		case '!':
			delete(marks, text)
		case '+', '-':
			pgid, err := strconv.Atoi(text)
			if err != nil || pgid < 2 {
				continue
			}
			if old := groups[pgid]; old != nil {
				old.close()
				delete(groups, pgid)
			}
			if what == '+' {
				groups[pgid] = adopted(pgid, parent)
			}
		}
	}
	for _, g := range groups {
		_ = g.signal(syscall.SIGKILL) // one that has ended is no matter
	}
	// The kernel kills a command that has just been forked when the thread that forked it dies, which may be a little
	// later than the pipe ends: what it starts until then is found by its mark.
	for range looks {
		if len(marks) == 0 {
			return
		}
		for _, pgid := range marked(marks) {
			_ = syscall.Kill(-pgid, syscall.SIGKILL)
		}
		time.Sleep(lookEvery)
	}
}

// closeInherited closes what other files this process was started with: whoever waits for their end must not wait for
// the guardian. Those of the Go runtime are marked as not to be inherited.
func closeInherited() {
	names, err := filepath.Glob("/dev/fd/*")
	if err != nil {
		return
	}
	for _, name := range names {
		fd, err := strconv.Atoi(filepath.Base(name))
		if err != nil || fd < 3 {
			continue
		}
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
			_ = unix.Close(fd)
		}
	}
}
