package cli

import (
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/zktest"
)

func TestURLsOfZooKeeper(t *testing.T) {
	for url, want := range map[string]struct {
		name, servers, chroot, user string
		session                     time.Duration
	}{
		"zk://h":                                 {"zk://h", "h", "", "", 20 * time.Second},
		"zk://h1,h2:2182,[::1]/a/b":              {"zk://h1,h2:2182,[::1]/a/b", "h1 h2:2182 [::1]", "/a/b", "", 20 * time.Second},
		"zk://u:" + canary + "@h1,h2?session=8s": {"zk://u:xxxxx@h1,h2", "h1 h2", "", "u", 8 * time.Second},
	} {
		c, name, err := parseZooKeeper(url, 20*time.Second)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if name != want.name || strings.Join(c.Servers, " ") != want.servers || c.Chroot != want.chroot || c.User != want.user ||
			c.SessionTimeout != want.session || c.User != "" && c.Password != canary {
			t.Errorf("%s: %s, %+v", url, name, c)
		}
		st, err := opens(url)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestSEC7BadURLsOfZooKeeperAreNotRepeated(t *testing.T) {
	for _, url := range []string{
		"zk://", "zk://" + canary + "@h", "zk://:" + canary + "@h", "zk://u:12/" + canary + "@h", "zk://u:12#" + canary + "@h",
		"zk://u:%zz" + canary + "@h", "zk://u:" + canary + "@h1,,h2", "zk://u:" + canary + "@a:b:c", "zk://u:" + canary + "@h/a//b",
		"zk://u:" + canary + "@h?password=" + canary, "zk://u:" + canary + "@h?session=" + canary, "zk://u:" + canary + "@h?session=1ms",
		"zk://u:" + canary + "@h?session=-1s", "zk://u:" + canary + "@h#x", "zk://h?session=1s&session=2s",
	} {
		_, err := opens(url)
		if err == nil {
			t.Errorf("%s is accepted", url)
			continue
		}
		checkSecret(t, url, err.Error())
		if !strings.Contains(err.Error(), "want zk://") {
			t.Errorf("%s: the error says no remedy: %v", url, err)
		}
		call(t, nil, "status", "--group", "g", "--store", url)
	}
}

// TestACrontabOnZooKeeper kills the leader of two replicas with a job for each second, and looks at what is recorded.
func TestACrontabOnZooKeeper(t *testing.T) {
	server := zktest.Start(t)
	url := "zk://u:" + canary + "@" + server.Addr() + "/crontabs"
	args := []string{"cron", "--group", "g", "--seconds", "--lease", "2s", "--store", url, write(t, "jobs.cron", "* * * * * * true\n")}
	leader, follower := lead(t, start(t, nil, args...), start(t, nil, args...))
	leader.await("outcome=succeeded")
	leader.signal(syscall.SIGKILL)
	follower.await("msg=elected")
	follower.await("outcome=succeeded")
	for _, c := range []struct{ command, want string }{
		{"status", " leads"}, {"history", "succeeded"}, {"doctor", "answers within"},
	} {
		r := call(t, nil, c.command, "--group", "g", "--store", url)
		if r.code != 0 || !strings.Contains(r.stdout, c.want) {
			t.Errorf("%s: exit code %d\n%s%s", c.command, r.code, r.stdout, r.stderr)
		}
		checkSecret(t, c.command, r.stdout+r.stderr)
	}
	follower.signal(syscall.SIGTERM)
	if code := follower.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	checkSecret(t, "the log", leader.output()+follower.output())
}

// TestSEC1ZooKeeperByTLS has the URL name all files; what stands before the server wants a certificate.
func TestSEC1ZooKeeperByTLS(t *testing.T) {
	server, authority := zktest.Start(t), newAuthority(t, t.TempDir())
	ours := authority.Client()
	ours.ClientAuth, ours.ClientCAs = tls.RequireAndVerifyClientCert, ours.RootCAs
	addr := terminate(t, ours, server.Addr())
	query := "?ca=" + authority.CA + "&cert=" + authority.Certificate + "&key=" + authority.Key + "&password_file=" + write(t, "password", canary)
	r := call(t, nil, "status", "--group", "g", "--store", "zks://u:@"+addr+"/x"+query)
	if r.code != exitNoLeader || !strings.HasPrefix(r.stdout, "g: NO LEADER") {
		t.Errorf("exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	r = call(t, nil, "status", "--group", "g", "--store", "zks://"+addr)
	if r.code != exitFailed || !strings.Contains(r.stderr, "signed by unknown authority; is it the right server, ") {
		t.Errorf("without the files: exit code %d\n%s%s", r.code, r.stdout, r.stderr)
	}
}

// terminate speaks TLS with clients and hands on what they say.
func terminate(t *testing.T, c *tls.Config, target string) (addr string) {
	l, err := tls.Listen("tcp", "127.0.0.1:0", c)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer client.Close()
				server, err := net.Dial("tcp", target)
				if err != nil {
					return
				}
				defer server.Close()
				wg.Go(func() { _, _ = io.Copy(client, server); client.Close() })
				_, _ = io.Copy(server, client)
			})
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
	return l.Addr().String()
}
