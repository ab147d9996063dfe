package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-singleton/singleton/internal/redistest"
)

// claims starts `singleton once` for the job "j", or that of the flags, with a shell command.
func claims(t *testing.T, url, script string, flags ...string) *process {
	t.Helper()
	args := append([]string{"once", "--group", "g", "--job", "j", "--store", url}, flags...)
	return start(t, nil, append(args, "--", "sh", "-c", script)...)
}

// TestOnceRunsOnOneOfTwentyMachines starts twenty processes at once, three times.
func TestOnceRunsOnOneOfTwentyMachines(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	effects := filepath.Join(t.TempDir(), "effects")
	for round := range 3 {
		job := fmt.Sprintf("j%d", round)
		var all []*process
		for i := range 20 {
			all = append(all, claims(t, server.URL(), "echo $SINGLETON_JOB $SINGLETON_REPLICA >> "+effects, "--job", job, "--code", "9",
				"--id", fmt.Sprintf("m%d", i)))
		}
		var ran []string
		for i, p := range all {
			switch code := p.exit(); code {
			case 0:
				ran = append(ran, fmt.Sprintf("%s m%d-", job, i))
			case 9:
				p.await("claimed by another machine; nothing to do", "job="+job, "replica=m", "at=20", "ago=", "per=1h0m0s")
			default:
				t.Errorf("m%d: exit code %d", i, code)
			}
		}
		text, err := os.ReadFile(effects)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		if len(lines) != round+1 || len(ran) != 1 || !strings.HasPrefix(lines[round], ran[0]) {
			t.Fatalf("%q exited with 0, and this was done: %q", ran, lines)
		}
		r := call(t, nil, "history", "--group", "g", "--store", server.URL(), "--json", job)
		if strings.Count(r.stdout, "\n") != 1 || !strings.Contains(r.stdout, `"reason":"once","outcome":"succeeded"`) {
			t.Errorf("exit code %d, %s%s", r.code, r.stdout, r.stderr)
		}
	}
}

func TestOnceHasTheExitCodeOfItsCommand(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	for i, c := range []struct {
		script  string
		code    int
		outcome string
	}{
		{"true", 0, "succeeded"}, {"exit 7", 7, "failed: exit status 7"}, {"kill -9 $$", 137, "failed: killed by signal 9 (killed)"},
	} {
		job := fmt.Sprintf("j%d", i)
		p := claims(t, server.URL(), c.script, "--job", job)
		if code := p.exit(); code != c.code {
			t.Errorf("%s: exit code %d, want %d", c.script, code, c.code)
		}
		if r := call(t, nil, "history", "--group", "g", "--store", server.URL(), job); !strings.Contains(r.stdout, c.outcome) {
			t.Errorf("%s: no %q in:\n%s%s", c.script, c.outcome, r.stdout, r.stderr)
		}
	}
	if r := call(t, nil, "history", "--group", "g", "--store", server.URL(), "--json"); strings.Contains(r.stdout, "late_seconds") {
		t.Errorf("a claim is never late:\n%s", r.stdout)
	}
	again := claims(t, server.URL(), "exit 7", "--job", "j1")
	if code := again.exit(); code != 0 {
		t.Errorf("exit code %d of who finds it claimed", code)
	}
	again.await("claimed by another machine")
	quiet := claims(t, server.URL(), "exit 7", "--job", "j1", "--log-level", "warn")
	if code := quiet.exit(); code != 0 || quiet.output() != "" {
		t.Errorf("exit code %d, %q", code, quiet.output())
	}

	env := map[string]string{"SINGLETON_STORE": server.URL(), "SINGLETON_GROUP": "g"}
	r := call(t, env, "status")
	if r.code != 0 || !strings.HasPrefix(r.stdout, "g: needs no leader, because singleton once starts its jobs\nno replicas: nothing runs now\n"+
		"2 of 3 jobs need attention\n") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := call(t, env, "trigger", "j1"); r.code != exitNoLeader || !strings.Contains(r.stderr, "nobody leads g, and singleton once starts its jobs") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
	if r := call(t, env, "status", "--check"); r.code != exitAttention {
		t.Errorf("exit code %d", r.code)
	}
	var st statusView
	if r := call(t, env, "status", "--json"); json.Unmarshal([]byte(r.stdout), &st) != nil || len(st.Jobs) != 3 || !st.Jobs[0].Once || st.Jobs[0].Attention {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
}

func TestOnceFailsWith125AndRunsNothing(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Args("--requirepass", "right"))
	led := newGroup(t)
	leader := start(t, nil, "cron", "--group", "g", "--store", led.URL(), write(t, "jobs.cron", "@daily true\n"))
	leader.await("msg=scheduling")
	for _, c := range []struct {
		args []string
		said string
	}{
		{[]string{"--job", "j", "--group", "", "true"}, "--group is missing"},
		{[]string{"true"}, "--job is missing"},
		{[]string{"--job", "a b", "true"}, `--job "a b": use 1 to 128 letters`},
		{[]string{"--job", "j"}, "COMMAND is missing"},
		{[]string{"--job", "j", "--per", "1s", "true"}, "--per 1s is too short: at least 2s"},
		{[]string{"--job", "j", "--per", "0s", "true"}, "--per 0s is too short"},
		{[]string{"--job", "j", "--code", "256", "true"}, "--code 256 is out of range"},
		{[]string{"--job", "j", "--history", "0", "true"}, "--history 0 is out of range"},
		{[]string{"--job", "j", "--grace", "0s", "true"}, "--grace 0s is too short"},
		{[]string{"--job", "j", "--store", "memory:", "true"}, "could not look into it"},
		{[]string{"--job", "j", "--store", "redis://:" + canary + "@" + server.Addr(), "true"}, "set those that it knows"},
		{[]string{"--job", "j", "--history", "10001", "true"}, "history of 10001"},
		{[]string{"--job", "j", "--store", led.URL(), "true"}, "not run: a cron or a run leads group"},
	} {
		r := call(t, nil, append([]string{"once", "--group", "g"}, c.args...)...)
		if r.code != exitOurs || !strings.HasPrefix(r.stderr, "singleton: once: ") || !strings.Contains(r.stderr, c.said) {
			t.Errorf("%q: exit code %d, %s", c.args, r.code, r.stderr)
		}
	}
	for command, code := range map[string]int{"no-such-program-here": exitNotFound, write(t, "plain", "no\n"): exitNotExecutable} {
		if r := call(t, nil, "once", "--group", "g", "--job", "j", command); r.code != code || !strings.Contains(r.stderr, "cannot start") {
			t.Errorf("%s: exit code %d, %s", command, r.code, r.stderr)
		}
	}
}

func TestOnceSaysThatTheStoreIsAway(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	proxy.Requests.Reset()
	p := claims(t, "redis://"+proxy.Addr(), "echo was done")
	if code := p.exit(); code != exitOurs {
		t.Errorf("exit code %d", code)
	}
	p.await("singleton: once: not run: the store redis://"+proxy.Addr()+" (--store) cannot be asked: ", "is it running")
	p.await("the store does not answer, trying again", "group=g", "job=j", "wants=claim", "gives_up_after=20s", "error=")
	if _, _, done := p.find("was done"); done {
		t.Error("the command was run")
	}
}

// TestB70NoProcessOutlivesOnce ends it in every way there is; the store is not one of them.
func TestB70NoProcessOutlivesOnce(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		code   int
	}{"polite": {polite, 143}, "stubborn": {stubborn, 137}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			proxy := redistest.StartProxy(t, server.Addr())
			p := claims(t, "redis://"+proxy.Addr(), c.script)
			group := p.nth(1)
			p.signal(syscall.SIGKILL)
			p.exit()
			until(t, "no process is left", func() bool { return len(living(t, group)) == 0 })
			other := claims(t, server.URL(), c.script) // within half of --per
			if code := other.exit(); code != 0 || len(other.groups()) > 0 {
				t.Errorf("exit code %d, groups %v", code, other.groups())
			}

			p = claims(t, "redis://"+proxy.Addr(), c.script, "--job", "k", "--grace", "500ms")
			group = p.nth(1)
			proxy.Requests.Drop()
			proxy.Replies.Drop()
			if left := living(t, group); len(left) == 0 {
				t.Error("the command has ended with the store")
			}
			proxy.Requests.Pass()
			proxy.Replies.Pass()
			p.signal(syscall.SIGTERM)
			if code := p.exit(); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			none(t, group)
			r := call(t, nil, "history", "--group", "g", "--store", server.URL(), "k")
			if !strings.Contains(r.stdout, "interrupted: ") {
				t.Errorf("%s%s", r.stdout, r.stderr)
			}
		})
	}
}

func TestB73OnceHandsOnWhatItHas(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	p := start(t, []string{"SINGLETON_ID=web", "INHERITED=yes"}, "once", "--group", "g", "--job", "j", "--store", server.URL(), "env")
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	for _, want := range []string{"INHERITED=yes", "SINGLETON_GROUP=g", "SINGLETON_JOB=j", "SINGLETON_REPLICA=web-", "SINGLETON_TICK=20",
		"SINGLETON_RUN_ID=j@20", "SINGLETON_ATTEMPT=1", "SINGLETON_REASON=once", "SINGLETON_TOKEN=1", "SINGLETON_TICK_UNIX=1"} {
		p.await(want)
	}
	if _, _, found := p.find("SINGLETON_ID="); found {
		t.Error("SINGLETON_ID is handed on")
	}
}
