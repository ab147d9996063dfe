//go:build unix

package soak

import (
	"bufio"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// replica is one `singleton cron` process and its log.
type replica struct {
	name string
	cmd  *exec.Cmd
	done chan struct{}

	mu      sync.Mutex
	elected []time.Time
	log     strings.Builder
}

// launch starts a replica; its log, JSON lines, is read as it comes.
func launch(t testing.TB, binary, name string, args ...string) *replica {
	t.Helper()
	r := &replica{name: name, cmd: exec.Command(binary, args...), done: make(chan struct{})}
	logs, err := r.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.SysProcAttr = attributes()
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(r.done)
		r.read(logs)
		_ = r.cmd.Wait()
	}()
	t.Cleanup(r.kill)
	return r
}

func (r *replica) read(logs io.Reader) {
	for s := bufio.NewScanner(logs); s.Scan(); {
		var entry struct {
			Time    time.Time `json:"time"`
			Message string    `json:"msg"`
		}
		_ = json.Unmarshal(s.Bytes(), &entry)
		r.mu.Lock()
		if entry.Message == "elected" {
			r.elected = append(r.elected, entry.Time)
		}
		r.log.Write(s.Bytes())
		r.log.WriteByte('\n')
		r.mu.Unlock()
	}
}

// electedAfter returns when the replica was first elected after t.
func (r *replica) electedAfter(t time.Time) (time.Time, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, at := range r.elected {
		if at.After(t) {
			return at, true
		}
	}
	return time.Time{}, false
}

func (r *replica) logs() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.log.String()
}

func (r *replica) signal(sig syscall.Signal) { _ = r.cmd.Process.Signal(sig) }

// kill ends the replica as a crash does; it may have ended.
func (r *replica) kill() {
	r.signal(syscall.SIGKILL)
	<-r.done
}

// term asks the replica to end.
func (r *replica) term() { r.signal(syscall.SIGTERM) }

// stop ends it politely.
func (r *replica) stop(t testing.TB) {
	r.signal(syscall.SIGCONT)
	r.signal(syscall.SIGTERM)
	<-r.done
	if code := r.cmd.ProcessState.ExitCode(); code != 0 {
		t.Errorf("%s ended with exit code %d after SIGTERM", r.name, code)
	}
}
