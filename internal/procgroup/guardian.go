//go:build unix

package procgroup

import (
	"crypto/rand"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// GuardianWord is the one argument with which this program is started as its own guardian: main calls Guard then.
const GuardianWord = "guardian"

// Mark is the variable by which a guardian recognises what a command has started before its group was known.
const Mark = "SINGLETON_GUARD"

// guardianPause is what passes between the end of a guardian and the start of another.
const guardianPause = 100 * time.Millisecond

// Guardian is a process that outlives this one for a moment: it knows the groups of the running commands and kills them
// when this process has died, however it died. One serves all commands. Its methods are safe for concurrent use; Close
// ends it.
type Guardian struct {
	log     *slog.Logger
	name    string // of this guardian, in marks
	closing chan struct{}
	kept    chan struct{} // closed when keep has returned

	mu      sync.Mutex
	groups  map[int]bool
	forks   map[string]bool // marks of commands that are being started
	count   int             // of marks
	process *os.Process     // nil while none runs
	pipe    *os.File        // its standard input; nobody else holds this end
}

// StartGuardian starts this program again with GuardianWord as its one argument. A guardian that ends before Close is
// followed by another.
func StartGuardian(log *slog.Logger) (*Guardian, error) {
	g := &Guardian{
		log: log, name: rand.Text(), closing: make(chan struct{}), kept: make(chan struct{}),
		groups: map[int]bool{}, forks: map[string]bool{},
	}
	cmd, err := g.start()
	if err != nil {
		return nil, err
	}
	go g.keep(cmd)
	return g, nil
}

// Close ends the guardian, which kills what groups are left, and waits for its end.
func (g *Guardian) Close() {
	close(g.closing)
	g.mu.Lock()
	pipe := g.pipe
	g.pipe = nil
	g.mu.Unlock()
	if pipe != nil {
		_ = pipe.Close()
	}
	<-g.kept
}

// start starts a guardian that knows all groups.
func (g *Guardian) start() (*exec.Cmd, error) {
	path, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("procgroup: cannot start a guardian: %w", err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("procgroup: cannot start a guardian: %w", err)
	}
	defer r.Close()
	cmd := exec.Command(path, GuardianWord)
	cmd.Args[0] = "singleton"
	cmd.Stdin, cmd.Dir = r, "/"
	cmd.Env = []string{"GOMAXPROCS=1"} // and none of the secrets of this one
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := fork(cmd); err != nil {
		_ = w.Close()
		return nil, fmt.Errorf("procgroup: cannot start a guardian: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.process, g.pipe = cmd.Process, w
	for mark := range g.forks {
		g.tell("?" + mark)
	}
	for pgid := range g.groups {
		g.tell("+" + strconv.Itoa(pgid))
	}
	return cmd, nil
}

// keep waits for the guardian, and starts another where that one has ended too early.
func (g *Guardian) keep(cmd *exec.Cmd) {
	defer close(g.kept)
	for {
		err := cmd.Wait()
		forget(cmd)
		g.mu.Lock()
		if g.pipe != nil {
			_ = g.pipe.Close()
		}
		g.process, g.pipe = nil, nil
		g.mu.Unlock()
		for again := false; !again; {
			timer := time.NewTimer(guardianPause)
			select {
			case <-g.closing:
				timer.Stop()
				return
			case <-timer.C:
			}
			g.log.Error("the guardian of the commands has ended; starting another", "error", err)
			cmd, err = g.start()
			again = err == nil
		}
		select {
		case <-g.closing: // Close may not have seen the pipe of this one
			g.mu.Lock()
			if g.pipe != nil {
				_ = g.pipe.Close()
				g.pipe = nil
			}
			g.mu.Unlock()
		default:
		}
	}
}

// expect is called before a command is forked, and returns its mark. Whoever bears it is killed if this process dies before
// it has said which group the command is.
func (g *Guardian) expect() (mark string) {
	if g == nil {
		return ""
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.count++
	mark = g.name + "." + strconv.Itoa(g.count)
	g.forks[mark] = true
	g.tell("?" + mark)
	return mark
}

// add has a group killed if this process dies, in place of its mark. A group of 0 is that of a command which could not be
// started.
func (g *Guardian) add(pgid int, mark string) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if pgid > 0 {
		g.groups[pgid] = true
		g.tell("+" + strconv.Itoa(pgid))
	}
	delete(g.forks, mark)
	g.tell("!" + mark)
}

// remove takes back add, once the group has ended.
func (g *Guardian) remove(pgid int) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.groups, pgid)
	g.tell("-" + strconv.Itoa(pgid))
}

// tell writes a word to the guardian, without waiting; mu is held. A guardian that does not read is replaced.
func (g *Guardian) tell(word string) {
	if g.pipe == nil {
		return // the next one is told everything
	}
	conn, err := g.pipe.SyscallConn()
	if err == nil {
		var failed error
		err = conn.Write(func(fd uintptr) bool {
			_, failed = unix.Write(int(fd), []byte(word+"\n")) // all or nothing: shorter than PIPE_BUF
			return true
		})
		if err == nil {
			err = failed
		}
	}
	if err != nil {
		_ = g.process.Kill() // it may be frozen; one that has ended is no matter
	}
}
