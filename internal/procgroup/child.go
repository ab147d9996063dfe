//go:build unix

package procgroup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// StartError says which program could not be started, and why.
type StartError struct {
	Program string
	Reason  string // for people: "not found"
	Err     error
}

// Error names the program and the reason.
func (e *StartError) Error() string {
	return fmt.Sprintf("procgroup: cannot start %q: %s", e.Program, e.Reason)
}

// Unwrap returns the error of the operating system.
func (e *StartError) Unwrap() error { return e.Err }

// Find returns a *StartError where a program cannot be started, as far as that can be seen before.
func Find(program string) error {
	if _, err := exec.LookPath(program); err != nil {
		return startError(Spec{Argv: []string{program}}, err)
	}
	return nil
}

func startError(spec Spec, err error) *StartError {
	e := &StartError{Program: spec.Argv[0], Reason: err.Error(), Err: err}
	if spec.Dir != "" {
		// The error of the fork does not say which of the two is missing.
		if info, err := os.Stat(spec.Dir); err != nil {
			e.Reason, e.Err = fmt.Sprintf("no working directory: %v", err), err
			return e
		} else if !info.IsDir() {
			e.Reason = fmt.Sprintf("no working directory: %s is none", spec.Dir)
			return e
		}
	}
	switch {
	case errors.Is(err, exec.ErrNotFound):
		e.Reason = "not found in PATH"
	case errors.Is(err, fs.ErrNotExist):
		e.Reason = "not found, or the interpreter that its first line names is not"
	case errors.Is(err, fs.ErrPermission):
		e.Reason = "not executable: permission denied"
	case errors.Is(err, syscall.ENOEXEC):
		e.Reason = "not executable: no program, and no script that starts with #!"
	}
	return e
}

// child is a started command with its group and its output.
type child struct {
	cmd     *exec.Cmd
	group   group
	guard   *Guardian
	exited  chan struct{} // closed once the command has been reaped
	streams []*stream
	tail    tail
	tasks   sync.WaitGroup // the goroutine that waits for the command, and one for each stream
}

// start starts the command. The caller goes on to end and finish.
func start(spec Spec) (*child, error) {
	if len(spec.Argv) == 0 {
		return nil, &StartError{Reason: "no program is given", Err: exec.ErrNotFound}
	}
	c := &child{cmd: exec.Command(spec.Argv[0], spec.Argv[1:]...), exited: make(chan struct{}), guard: spec.Guardian}
	c.cmd.Env, c.cmd.Dir, c.cmd.SysProcAttr = spec.Env, spec.Dir, c.group.attributes()

	var err error
	for _, out := range []struct {
		name string
		file *os.File
		to   *io.Writer
	}{{"stdout", spec.Stdout, &c.cmd.Stdout}, {"stderr", spec.Stderr, &c.cmd.Stderr}} {
		if *out.to = out.file; out.file != nil || err != nil {
			continue
		}
		var pipe *os.File
		if pipe, err = c.open(out.name, spec.Output); err == nil {
			*out.to = pipe
			defer pipe.Close()
		}
	}
	if err == nil {
		started := make(chan error, 1)
		c.tasks.Go(func() { c.keep(started) })
		err = <-started
	}
	if err != nil {
		for _, s := range c.streams {
			s.close()
		}
		c.tasks.Wait()
		return nil, startError(spec, err)
	}
	for _, s := range c.streams {
		c.tasks.Go(s.copy)
	}
	return c, nil
}

// keep forks the command and waits for it, both on one thread: when the thread that has forked ends, Linux takes its
// parent for dead and kills the command.
func (c *child) keep(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	mark := c.guard.expect()
	if mark != "" {
		c.cmd.Env = append(c.cmd.Environ(), Mark+"="+mark)
	}
	err := fork(c.cmd)
	if err == nil {
		c.group.pgid = c.cmd.Process.Pid
	}
	c.guard.add(c.group.pgid, mark)
	started <- err
	if err != nil {
		return
	}
	_ = c.cmd.Wait() // the exit status is in ProcessState
	forget(c.cmd)
	close(c.exited)
}

// running reports whether the command has not been reaped yet.
func (c *child) running() bool {
	select {
	case <-c.exited:
		return false
	default:
		return true
	}
}

// gone reports whether the command and its whole group have ended.
func (c *child) gone() bool {
	return !c.running() && c.group.gone()
}

// end ends the group: SIGTERM, and SIGKILL once wait has passed or alive says no. It answers false when something of
// the group is left.
func (c *child) end(wait time.Duration, alive func() bool) bool {
	if c.gone() {
		return true
	}
	_ = c.group.signal(syscall.SIGTERM)
	killAt := time.Now().Add(wait)
	var killed time.Time
	for poll := time.Millisecond; !c.gone(); poll = min(2*poll, longPoll) {
		now := time.Now()
		if killed.IsZero() && (!now.Before(killAt) || alive != nil && !alive()) {
			killed = now
		}
		if !killed.IsZero() {
			_ = c.group.signal(syscall.SIGKILL)
			if !c.running() && now.Sub(killed) > giveUp {
				return false
			}
		}
		c.pause(poll)
	}
	return true
}

// pause waits for d, or less when the command is reaped meanwhile.
func (c *child) pause(d time.Duration) {
	exited := c.exited
	if !c.running() {
		exited = nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-exited:
	case <-timer.C:
	}
}

// finish reads what output is left, ends every goroutine, and returns the end of the output.
func (c *child) finish() []byte {
	for _, s := range c.streams {
		s.hurry()
	}
	c.tasks.Wait()
	c.guard.remove(c.group.pgid)
	c.group.close()
	return c.tail.bytes()
}
