package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/redisstore"
)

// newGroup starts a Redis with the ledger of group g, so that nobody waits for memories of another one.
func newGroup(t *testing.T, opts ...redistest.Option) *redistest.Server {
	t.Helper()
	server := redistest.Start(t, opts...)
	st := redisstore.New(server.Client(), nil)
	defer st.Close()
	if err := scheduler.Create(t.Context(), st, "g"); err != nil {
		t.Fatal(err)
	}
	return server
}

// TestB73CommandsInheritTheEnvironment runs a crontab in memory and reads what its command sees.
func TestB73CommandsInheritTheEnvironment(t *testing.T) {
	file := write(t, "jobs.cron", `MAILTO=a@example.org
MAILFROM=b@example.org
MAILTO=c@example.org
FOO=bar baz
#: name=env
* * * * * * env | grep -E '^(SINGLETON_|FOO|INHERITED)' | sort; echo 100% of %PATH%
`)
	if err := os.Chmod(file, 0o606); err != nil {
		t.Fatal(err)
	}
	p := start(t, []string{"SINGLETON_ID=web", "SINGLETON_SECONDS=true", "SINGLETON_LEASE=2s", "INHERITED=yes",
		"SINGLETON_LAESE=3s", "SINGLETON_JOB=outer", "SINGLETON_LIMIT=7", "SINGLETON_GROUPS=x=y"},
		"cron", "--group", "g", "--store", "memory:", file)
	p.await("msg=\"run ended\"", "outcome=succeeded")
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	var lines []string
	first := ""
	for l := range strings.Lines(p.output()) {
		_, attempt, ok := strings.Cut(l, "msg=output")
		tick, text, _ := strings.Cut(attempt, " attempt=1 stream=stdout line=")
		if ok && (first == "" || tick == first) {
			first = tick
			lines = append(lines, strings.Trim(strings.TrimSpace(text), `"`))
		}
	}
	_, tick, _ := strings.Cut(first, "tick=")
	tick = strings.TrimSuffix(tick, ".000Z") + "Z"
	values := map[string]string{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, "=")
		values[name] = value
	}
	for name, want := range map[string]string{
		"FOO": "bar baz", "INHERITED": "yes", "SINGLETON_GROUP": "g", "SINGLETON_JOB": "env", "SINGLETON_ATTEMPT": "1",
		"SINGLETON_REASON": "schedule", "SINGLETON_TICK": tick, "SINGLETON_RUN_ID": "env@" + tick, "100% of %PATH%": "",
	} {
		if got, ok := values[name]; !ok || got != want {
			t.Errorf("%s=%s, want %s", name, got, want)
		}
	}
	if id, ok := values["SINGLETON_ID"]; ok {
		t.Errorf("SINGLETON_ID=%s is handed on", id)
	}
	if !strings.HasPrefix(values["SINGLETON_REPLICA"], "web-") {
		t.Errorf("SINGLETON_REPLICA=%s", values["SINGLETON_REPLICA"])
	}
	if n, err := strconv.ParseUint(values["SINGLETON_TOKEN"], 10, 64); err != nil || n == 0 {
		t.Errorf("SINGLETON_TOKEN=%s", values["SINGLETON_TOKEN"])
	}
	if n := strings.Count(p.output(), "no mail is sent"); n != 1 {
		t.Errorf("%d notices about mail", n)
	}
	p.await("level=WARN", "mean nothing", "variables=\"SINGLETON_GROUPS, SINGLETON_LAESE\"")
	p.await("level=INFO", "no mail is sent")
	p.await("level=WARN", "everybody on this machine may write to the crontab")
}

// TestCommandsAreTriedAgainAndReplaced runs one that fails the first time, and one that would run for ever.
func TestCommandsAreTriedAgainAndReplaced(t *testing.T) {
	file := write(t, "jobs.cron", `#: name=again retry=2 retry-delay=100ms jitter=200ms
* * * * * * test $SINGLETON_ATTEMPT = 2 && echo because of $SINGLETON_REASON
#: name=long overlap=replace
* * * * * * sleep 1000
`)
	p := start(t, nil, "cron", "--group", "g", "--store", "memory:", "--seconds", "--lease", "2s", "--grace", "1s", file)
	p.await("job=again", "outcome=failed", "attempt=1")
	p.await("job=again", "attempt=2", `line="because of retry"`)
	p.await("job=again", "outcome=succeeded", "attempt=2")
	p.await("job=long", "command is told to end", "replaced by a newer tick")
	p.await("job=long", "outcome=cancelled")
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestB73RebootAndUserColumnAreRefused validates what has no meaning here.
func TestB73RebootAndUserColumnAreRefused(t *testing.T) {
	for text, want := range map[string]string{
		"@reboot true\n":              "a job that runs on one of many machines has no boot to follow",
		"0 3 * * * root /bin/clean\n": "looks like the user column of a system crontab",
	} {
		r := call(t, nil, "validate", write(t, "jobs.cron", text))
		if r.code != exitUsage || !strings.Contains(r.stderr, want) {
			t.Errorf("%q: exit code %d\n%s", text, r.code, r.stderr)
		}
	}
}

// TestSEC9OutputOfCommandsIsEscaped reads what a command writes from the log, as JSON.
func TestSEC9OutputOfCommandsIsEscaped(t *testing.T) {
	file := write(t, "jobs.cron", "#: name=noise\n"+`* * * * * * printf 'a\033[31mb\n\nlast\r' >&2; exit 3`+"\n")
	p := start(t, nil, "cron", "--group", "g", "--store", "memory:", "--seconds", "--lease", "2s", "--log-format", "json", file)
	var got []string
	p.await(`"msg":"run ended"`)
	for l := range strings.Lines(p.output()) {
		var entry struct {
			Message string `json:"msg"`
			Job     string `json:"job"`
			Tick    string `json:"tick"`
			Attempt int    `json:"attempt"`
			Stream  string `json:"stream"`
			Line    string `json:"line"`
			Outcome string `json:"outcome"`
			Error   string `json:"error"`
		}
		if err := json.Unmarshal([]byte(l), &entry); err != nil {
			t.Fatalf("%s: %v", l, err)
		}
		switch entry.Message {
		case "output":
			got = append(got, entry.Stream+" "+entry.Line)
			if entry.Job != "noise" || entry.Tick == "" || entry.Attempt != 1 {
				t.Errorf("output is not told whose it is: %s", l)
			}
		case "run ended":
			got = append(got, entry.Outcome+" "+entry.Error)
		}
		if len(got) == 4 {
			break
		}
	}
	want := []string{`stderr a\x1b[31mb`, `stderr `, `stderr last\r`, `failed exit status 3`}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestTwoReplicasOneKilledThenStopped follows every tick of a job over a crash and a stop.
func TestTwoReplicasOneKilledThenStopped(t *testing.T) {
	server := newGroup(t)
	effects := filepath.Join(t.TempDir(), "effects")
	file := write(t, "jobs.cron", "#: name=tick catch-up=all on-interrupt=rerun\n* * * * * * echo $SINGLETON_TICK_UNIX >> "+effects+"\n")
	run := func(id string) *process {
		return start(t, []string{"REDIS_URL=" + server.URL()}, "cron", "--group", "g", "--seconds", "--lease", "2s", "--id", id, file)
	}
	ran := func(p *process, n int) func() bool {
		return func() bool { return strings.Count(p.output(), "outcome=succeeded") >= n }
	}
	a, b := run("a"), run("b")
	leader, follower := lead(t, a, b)
	until(t, "the leader runs ticks", ran(leader, 2))
	leader.signal(syscall.SIGKILL)
	leader.exit()
	until(t, "the follower takes over", ran(follower, 3))
	third := run("c")
	third.await("msg=starting")
	follower.signal(syscall.SIGTERM)
	if code := follower.exit(); code != 0 {
		t.Errorf("exit code %d after SIGTERM", code)
	}
	follower.await("msg=\"stopping; leadership is handed over")
	follower.await(`cause="this program is stopped"`)
	until(t, "the third replica takes over", ran(third, 2))
	third.signal(syscall.SIGINT)
	if code := third.exit(); code != 0 {
		t.Errorf("exit code %d after SIGINT", code)
	}

	data, err := os.ReadFile(effects)
	if err != nil {
		t.Fatal(err)
	}
	count := map[int64]int{}
	var first, last int64
	for l := range strings.Lines(string(data)) {
		n, err := strconv.ParseInt(strings.TrimSpace(l), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if first == 0 {
			first = n
		}
		count[n]++
		last = max(last, n)
	}
	r := call(t, map[string]string{"REDIS_URL": server.URL()}, "history", "--group", "g", "--all", "--json", "tick")
	interrupted := map[int64]bool{}
	for l := range strings.Lines(r.stdout) {
		var e entryView
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatal(err)
		}
		if e.Outcome == scheduler.Interrupted {
			interrupted[e.Tick.Unix()] = true
		}
	}
	for n := first; n <= last; n++ {
		if count[n] == 0 || count[n] > 1 && !interrupted[n] {
			t.Errorf("tick %d ran %d times", n, count[n])
		}
	}
}

// TestStatusAndHistoryOfARealGroup asks about a group whose jobs run.
func TestStatusAndHistoryOfARealGroup(t *testing.T) {
	server := newGroup(t)
	file := write(t, "jobs.cron", "#: name=bad\n* * * * * * echo no such host; exit 7\n#: name=good\n@daily true\n")
	p := start(t, nil, "cron", "--group", "g", "--seconds", "--lease", "2s", "--id", "web", "--store", server.URL(), file)
	p.await("msg=\"run ended\"", "outcome=failed", "exit status 7")
	env := map[string]string{"SINGLETON_STORE": server.URL(), "SINGLETON_GROUP": "g"}
	var st statusView
	until(t, "the status tells of the failure", func() bool {
		r := call(t, env, "status", "--json")
		if err := json.Unmarshal([]byte(r.stdout), &st); err != nil || r.code != 0 {
			t.Fatalf("exit code %d: %v\n%s%s", r.code, err, r.stdout, r.stderr)
		}
		return len(st.Jobs) == 2 && st.Jobs[0].Last != nil
	})
	bad := st.Jobs[0]
	if bad.Name != "bad" || bad.Last.Outcome != scheduler.Failed || bad.Last.Detail != "exit status 7\nno such host" || !bad.Attention {
		t.Errorf("status: %+v", bad)
	}
	if st.Leader == nil || !strings.HasPrefix(st.Leader.Replica, "web-") || st.Leader.Lease != 2 || len(st.Replicas) != 1 {
		t.Errorf("leader: %+v of %v", st.Leader, st.Replicas)
	}
	if r := call(t, env, "status"); r.code != 0 || !strings.Contains(r.stdout, "1 of 2 jobs needs attention") ||
		!strings.Contains(r.stdout, "exit status 7") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := call(t, env, "status", "--check"); r.code != exitAttention || !strings.Contains(r.stdout, "exit status 7") || r.stderr != "" {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := call(t, env, "history", "bad", "--limit", "1"); r.code != 0 || !strings.Contains(r.stdout, "failed: exit status 7") ||
		strings.Count(r.stdout, "\n") != 2 {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	call(t, env, "history", "good", "--utc").want(t, 0, "no entries\n", "")
	call(t, env, "history", "--group", "typo").want(t, 0, "no entries, and no jobs: start its replicas, such as singleton cron "+
		"--group typo, or look whether the name is right\n", "")
	call(t, env, "history", "nope").want(t, exitFailed, "",
		"singleton: history: group g has no job nope; singleton status --group g lists its jobs\n")

	p.signal(syscall.SIGTERM)
	p.exit()
	r := call(t, env, "status")
	if r.code != exitNoLeader || !strings.HasPrefix(r.stdout, "g: NO LEADER\nno replicas: ") || r.stderr != "" {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	if r := call(t, env, "status", "--check", "--json"); r.code != exitNoLeader || !strings.Contains(r.stdout, `"leader":null`) {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// TestStoreThatIsAway asks for one that does not run: cron waits for it, the others fail.
func TestStoreThatIsAway(t *testing.T) {
	server := newGroup(t)
	proxy := redistest.StartProxy(t, server.Addr())
	proxy.Requests.Reset()
	url := "redis://:" + canary + "@" + proxy.Addr()
	for _, command := range []string{"status", "history"} {
		r := call(t, nil, command, "--group", "g", "--store", url)
		if r.code != exitFailed || !strings.HasPrefix(r.stderr, "singleton: "+command+": the store redis://:xxxxx@"+proxy.Addr()+
			" (--store) cannot be asked: ") || strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("exit code %d, %s", r.code, r.stderr)
		}
	}
	p := start(t, nil, "cron", "--group", "g", "--seconds", "--store", "redis://"+proxy.Addr(), "--log-level", "debug",
		write(t, "jobs.cron", "* * * * * * true\n"))
	p.await("level=WARN", "store does not answer")
	proxy.Requests.Pass()
	p.await("outcome=succeeded")
}

// TestStoreThatHangs asks for one that takes connections and never answers.
func TestStoreThatHangs(t *testing.T) {
	server := newGroup(t)
	server.Stop()
	defer server.Cont()
	r := call(t, nil, "status", "--group", "g", "--store", server.URL())
	if r.code != exitFailed || !strings.Contains(r.stderr, server.Addr()) || strings.Count(r.stderr, "\n") != 1 {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
}

// TestB17WrongCredentialsEndEveryCommand names the remedy and never the password (SEC7).
func TestB17WrongCredentialsEndEveryCommand(t *testing.T) {
	server := redistest.Start(t, redistest.Args("--requirepass", "right"))
	file := write(t, "jobs.cron", "@daily true\n")
	for _, c := range []struct{ url, remedy string }{
		{"redis://:" + canary + "@" + server.Addr(), "set those that it knows"},
		{"redis://user:" + canary + "@" + server.Addr() + "/0", "set those that it knows"},
		{"redis://" + server.Addr(), "set one in the client's options or the URL"},
	} {
		p := start(t, nil, "cron", "--group", "g", "--store", c.url, "--lease", "2s", "--log-level", "debug", file)
		if code := p.exit(); code != exitFailed {
			t.Errorf("cron: exit code %d", code)
		}
		p.await("singleton: cron: ", c.remedy)
		for _, command := range []string{"status", "history"} {
			r := call(t, nil, command, "--group", "g", "--store", c.url)
			if r.code != exitFailed || !strings.Contains(r.stderr, c.remedy) || strings.Count(r.stderr, "\n") != 1 {
				t.Errorf("%s: exit code %d, %s", command, r.code, r.stderr)
			}
		}
	}
}

// TestSEC7PasswordsStayOutOfTheLog runs with a password that works, at the finest level of both formats.
func TestSEC7PasswordsStayOutOfTheLog(t *testing.T) {
	server := redistest.Start(t, redistest.Args("--requirepass", canary))
	file := write(t, "jobs.cron", "* * * * * * true\n")
	for _, format := range []string{"text", "json"} {
		proxy := redistest.StartProxy(t, server.Addr())
		p := start(t, []string{"SINGLETON_STORE=redis://:" + canary + "@" + proxy.Addr()}, "cron", "--group", "g-"+format, "--seconds",
			"--lease", "1s", "--log-level", "debug", "--log-format", format, file)
		p.await("elected")
		proxy.Cut()
		proxy.Requests.Reset()
		p.await("term has ended")
		p.await("store does not answer")
		proxy.Requests.Pass()
		p.await("succeeded")
		p.signal(syscall.SIGTERM)
		p.exit()
	}
}

// TestStoreWarningsAreLogged starts with a server that would lose everything.
func TestStoreWarningsAreLogged(t *testing.T) {
	server := newGroup(t)
	p := start(t, nil, "cron", "--group", "g", "--store", server.URL(), write(t, "jobs.cron", "# none\n"))
	p.await("level=WARN", "the store is not set up well", "keeps nothing on disk")
	p.await("level=WARN", "the crontab has no jobs")
}
