package demo

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// event is something that a replica's log says: it was elected (token is not 0), or it schedules, which is when the ledger
// has its job; or its process has exited.
type event struct {
	replica   *replica
	at        time.Time
	token     uint64
	schedules bool
	exited    error

	expected *bool // whether that end was
}

// replica is a `singleton cron` process; it may be started again after it has ended.
type replica struct {
	name        string
	command     []string
	environment []string
	events      chan<- event

	process  *exec.Cmd
	done     chan struct{}
	expected *bool // whether the end of this process is

	mu   sync.Mutex
	last []string // lines of its log
}

func (r *replica) start() error {
	r.process = exec.Command(r.command[0], r.command[1:]...)
	r.process.Env = r.environment
	r.process.SysProcAttr = attributes()
	logs, err := r.process.StderrPipe()
	if err != nil {
		return fmt.Errorf("start %s: %w", r.name, err)
	}
	if err := r.process.Start(); err != nil {
		return fmt.Errorf("start %s: %w", r.name, err)
	}
	process, done, expected := r.process, make(chan struct{}), new(bool)
	r.done, r.expected = done, expected
	go func() {
		r.follow(logs)
		err := process.Wait()
		if err == nil {
			err = fmt.Errorf("exit status 0")
		}
		close(done)
		r.events <- event{replica: r, at: time.Now(), exited: err, expected: expected} // another process may have been started
	}()
	return nil
}

// follow reads the log as it comes.
func (r *replica) follow(logs io.Reader) {
	for s := bufio.NewScanner(logs); s.Scan(); {
		var entry struct {
			Time    time.Time `json:"time"`
			Message string    `json:"msg"`
			Token   uint64    `json:"token"`
		}
		if json.Unmarshal(s.Bytes(), &entry) == nil {
			switch entry.Message {
			case "elected":
				r.events <- event{replica: r, at: entry.Time, token: entry.Token}
			case "scheduling":
				r.events <- event{replica: r, at: entry.Time, schedules: true}
			}
		}
		r.mu.Lock()
		if r.last = append(r.last, s.Text()); len(r.last) > 10 {
			r.last = r.last[1:]
		}
		r.mu.Unlock()
	}
}

func (r *replica) lastLines() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.last, "\n")
}

// kill ends it as a crash does; it may have ended.
func (r *replica) kill() {
	if r.process == nil || r.process.Process == nil {
		return
	}
	*r.expected = true
	_ = r.process.Process.Kill()
	r.wait()
}

// terminate asks it to leave, also while it is frozen.
func (r *replica) terminate() {
	*r.expected = true
	r.signal(syscall.SIGCONT)
	r.signal(syscall.SIGTERM)
}

func (r *replica) signal(s syscall.Signal) { _ = r.process.Process.Signal(s) }

// wait waits until its process has ended and its log is read, taking in events meanwhile.
func (r *replica) wait() { <-r.done }

func (r *replica) running() bool {
	select {
	case <-r.done:
		return false
	default:
		return true
	}
}
