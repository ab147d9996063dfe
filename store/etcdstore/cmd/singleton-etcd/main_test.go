//go:build unix

package main

import (
	"bytes"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/procgroup"
	"github.com/go-singleton/singleton/internal/rivals"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

// TestMain is the program instead of its tests where the test binary was started under the name "singleton", or by it.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "singleton" || len(os.Args) == 2 && os.Args[1] == procgroup.GuardianWord {
		main()
	}
	flag.Parse()
	os.Exit(m.Run())
}

// program returns a path of this program.
func program(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	path := filepath.Join(t.TempDir(), "singleton")
	if err := errors.Join(err, os.Symlink(self, path)); err != nil {
		t.Fatal(err)
	}
	return path
}

// process is a running program, and what it has written.
type process struct {
	*testing.T
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended

	mu   sync.Mutex
	text bytes.Buffer
}

// start starts the program on a group.
func start(t *testing.T, url, command string, args ...string) *process {
	t.Helper()
	p := &process{T: t, cmd: exec.Command(program(t), append([]string{command, "--group", "g", "--store", url}, args...)...),
		done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p, p
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait() // the exit code is asked for
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.done
		if t.Failed() {
			t.Logf("%s %s:\n%s", command, strings.Join(args, " "), p.output())
		}
		if strings.Contains(p.output(), "s3cret") {
			t.Errorf("%s shows a password", command)
		}
	})
	return p
}

// Write takes what the program writes.
func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

func (p *process) signal(sig syscall.Signal) {
	p.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.Fatal(err)
	}
}

// exit waits for the end and returns the exit code.
func (p *process) exit() int {
	p.Helper()
	select {
	case <-p.done:
		return p.cmd.ProcessState.ExitCode()
	case <-time.After(rivals.Patience):
		p.Fatal("the program does not end")
		return 0
	}
}

// await waits until the program has written all of parts.
func (p *process) await(parts ...string) {
	p.Helper()
	rivals.Until(p.T, strings.Join(parts, " and "), func() bool { return p.wrote(parts...) })
}

func (p *process) wrote(parts ...string) bool {
	text := p.output()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// say runs a command to its end and returns what it writes.
func say(t *testing.T, code int, url, command string, args ...string) string {
	t.Helper()
	p := start(t, url, command, args...)
	if got := p.exit(); got != code {
		t.Errorf("%s: exit code %d, want %d\n%s", command, got, code, p.output())
	}
	return p.output()
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestEveryCommandOnEtcd runs a crontab on two replicas, asks for everything there is to ask for, and kills the leader.
func TestEveryCommandOnEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	url := "etcd://" + server.Addr() + "/cron"
	file := write(t, "jobs.cron", "#: name=tick\n* * * * * * true\n#: name=yearly\n0 0 0 1 1 * echo happy\n#: name=slow\n0 0 0 1 1 * sleep 1000\n")
	all := []*process{start(t, url, "cron", "--seconds", "--lease", "2s", file), start(t, url, "cron", "--seconds", "--lease", "2s", file)}
	var leader, follower *process
	rivals.Until(t, "somebody leads", func() bool {
		for i, p := range all {
			if p.wrote("msg=elected") {
				leader, follower = p, all[1-i]
			}
		}
		return leader != nil
	})
	leader.await("job=tick", "outcome=succeeded")
	for _, c := range []struct {
		code int
		args string
		want string
	}{
		{0, "status", " leads"},
		{0, "doctor", "the records of 3 jobs"},
		{0, "trigger yearly --wait", "succeeded"},
		{0, "history yearly", "succeeded"},
		{0, "pause tick", "tick: paused"},
		{5, "pause none", "there is no job"},
		{0, "resume tick", "tick: resumed"},
		{0, "trigger slow", "accepted"},
		{0, "cancel slow", "slow: told to end"},
		{0, "reset slow", "slow: starts from now"},
		{0, "resign", "g: the leader steps down"},
	} {
		args := strings.Fields(c.args)
		if got := say(t, c.code, url, args[0], args[1:]...); !strings.Contains(got, c.want) {
			t.Errorf("%s: no %q in:\n%s", c.args, c.want, got)
		}
	}
	follower.await("msg=elected")
	follower.signal(syscall.SIGKILL)
	follower.exit()
	rivals.Until(t, "the other leads again", func() bool { return strings.Count(leader.output(), "msg=elected") == 2 })
	leader.signal(syscall.SIGTERM)
	if code := leader.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if got := say(t, 3, url, "status"); !strings.HasPrefix(got, "g: NO LEADER") {
		t.Error(got)
	}
}

// TestRunAndOnceOnEtcd has one leader run a command, hands it over, and starts work on several machines at once.
func TestRunAndOnceOnEtcd(t *testing.T) {
	t.Parallel()
	server := etcdtest.Start(t)
	url := "etcd://" + server.Addr()
	lock := filepath.Join(t.TempDir(), "lock")
	script := "mkdir " + lock + " || echo TWO; trap 'rmdir " + lock + "; exit 0' TERM; echo LEADS; sleep 1000 & wait"
	leader := start(t, url, "run", "--", "sh", "-c", script)
	leader.await("LEADS")
	next := start(t, url, "run", "--", "sh", "-c", script)
	next.await("msg=following")
	leader.signal(syscall.SIGTERM)
	if code := leader.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	next.await("LEADS")
	if next.wrote("TWO") {
		t.Error("two run at once")
	}
	next.signal(syscall.SIGKILL)
	next.exit()

	claims := "etcd://" + server.Addr() + "/once"
	effects := filepath.Join(t.TempDir(), "effects")
	var all []*process
	for range 5 {
		all = append(all, start(t, claims, "once", "--job", "j", "--code", "9", "--", "sh", "-c", "echo done >> "+effects))
	}
	codes := map[int]int{}
	for _, p := range all {
		codes[p.exit()]++
	}
	if text, err := os.ReadFile(effects); err != nil || string(text) != "done\n" || codes[0] != 1 || codes[9] != 4 {
		t.Errorf("exit codes and how many have them: %v; this was done: %q, %v", codes, text, err)
	}
}

func TestSEC7URLsOfEtcdAreNotRepeated(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"etcd://u:s3cret/@h":          "want etcd://",
		"etcd://u:s3cret@127.0.0.1:1": "the store etcd://u:xxxxx@127.0.0.1:1 (--store) cannot be asked: ",
		"http://u:s3cret@h":           "are not supported",
	} {
		p := start(t, url, "status")
		if code := p.exit(); code == 0 || !strings.Contains(p.output(), want) {
			t.Errorf("%s: exit code %d\n%s", url, code, p.output())
		}
	}
}
