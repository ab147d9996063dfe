//go:build unix

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// tale is what happens, a line each.
type tale struct {
	out   io.Writer
	began time.Time
}

func (t tale) tell(who, what string) {
	fmt.Fprintf(t.out, "%5.1f s  %s  %s\n", time.Since(t.began).Seconds(), who, what)
}

// actor is a replica in a process of its own, so that it can be frozen. Each line that it prints becomes one of the tale.
type actor struct {
	tale
	name    string
	process *exec.Cmd
	lines   *bufio.Scanner
	orders  io.Writer
}

func (t tale) start(ctx context.Context, name, store string, args ...string) (*actor, error) {
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, binary, append([]string{"replica", name}, args...)...)
	cmd.Env = append(os.Environ(), storeVariable+"="+store) // others can read the arguments
	cmd.Stderr = os.Stderr
	lines, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	orders, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &actor{t, name, cmd, bufio.NewScanner(lines), orders}, nil
}

// until tells what the replica prints until it is the line last.
func (a *actor) until(last string) error {
	for a.lines.Scan() {
		text := a.lines.Text()
		a.tell(a.name, text)
		if strings.HasPrefix(text, last) {
			return nil
		}
	}
	return errors.Join(fmt.Errorf("replica %s has ended", a.name), a.lines.Err())
}

// proceed lets the replica pass the point between its check and its write, now or when it is thawed.
func (a *actor) proceed() { _, _ = io.WriteString(a.orders, "\n") } // until notices an end

func (a *actor) signal(s syscall.Signal) { _ = a.process.Process.Signal(s) }

func (a *actor) end() {
	_ = a.process.Process.Kill()
	_ = a.process.Wait() // says that it was killed
}
