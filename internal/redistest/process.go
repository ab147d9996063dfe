//go:build unix

package redistest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
)

var errPortTaken = errors.New("redistest: port taken")

// process is a running redis-server and what it has said.
type process struct {
	command *exec.Cmd
	sign    []byte        // what it says when it is ready
	ready   chan struct{} // closed when it has said that it is
	done    chan struct{} // closed when it has ended

	mu   sync.Mutex
	said bytes.Buffer
	seen bool
}

// Write takes what the process says.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen {
		return len(b), nil
	}
	p.said.Write(b)
	if bytes.Contains(p.said.Bytes(), p.sign) {
		p.seen = true
		close(p.ready)
	}
	return len(b), nil
}

func (p *process) wait(ctx context.Context) error {
	select {
	case <-p.ready:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("redistest: redis-server is not ready in time: %w\n%s", ctx.Err(), p.log())
	case <-p.done:
	}
	if bytes.Contains(p.log(), []byte("Address already in use")) {
		return errPortTaken
	}
	return fmt.Errorf("redistest: redis-server ended at once: %v\n%s", p.command.ProcessState, p.log())
}

func (p *process) log() []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	return bytes.Clone(p.said.Bytes())
}

// signal does nothing to a process that has ended: its id may be another's by now.
func (p *process) signal(sig syscall.Signal) {
	_ = p.command.Process.Signal(sig)
}
