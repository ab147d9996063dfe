//go:build unix

package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// look is how often Wait asks whether the process is ready.
const look = 10 * time.Millisecond

// ErrEnded is in the error of Wait when the process has ended instead of becoming ready.
var ErrEnded = errors.New("the process has ended")

// Command says what to run.
type Command struct {
	Args   []string  // the program, found on the PATH, and its arguments
	Env    []string  // "name=value", beside the environment of this process and instead of what has the same name there
	Dir    string    // where it runs; "" is where this process does
	Output io.Writer // gets what the process says, in one Write at a time; nil is nobody
}

// Process is a place for one process at a time; the zero value has none. Its methods are safe for concurrent use, but
// Launch, Wait and Kill are meant for one goroutine at a time.
type Process struct {
	mu  sync.Mutex
	run *run // the last that was launched; nil when none was
}

// run is a process from its start to its end.
type run struct {
	command *exec.Cmd
	said    output
	done    chan struct{} // closed when it has ended
}

// Launch kills the process, if there is one, and starts another.
func (p *Process) Launch(c Command) error {
	p.Kill()
	r := &run{command: exec.Command(c.Args[0], c.Args[1:]...), said: output{copy: c.Output}, done: make(chan struct{})}
	r.command.Env = append(os.Environ(), c.Env...)
	r.command.Dir = c.Dir
	r.command.Stdout, r.command.Stderr = &r.said, &r.said
	r.command.SysProcAttr = attributes()
	if err := r.start(); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.run = r
	return nil
}

// start starts the process on a thread that lives as long as the process does: the kernel takes the end of that thread
// for the death of the parent.
func (r *run) start() error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer close(r.done)
		err := r.command.Start()
		started <- err
		if err == nil {
			_ = r.command.Wait() // says how it was killed
		}
	}()
	return <-started
}

// Wait waits until ready answers true. When the process ends before that, or ready does not within limit, the process is
// killed and the error has what it said.
func (p *Process) Wait(limit time.Duration, ready func() bool) error {
	r := p.last()
	if r == nil {
		return errors.New("no process was launched")
	}
	over := time.NewTimer(limit)
	defer over.Stop()
	for !ready() {
		select {
		case <-time.After(look):
			continue
		case <-r.done:
			return fmt.Errorf("%w: %v\n%s", ErrEnded, r.command.ProcessState, r.said.String())
		case <-over.C:
			p.Kill()
			return fmt.Errorf("%s is not ready after %v\n%s", r.command.Args[0], limit, r.said.String())
		}
	}
	return nil
}

// Output returns the last 64 KiB of what the process has said, also when it has ended.
func (p *Process) Output() string {
	if r := p.last(); r != nil {
		return r.said.String()
	}
	return ""
}

// Stop freezes the process (SIGSTOP): connections are still accepted by the kernel, and nothing is answered.
func (p *Process) Stop() { p.Signal(syscall.SIGSTOP) }

// Cont thaws the process (SIGCONT).
func (p *Process) Cont() { p.Signal(syscall.SIGCONT) }

// Kill ends the process as a crash does (SIGKILL) and waits until it is gone.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	if r := p.last(); r != nil {
		<-r.done
	}
}

// Signal sends a signal to the process. It does nothing to one that has ended: its number may be another's by now.
func (p *Process) Signal(sig syscall.Signal) {
	if r := p.last(); r != nil {
		_ = r.command.Process.Signal(sig)
	}
}

// Pid returns the number of the process, 0 when none was launched.
func (p *Process) Pid() int {
	if r := p.last(); r != nil {
		return r.command.Process.Pid
	}
	return 0
}

func (p *Process) last() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}
