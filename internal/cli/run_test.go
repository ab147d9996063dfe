package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
)

// groups returns the process groups that the commands of `singleton run` have written so far, the newest last.
func (p *process) groups() []int {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []int
	for _, l := range p.lines {
		if text, ok := strings.CutPrefix(l, "group "); ok {
			if n, err := strconv.Atoi(text); err == nil && n > 1 {
				all = append(all, n)
			}
		}
	}
	return all
}

// nth waits until a command has been started n times and returns the group of the last.
func (p *process) nth(n int) int {
	p.t.Helper()
	until(p.t, "the command is started", func() bool { return len(p.groups()) >= n })
	return p.groups()[n-1]
}

// leads starts `singleton run` with a shell command.
func leads(t *testing.T, url, script string, flags ...string) *process {
	t.Helper()
	args := append([]string{"run", "--group", "g", "--store", url}, flags...)
	return start(t, nil, append(args, "--", "sh", "-c", script)...)
}

func none(t *testing.T, group int) {
	t.Helper()
	if left := living(t, group); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

func TestRunHasTheExitCodeOfItsCommand(t *testing.T) {
	t.Parallel()
	plain := write(t, "plain", "echo no\n")
	for _, c := range []struct {
		command []string
		code    int
		said    string
	}{
		{[]string{"true"}, 0, ""},
		{[]string{"sh", "-c", "exit 7"}, 7, ""},
		{[]string{"sh", "-c", "kill -9 $$"}, 137, ""},
		{[]string{"no-such-program-here"}, exitNotFound, `singleton: run: cannot start "no-such-program-here": not found in PATH`},
		{[]string{"/no/such/program"}, exitNotFound, `cannot start "/no/such/program": not found`},
		{[]string{plain}, exitNotExecutable, "not executable: permission denied"},
		{[]string{filepath.Dir(plain)}, exitNotExecutable, "cannot start"},
		{nil, exitOurs, "COMMAND is missing; see singleton run --help"},
	} {
		p := start(t, nil, append([]string{"run", "--group", "g", "--store", "memory:", "--"}, c.command...)...)
		if code := p.exit(); code != c.code {
			t.Errorf("%q: exit code %d, want %d", c.command, code, c.code)
		}
		if !strings.Contains(p.output(), c.said) {
			t.Errorf("%q: no %q in:\n%s", c.command, c.said, p.output())
		}
	}
}

func TestRunFailsWith125(t *testing.T) {
	server := redistest.Start(t, redistest.Args("--requirepass", "right"))
	for _, args := range [][]string{
		{"run", "true"},
		{"run", "--group", "a b", "true"},
		{"run", "--group", "g", "--grace", "0s", "true"},
		{"run", "--group", "g", "--wait-timeout", "-1s", "true"},
		{"run", "--group", "g", "--no-such-flag", "true"},
		{"run", "--group", "g", "--store", "http://x", "true"},
		{"run", "--group", "g", "--lease", "1ms", "--store", "memory:", "true"},
		{"run", "--group", "g", "--store", server.URL(), "true"},
	} {
		if r := call(t, nil, args...); r.code != exitOurs || !strings.HasPrefix(r.stderr[strings.LastIndex(r.stderr, "singleton: "):], "singleton: run: ") {
			t.Errorf("%q: exit code %d, %s", args, r.code, r.stderr)
		}
	}
}

// TestB73RunHandsOnWhatItHas compares what a command sees and writes; no shell comes between.
func TestB73RunHandsOnWhatItHas(t *testing.T) {
	t.Parallel()
	p := start(t, []string{"SINGLETON_ID=web", "INHERITED=yes", "SINGLETON_LEASE=2s"},
		"run", "--group", "g", "--store", "memory:", "sh", "-c", `env; cat; printf '<%s>\033\n' "$@" >&2; printf end`, "--", "-x", "a b", "$HOME", "100%", "*")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	lines := strings.Split(p.output(), "\n")
	for _, want := range []string{"INHERITED=yes", "SINGLETON_GROUP=g", "<-x>\x1b", "<a b>\x1b", "<$HOME>\x1b", "<100%>\x1b", "<*>\x1b"} {
		if !slices.Contains(lines, want) {
			t.Errorf("no line %q in:\n%s", want, p.output())
		}
	}
	for _, begin := range []string{"SINGLETON_REPLICA=web-", "SINGLETON_TOKEN=1", "end"} {
		if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, begin) }) {
			t.Errorf("no line that begins with %q in:\n%s", begin, p.output())
		}
	}
	if slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l, "SINGLETON_ID=") }) {
		t.Error("SINGLETON_ID is handed on")
	}
}

// TestB70NoProcessOutlivesRun ends `singleton run` in every way there is.
func TestB70NoProcessOutlivesRun(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		code   int // after a stop
	}{"polite": {polite, 143}, "stubborn": {stubborn, 137}} {
		t.Run(name+" when singleton is killed", func(t *testing.T) {
			t.Parallel()
			p := leads(t, "memory:", c.script)
			group := p.nth(1)
			p.signal(syscall.SIGKILL)
			p.exit()
			until(t, "no process is left", func() bool { return len(living(t, group)) == 0 })
		})
		t.Run(name+" at a stop", func(t *testing.T) {
			t.Parallel()
			p := leads(t, "memory:", c.script, "--grace", "500ms")
			group := p.nth(1)
			p.signal(syscall.SIGTERM)
			if code := p.exit(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			none(t, group)
		})
		t.Run(name+" at a second signal", func(t *testing.T) {
			t.Parallel()
			p := leads(t, "memory:", c.script, "--grace", "10m")
			group := p.nth(1)
			p.signal(syscall.SIGINT)
			until(t, "the end, or the second signal is taken for one", func() bool {
				p.signal(syscall.SIGINT)
				_, _, now := p.find("msg=\"stopping now; ")
				_, _, ended := p.find("msg=\"command has ended\"")
				return now || ended
			})
			if code := p.exit(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			none(t, group)
		})
		t.Run(name+" when the network is cut", func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.StartProxy(t, server.Addr())
			p := leads(t, "redis://"+proxy.Addr(), c.script, "--lease", "5s", "--grace", "10m")
			group := p.nth(1)
			other := leads(t, server.URL(), c.script, "--lease", "5s")
			other.await("msg=following")
			proxy.Requests.Drop()
			proxy.Replies.Drop()
			next := other.nth(1)
			none(t, group) // B71: nothing is left when another one leads
			if first, second := p.token(1), other.token(1); second <= first {
				t.Errorf("token %d after %d", second, first)
			}
			proxy.Requests.Pass()
			proxy.Replies.Pass()
			other.signal(syscall.SIGTERM)
			p.nth(2) // and it is started again in the next term
			none(t, next)
		})
		t.Run(name+" when the lease is lost", func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			p := leads(t, server.URL(), c.script, "--lease", "2s", "--grace", "10m")
			group := p.nth(1)
			if n, err := server.Client().Del(t.Context(), "singleton:{g}:lease").Result(); n != 1 || err != nil {
				t.Fatalf("%d keys are deleted, %v", n, err)
			}
			p.nth(2)
			none(t, group)
			if first, second := p.token(1), p.token(2); second <= first {
				t.Errorf("token %d after %d", second, first)
			}
		})
	}
}

// token returns the token of the nth term in which the command was started.
func (p *process) token(n int) uint64 {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.lines {
		if !strings.Contains(l, "command is started") {
			continue
		}
		if n--; n > 0 {
			continue
		}
		_, rest, _ := strings.Cut(l, " token=")
		text, _, _ := strings.Cut(rest, " ")
		token, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			p.t.Fatalf("%s: %v", l, err)
		}
		return token
	}
	p.t.Fatal("no such term")
	return 0
}

// TestB71RunKillsInTime freezes a leader past its lease: what its command still is when it thaws is killed at once.
func TestB71RunKillsInTime(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := leads(t, server.URL(), stubborn, "--lease", "5s", "--grace", "10m")
	group := p.nth(1)
	other := leads(t, server.URL(), polite, "--lease", "5s")
	other.await("msg=following")
	p.signal(syscall.SIGSTOP)
	other.nth(1)
	p.signal(syscall.SIGCONT)
	line := p.await("command is told to end", "lease could not be renewed in time")
	_, after, _ := strings.Cut(line, "kill_after=")
	if !strings.HasPrefix(after, "-") {
		t.Errorf("killed %s after the lease of another one has begun", after)
	}
	p.await("command has ended with the term")
	none(t, group)
}

// TestB72SIGINTWhileRunWaits stops a follower, and one whose store does not answer.
func TestB72SIGINTWhileRunWaits(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	leader := leads(t, server.URL(), polite, "--lease", "60s")
	leader.nth(1)
	stop := func(what string, p *process, sig syscall.Signal) {
		t.Helper()
		began := time.Now()
		p.signal(sig)
		if code := p.exit(); code != 128+int(sig) {
			t.Errorf("%s: exit code %d", what, code)
		}
		t.Logf("%s: ended %v after the signal", what, time.Since(began))
		if len(p.groups()) > 0 {
			t.Errorf("%s: it has led", what)
		}
	}
	p := leads(t, "redis://"+proxy.Addr(), polite, "--lease", "60s")
	p.await("msg=following")
	stop("a follower", p, syscall.SIGINT)
	proxy.Requests.Drop()
	p = leads(t, "redis://"+proxy.Addr(), polite, "--lease", "60s")
	p.await("store does not answer")
	stop("a follower without a store", p, syscall.SIGTERM)
}

func TestRunEndsAfterAWaitAndAfterALoss(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	leader := leads(t, "redis://"+proxy.Addr(), polite, "--lease", "2s", "--exit-on-loss", "--wait-timeout", "1m")
	group := leader.nth(1)
	follower := leads(t, server.URL(), polite, "--wait-timeout", "300ms")
	if code := follower.exit(); code != exitWaited {
		t.Errorf("exit code %d after a wait", code)
	}
	follower.await("singleton: run: waited 300ms for leadership; singleton status --group g says who has it")
	proxy.Requests.Drop()
	if code := leader.exit(); code != exitLost {
		t.Errorf("exit code %d after a loss", code)
	}
	leader.await("singleton: run: leadership was lost: ")
	none(t, group)
}

func TestRunIsNotAmongTheReplicasOnceItHasEnded(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	leader := leads(t, server.URL(), polite)
	leader.nth(1)
	follower := leads(t, server.URL(), polite, "--wait-timeout", "300ms")
	if code := follower.exit(); code != exitWaited {
		t.Errorf("exit code %d of the follower", code)
	}
	leader.signal(syscall.SIGTERM)
	if code := leader.exit(); code != exitSignal+int(syscall.SIGTERM) {
		t.Errorf("exit code %d of the leader", code)
	}
	if r := call(t, nil, "status", "--group", "g", "--store", server.URL()); !strings.Contains(r.stdout, "\nno replicas: ") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
}

func TestRunWaitsAgainAfterALoss(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	p := leads(t, "redis://"+proxy.Addr(), polite, "--lease", "2s", "--wait-timeout", "2s")
	group := p.nth(1)
	proxy.Requests.Drop()
	if code := p.exit(); code != exitWaited {
		t.Errorf("exit code %d", code)
	}
	none(t, group)
}

// TestRunHandsOverAtAStop changes the leader five times in the middle of its command: one runs at a time.
func TestRunHandsOverAtAStop(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	running := filepath.Join(t.TempDir(), "running")
	script := `mkdir ` + running + ` || echo TWO; trap 'rmdir ` + running + `; exit 0' TERM; echo group $$; sleep 1000 & wait`
	run := func() *process { return leads(t, server.URL(), script, "--lease", "5s") }
	leader := run()
	leader.nth(1)
	last := leader.token(1)
	for range 5 {
		next := run()
		next.await("msg=following")
		leader.signal(syscall.SIGTERM)
		if code := leader.exit(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		next.nth(1)
		if _, _, two := next.find("TWO"); two {
			t.Error("two run at once")
		}
		if token := next.token(1); token <= last {
			t.Errorf("token %d after %d", token, last)
		}
		leader, last = next, next.token(1)
	}
	leader.signal(syscall.SIGTERM)
	leader.exit()
	if _, err := os.Stat(running); err == nil {
		t.Error("the last one was not told to end")
	}
}
