package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/internal/zktest"
)

// TestRunAndOnceOnZooKeeper are the cases of the two commands in which the store counts.
func TestRunAndOnceOnZooKeeper(t *testing.T) {
	server := zktest.Start(t)
	place := func(t *testing.T) string { return "/" + filepath.Base(t.Name()) }
	for name, script := range map[string]string{"polite": polite, "stubborn": stubborn} {
		t.Run("cut-off-"+name, func(t *testing.T) {
			t.Parallel()
			proxy := netproxy.Start(t, server.Addr())
			p := leads(t, "zk://"+proxy.Addr()+place(t), script, "--lease", "5s", "--grace", "10m")
			group := p.nth(1)
			other := leads(t, "zk://"+server.Addr()+place(t), script, "--lease", "5s", "--grace", "500ms")
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
	}
	t.Run("frozen", func(t *testing.T) { // B71
		t.Parallel()
		url := "zk://" + server.Addr() + place(t)
		p := leads(t, url, stubborn, "--lease", "5s", "--grace", "10m")
		group := p.nth(1)
		other := leads(t, url, polite, "--lease", "5s")
		other.await("msg=following")
		p.signal(syscall.SIGSTOP)
		other.nth(1)
		p.signal(syscall.SIGCONT)
		p.await("command has ended with the term")
		none(t, group)
	})
	t.Run("killed", func(t *testing.T) { // B70
		t.Parallel()
		url := "zk://" + server.Addr() + place(t)
		p := leads(t, url, stubborn, "--lease", "3s")
		group := p.nth(1)
		other := leads(t, url, polite, "--lease", "3s", "--exit-on-loss")
		other.await("msg=following")
		p.signal(syscall.SIGKILL)
		p.exit()
		other.nth(1)
		none(t, group)
	})
	t.Run("stopped", func(t *testing.T) {
		t.Parallel()
		url := "zk://" + server.Addr() + place(t)
		running := filepath.Join(t.TempDir(), "running")
		script := `mkdir ` + running + ` || echo TWO; trap 'rmdir ` + running + `; exit 0' TERM; echo group $$; sleep 1000 & wait`
		leader := leads(t, url, script)
		leader.nth(1)
		waits := leads(t, url, script, "--wait-timeout", "300ms")
		if code := waits.exit(); code != exitWaited {
			t.Errorf("exit code %d after a wait", code)
		}
		for range 2 {
			next := leads(t, url, script)
			next.await("msg=following")
			leader.signal(syscall.SIGTERM)
			if code := leader.exit(); code != 0 {
				t.Errorf("exit code %d", code)
			}
			next.nth(1)
			if _, _, two := next.find("TWO"); two {
				t.Error("two run at once")
			}
			leader = next
		}
		leader.signal(syscall.SIGTERM)
		leader.exit()
		if r := call(t, nil, "status", "--group", "g", "--store", url); !strings.Contains(r.stdout, "\nno replicas: ") {
			t.Errorf("%s%s", r.stdout, r.stderr)
		}
	})
	t.Run("once", func(t *testing.T) {
		t.Parallel()
		url := "zk://" + server.Addr() + place(t)
		effects := filepath.Join(t.TempDir(), "effects")
		for round := range 2 {
			job := fmt.Sprintf("j%d", round)
			var all []*process
			for range 8 {
				all = append(all, claims(t, url, "echo $SINGLETON_JOB >> "+effects+"; exit 7", "--job", job, "--code", "9"))
			}
			codes := map[int]int{}
			for _, p := range all {
				codes[p.exit()]++
			}
			text, err := os.ReadFile(effects)
			if err != nil {
				t.Fatal(err)
			}
			if codes[7] != 1 || codes[9] != 7 || strings.Count(string(text), "\n") != round+1 {
				t.Errorf("exit codes and how many have them: %v; this was done:\n%s", codes, text)
			}
			if r := call(t, nil, "history", "--group", "g", "--store", url, job); strings.Count(r.stdout, "failed: exit status 7") != 1 {
				t.Errorf("%s%s", r.stdout, r.stderr)
			}
		}
	})
	t.Run("once-killed", func(t *testing.T) {
		t.Parallel()
		url := "zk://" + server.Addr() + place(t)
		p := claims(t, url, polite)
		group := p.nth(1)
		p.signal(syscall.SIGKILL)
		p.exit()
		until(t, "no process is left", func() bool { return len(living(t, group)) == 0 })
		other := claims(t, url, polite) // within half of --per
		if code := other.exit(); code != 0 || len(other.groups()) > 0 {
			t.Errorf("exit code %d, groups %v", code, other.groups())
		}
	})
	t.Run("away", func(t *testing.T) {
		t.Parallel()
		const url, refused = "zk://127.0.0.1:1/away", "connection refused; is it running, and the URL right?"
		r := call(t, nil, "status", "--group", "g", "--store", url)
		if r.code != exitFailed || !strings.HasPrefix(r.stderr, "singleton: status: the store "+url+" (--store) cannot be asked: ") ||
			!strings.HasSuffix(r.stderr, refused+"\n") {
			t.Errorf("exit code %d, %s", r.code, r.stderr)
		}
	})
}
