package cli

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds every wait of these tests; nothing is expected to come near it.
const patience = 60 * time.Second

// process is a running `singleton`, and all that it has written.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	done chan struct{}

	mu      sync.Mutex
	lines   []string
	changed chan struct{}
}

// start starts the command line as a process of its own; env adds to an environment without settings of ours.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary, args...)
	cmd.Args[0] = "singleton" // see TestMain
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(s string) bool {
		return strings.HasPrefix(s, "SINGLETON_") || strings.HasPrefix(s, "REDIS_URL=")
	}), env...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	p := &process{t: t, cmd: cmd, done: make(chan struct{}), changed: make(chan struct{})}
	go p.read(r)
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // one that has ended is no matter
		<-p.done
		checkSecret(t, "singleton "+args[0], p.output())
		if t.Failed() {
			t.Logf("singleton %s:\n%s", strings.Join(args, " "), p.output())
		}
	})
	return p
}

func (p *process) read(r io.ReadCloser) {
	defer r.Close()
	for s := bufio.NewReader(r); ; {
		text, err := s.ReadString('\n')
		p.mu.Lock()
		if text != "" {
			p.lines = append(p.lines, strings.TrimSuffix(text, "\n"))
		}
		close(p.changed)
		p.changed = make(chan struct{})
		p.mu.Unlock()
		if err != nil {
			break
		}
	}
	_ = p.cmd.Wait()
	close(p.done)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.lines, "\n")
}

// find returns the first line that holds all of parts.
func (p *process) find(parts ...string) (line string, changed <-chan struct{}, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(l, part) }) {
			return l, nil, true
		}
	}
	return "", p.changed, false
}

// await waits for a line that holds all of parts and returns it.
func (p *process) await(parts ...string) string {
	p.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	for {
		line, changed, ok := p.find(parts...)
		if ok {
			return line
		}
		select {
		case <-changed:
		case <-p.done:
			if line, _, ok := p.find(parts...); ok {
				return line
			}
			p.t.Fatalf("ended without a line with %q", parts)
		case <-limit.C:
			p.t.Fatalf("no line with %q", parts)
		}
	}
}

// signal sends a signal.
func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Fatal(err)
	}
}

// exit waits for the end and returns the exit code; -1 after a signal.
func (p *process) exit() int {
	p.t.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(patience):
		p.t.Fatal("the process does not end")
		return 0
	}
}

// until waits for a condition that no event tells.
func until(t *testing.T, what string, condition func() bool) {
	t.Helper()
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for limit := time.Now().Add(patience); !condition(); <-ticker.C {
		if time.Now().After(limit) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// lead waits until one of two processes leads and returns it first.
func lead(t *testing.T, a, b *process) (leader, follower *process) {
	t.Helper()
	until(t, "somebody leads", func() bool {
		for _, p := range []*process{a, b} {
			if _, _, ok := p.find("msg=elected"); ok {
				leader, follower = p, map[bool]*process{true: b, false: a}[p == a]
				return true
			}
		}
		return false
	})
	return leader, follower
}

// group returns the number that a command has written after "group".
func (p *process) group() int {
	p.t.Helper()
	line := p.await("msg=output", "line=\"group ")
	_, text, _ := strings.Cut(line, `line="group `)
	n, err := strconv.Atoi(strings.TrimSuffix(text, `"`))
	if err != nil || n < 2 {
		p.t.Fatalf("%q names no process group", line)
	}
	return n
}

// living returns the processes of a group that are not dead.
func living(t *testing.T, group int) []string {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	if len(stats) == 0 { // no Linux
		if syscall.Kill(-group, 0) == nil {
			return []string{strconv.Itoa(group)}
		}
		return nil
	}
	var found []string
	for _, name := range stats {
		text, err := os.ReadFile(name)
		if err != nil {
			continue // has ended meanwhile
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) > 2 && fields[0] != "Z" && fields[0] != "X" && fields[2] == strconv.Itoa(group) {
			found = append(found, string(text))
		}
	}
	return found
}
