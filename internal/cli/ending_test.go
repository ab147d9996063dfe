package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
)

// Commands with a child in the background. They write the number of their process group.
const (
	polite   = `echo group $$; sleep 100 & wait`
	stubborn = `trap "" TERM; echo group $$; sleep 100 & wait`
)

// TestB70NoProcessOutlivesItsRun ends commands in every way there is.
func TestB70NoProcessOutlivesItsRun(t *testing.T) {
	for name, command := range map[string]string{"polite": polite, "stubborn": stubborn} {
		file := write(t, "jobs.cron", "#: name=long\n* * * * * * "+command+"\n")
		run := func(t *testing.T, url string, args ...string) *process {
			args = append([]string{"cron", "--group", "g", "--seconds", "--store", url}, args...)
			return start(t, nil, append(args, file)...)
		}
		t.Run(name+" at a stop", func(t *testing.T) {
			t.Parallel()
			p := run(t, "memory:", "--lease", "2s", "--grace", "3s")
			group := p.group()
			p.signal(syscall.SIGTERM)
			if code := p.exit(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			none(t, group)
			p.await("run ended", "outcome=interrupted", "grace is over")
		})
		t.Run(name+" when singleton is killed", func(t *testing.T) {
			t.Parallel()
			p := run(t, "memory:", "--lease", "2s")
			group := p.group()
			p.signal(syscall.SIGKILL)
			p.exit()
			until(t, "no process is left", func() bool { return len(living(t, group)) == 0 })
		})
		t.Run(name+" at a second signal", func(t *testing.T) {
			t.Parallel()
			p := run(t, "memory:", "--lease", "2s", "--grace", "10m")
			group := p.group()
			p.signal(syscall.SIGINT)
			p.await("msg=\"stopping; ")
			until(t, "the second signal is taken for one", func() bool {
				p.signal(syscall.SIGINT)
				_, _, ok := p.find("msg=\"stopping now; ")
				return ok
			})
			if code := p.exit(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			none(t, group)
		})
		t.Run(name+" at a timeout", func(t *testing.T) {
			t.Parallel()
			file := write(t, "jobs.cron", "#: name=long timeout=500ms\n* * * * * * "+command+"\n")
			p := start(t, nil, "cron", "--group", "g", "--seconds", "--store", "memory:", "--lease", "2s", "--grace", "3s", file)
			group := p.group()
			p.await("command is told to end", "run=long@", "reason=\"timed out after 0.5 s\"")
			p.await("run ended", "outcome=\"timed out\"", "timed out after 0.5 s; killed by signal ")
			none(t, group)
		})
		t.Run(name+" when the session is lost", func(t *testing.T) {
			t.Parallel()
			server := newGroup(t)
			proxy := redistest.StartProxy(t, server.Addr())
			p := run(t, "redis://"+proxy.Addr(), "--lease", "2s", "--grace", "10m")
			group := p.group()
			proxy.Requests.Drop()
			proxy.Replies.Drop()
			p.await("run ended", "outcome=interrupted")
			none(t, group)
		})
		t.Run(name+" at a second signal while the store is away", func(t *testing.T) {
			t.Parallel()
			server := newGroup(t)
			proxy := redistest.StartProxy(t, server.Addr())
			p := run(t, "redis://"+proxy.Addr(), "--lease", "30s", "--grace", "10m")
			group := p.group()
			proxy.Requests.Drop()
			p.signal(syscall.SIGTERM)
			p.await("msg=\"stopping; ")
			until(t, "the second signal is taken for one", func() bool {
				p.signal(syscall.SIGTERM)
				_, _, ok := p.find("msg=\"stopping now; ")
				return ok
			})
			if code := p.exit(); code != exitFailed {
				t.Errorf("exit code %d", code)
			}
			p.await("singleton: cron: stopped at once, before the store could be told")
			none(t, group)
		})
	}
}

// TestB71TermComesBeforeTheLeaseEnds cuts the store off; the command itself looks, past the cut, whether the lease stands.
func TestB71TermComesBeforeTheLeaseEnds(t *testing.T) {
	if _, err := exec.LookPath("redis-cli"); err != nil {
		t.Fatalf("redis-cli is not on the PATH; install it: apt-get install -y redis-tools (%v)", err)
	}
	server := newGroup(t)
	proxy := redistest.StartProxy(t, server.Addr())
	found := filepath.Join(t.TempDir(), "found")
	_, port, _ := strings.Cut(server.Addr(), ":")
	file := write(t, "jobs.cron", fmt.Sprintf("#: name=long\n* * * * * * "+
		`trap 'redis-cli -p %s EXISTS "singleton:{g}:lease" > %s; exit 0' TERM; echo group $$; sleep 100 & wait; wait`+"\n", port, found))
	p := start(t, nil, "cron", "--group", "g", "--seconds", "--store", "redis://"+proxy.Addr(), "--lease", "5s", file)
	group := p.group()
	proxy.Requests.Drop()
	proxy.Replies.Drop()
	p.await("command is told to end", "lease could not be renewed in time")
	p.await("run ended")
	data, err := os.ReadFile(found)
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(data)); got != "1" {
		t.Errorf("when the command got SIGTERM, %q leases stood in the store", got)
	}
	if left := living(t, group); len(left) > 0 {
		t.Errorf("processes are left: %v", left)
	}
}

// TestB71KillComesBeforeAnotherLeads cuts off the store of a command that ignores SIGTERM. When another replica leads,
// nothing of it is left, whatever it had been told to end for before.
func TestB71KillComesBeforeAnotherLeads(t *testing.T) {
	for name, options := range map[string]string{"for its session": "", "for its timeout": " timeout=1s"} {
		t.Run("told to end "+name, func(t *testing.T) {
			t.Parallel()
			server := newGroup(t)
			proxy := redistest.StartProxy(t, server.Addr())
			file := write(t, "jobs.cron", "#: name=long"+options+"\n* * * * * * "+stubborn+"\n")
			run := func(addr string) *process {
				return start(t, nil, "cron", "--group", "g", "--seconds", "--store", "redis://"+addr, "--lease", "5s", "--grace", "10m", file)
			}
			leader := run(proxy.Addr())
			group := leader.group()
			follower := run(server.Addr())
			proxy.Requests.Drop()
			proxy.Replies.Drop()
			leader.await("command is told to end")
			follower.await("msg=elected")
			if left := living(t, group); len(left) > 0 {
				t.Errorf("another replica leads, and processes are left: %v", left)
			}
		})
	}
}

// TestB72SIGINTWhileWaitingToLead stops a follower, and one whose store does not answer.
func TestB72SIGINTWhileWaitingToLead(t *testing.T) {
	server := newGroup(t)
	file := write(t, "jobs.cron", "@daily true\n")
	proxy := redistest.StartProxy(t, server.Addr())
	run := func(url string) *process {
		return start(t, nil, "cron", "--group", "g", "--store", url, "--lease", "60s", file)
	}
	leader := run(server.URL())
	leader.await("msg=elected")
	follower := run("redis://" + proxy.Addr())
	follower.await("the store is not set up well") // so it has been answered
	stop := func(what string) {
		t.Helper()
		began := time.Now()
		follower.signal(syscall.SIGINT)
		if code := follower.exit(); code != 0 {
			t.Errorf("%s: exit code %d", what, code)
		}
		if _, _, led := follower.find("msg=elected"); led {
			t.Errorf("%s: it has led", what)
		}
		t.Logf("%s: ended %v after SIGINT", what, time.Since(began))
	}
	stop("a follower")
	follower.await("msg=\"stopping; this replica does not lead")
	proxy.Requests.Drop()
	follower = run("redis://" + proxy.Addr())
	follower.await("store does not answer")
	stop("a follower without a store")
	follower.await("leaving without telling it") // giving up the attempt would take a fifth of the lease
}

// TestOneSignalThatComesTwiceIsOne lets a command end that two signals at once do not interrupt.
func TestOneSignalThatComesTwiceIsOne(t *testing.T) {
	go1 := filepath.Join(t.TempDir(), "go")
	file := write(t, "jobs.cron", "#: name=long\n* * * * * * echo group $$; until test -e "+go1+"; do sleep 0.05; done\n")
	p := start(t, nil, "cron", "--group", "g", "--seconds", "--store", "memory:", "--lease", "2s", file)
	p.group()
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGINT)
	p.await("msg=\"stopping; ")
	p.await("term has ended")
	if err := os.WriteFile(go1, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	p.await("run ended", "outcome=succeeded")
}
