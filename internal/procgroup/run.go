//go:build unix

package procgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

const (
	// DefaultKillAfter is what passes between SIGTERM and SIGKILL when Spec.KillAfter is nil.
	DefaultKillAfter = 10 * time.Second

	linger   = 500 * time.Millisecond // for background children, and for output held open from outside the group
	giveUp   = 2 * time.Second        // after SIGKILL, for what does not end
	longPoll = 20 * time.Millisecond  // between two looks at Alive and at the group
)

// Spec says what to run and how to end it. Only Argv is required.
type Spec struct {
	Argv []string // program and arguments; a program without a slash is looked up in this process's PATH
	Env  []string // "NAME=value", a later one wins; nil is this process's environment
	Dir  string   // working directory; empty is this process's

	// Output gets each line that the command writes, without its newline; stream is "stdout" or "stderr". A line longer
	// than MaxLine comes in pieces. Each stream has a goroutine of its own, so two calls may run at once. The line is
	// valid during the call only. While a call lasts the command cannot write much more than 64 KiB. Nil discards.
	Output func(stream string, line []byte)

	// Stdout and Stderr, where set, are handed to the command as they are: Output and Result.Tail get nothing of them.
	Stdout, Stderr *os.File

	// Guardian, where set, kills the group when this process dies before it.
	Guardian *Guardian

	// KillAfter is asked once, when the context has ended, how long after SIGTERM the SIGKILL follows; cause is the
	// context's. Zero or less is at once; nil is DefaultKillAfter.
	KillAfter func(cause error) time.Duration

	// Alive is asked every 20 ms between SIGTERM and SIGKILL; when it answers false SIGKILL follows at once. It must not
	// block. Nil is true.
	Alive func() bool
}

// Result says how a command has ended.
type Result struct {
	ExitCode int            // as a shell has it: 128 + the signal's number after a signal
	Signal   syscall.Signal // what has killed the command; 0 when it has exited
	Cause    error          // the context's cause, when that is why the group was told to end; else nil
	Leftover bool           // a process of the group has outlived SIGKILL; see the package comment
	Tail     []byte         // the last 4 KiB of output, both streams, in the order they were read
}

// String says how the command has ended: "exit status 3", "killed by signal 9 (killed)".
func (r Result) String() string {
	if r.Signal != 0 {
		return fmt.Sprintf("killed by signal %d (%v)", int(r.Signal), r.Signal)
	}
	return fmt.Sprintf("exit status %d", r.ExitCode)
}

// Err is nil for exit status 0, and an error with the text of String otherwise.
func (r Result) Err() error {
	if r.ExitCode == 0 {
		return nil
	}
	return errors.New(r.String())
}

// Run starts the command and returns when it and its group have ended. An error means that it was not started: a
// *StartError, or the cause of a context that had ended before. Whatever the command does after its start is told by
// Result alone; a group that was told to end may still have exited with status 0. Run is safe for concurrent use.
func Run(ctx context.Context, spec Spec) (Result, error) {
	if ctx.Err() != nil {
		return Result{}, fmt.Errorf("procgroup: not started: %w", context.Cause(ctx))
	}
	c, err := start(spec)
	if err != nil {
		return Result{}, err
	}
	var res Result
	select {
	case <-c.exited:
	case <-ctx.Done():
	}
	wait := linger
	if c.running() {
		res.Cause, wait = context.Cause(ctx), DefaultKillAfter
		if spec.KillAfter != nil {
			wait = spec.KillAfter(res.Cause)
		}
	}
	res.Leftover = !c.end(wait, spec.Alive)
	res.Tail = c.finish()
	res.ExitCode, res.Signal = status(c.cmd)
	return res, nil
}

// status reads how a reaped command has ended.
func status(cmd *exec.Cmd) (code int, sig syscall.Signal) {
	if cmd.ProcessState == nil {
		return 255, 0 // another part of the program has reaped it
	}
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ok && ws.Signaled() {
		return 128 + int(ws.Signal()), ws.Signal()
	}
	return cmd.ProcessState.ExitCode(), 0
}
