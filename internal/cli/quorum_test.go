//go:build linux

package cli

import (
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store/redisstore"
)

// TestACrontabOnIndependentServers kills the leader of two replicas with a job for each second while one of three servers is
// frozen, and looks at what is recorded.
func TestACrontabOnIndependentServers(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartNodes(t, 3, redistest.AppendOnly(), redistest.Args("--requirepass", canary))
	url := "redlock://:" + canary + "@" + strings.Join(nodes.Addrs(), ",")
	args := []string{"cron", "--group", "g", "--seconds", "--lease", "6s", "--store", url, write(t, "jobs.cron", "* * * * * * true\n")}
	leader, follower := lead(t, start(t, nil, args...), start(t, nil, args...))
	leader.await("outcome=succeeded")
	nodes.All[1].Stop()
	leader.signal(syscall.SIGKILL)
	follower.await("msg=elected")
	follower.await("outcome=succeeded")
	for _, c := range []struct{ command, want string }{
		{"status", " leads"}, {"history", "succeeded"}, {"doctor", "2 of 3 answer"},
	} {
		r := call(t, nil, c.command, "--group", "g", "--store", url)
		if r.code != 0 || !strings.Contains(r.stdout, c.want) {
			t.Errorf("%s: exit code %d\n%s%s", c.command, r.code, r.stdout, r.stderr)
		}
	}
	follower.signal(syscall.SIGTERM)
	if code := follower.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestSEC1IndependentServersByTLSEachWithAUserOfItsOwn gives each server another password.
func TestSEC1IndependentServersByTLSEachWithAUserOfItsOwn(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t, t.TempDir())
	nodes := redistest.StartNodes(t, 3, redistest.TLS(authority))
	hosts := nodes.Addrs()
	for i, n := range nodes.All {
		word := fmt.Sprint(canary, i)
		if err := n.Client().Do(t.Context(), "ACL", "SETUSER", "u", "on", ">"+word, "allkeys", "allchannels", "allcommands").Err(); err != nil {
			t.Fatal(err)
		}
		hosts[i] = "u:" + word + "@" + hosts[i]
	}
	query := "?ca=" + authority.CA + "&cert=" + authority.Certificate + "&key=" + authority.Key
	if err := reach(t, openURL(t, "redlocks://"+strings.Join(hosts, ",")+query)); err != nil {
		t.Error(err)
	}
	if err := reach(t, openURL(t, "redlock://"+strings.Join(hosts, ","))); err == nil {
		t.Error("it is let in without TLS")
	}
	wrong := "u:" + canary + "9@"
	hosts[0], hosts[1] = wrong+nodes.Addrs()[0], wrong+nodes.Addrs()[1]
	err := reach(t, openURL(t, "redlocks://"+strings.Join(hosts, ",")+query))
	if err == nil {
		t.Fatal("it is let in by a minority")
	}
	checkSecret(t, "the error", err.Error())
}

// TestDoctorSaysHowEachOfSeveralServersIs breaks one or two of three.
func TestDoctorSaysHowEachOfSeveralServersIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		opts   []redistest.Option
		breaks func(t *testing.T, all []*redistest.Node)
		levels string // of: the servers together, each, the ledger, the records
		want   []string
	}{
		{"well", []redistest.Option{redistest.AppendOnly()}, func(*testing.T, []*redistest.Node) {}, "ok ok ok ok ok ok", []string{
			"3 of 3 answer, and 2 must", "a primary", "it loses nothing when it ends", "3 of 3 are sure to have all records of group g"}},
		{"young", kept, func(*testing.T, []*redistest.Node) {}, "ok warn warn warn ok ok", []string{"has no vote on them yet", "appendfsync always"}},
		{"gone", []redistest.Option{redistest.AppendOnly()}, func(_ *testing.T, all []*redistest.Node) { all[2].Kill() },
			"ok ok ok warn warn ok", []string{"2 of 3 answer", "cannot be asked", "is it running"}},
		{"a majority gone", []redistest.Option{redistest.AppendOnly()}, func(_ *testing.T, all []*redistest.Node) { all[1].Kill(); all[2].Kill() },
			"fail ok warn warn fail", []string{"1 of 3 answer, and 2 must", "nobody can lead"}},
		{"empty", []redistest.Option{redistest.AppendOnly()}, func(t *testing.T, all []*redistest.Node) {
			if err := all[0].RestartEmpty(); err != nil {
				t.Fatal(err)
			}
		}, "ok ok ok ok warn ok", []string{"it has no records of group g", "2 of 3 are sure", "the leader gives the others a copy"}},
		{"restarted", kept, func(t *testing.T, all []*redistest.Node) {
			if err := all[0].Restart(); err != nil {
				t.Fatal(err)
			}
		}, "ok warn ok ok warn ok", []string{"has restarted since it got the records, and may have lost some"}},
		{"a replica", []redistest.Option{redistest.AppendOnly()}, func(t *testing.T, all []*redistest.Node) {
			host, port, err := net.SplitHostPort(all[0].Addr())
			if err != nil {
				t.Fatal(err)
			}
			client := all[1].Client()
			if err := client.Do(t.Context(), "REPLICAOF", host, port).Err(); err != nil {
				t.Fatal(err)
			}
			until(t, "it is a replica", func() bool {
				return strings.Contains(client.Info(t.Context(), "replication").Val(), "master_link_status:up")
			})
		}, "", []string{"it has 1 replicas", "a replica"}},
		{"clock", []redistest.Option{redistest.AppendOnly()}, func(_ *testing.T, all []*redistest.Node) { all[0].Clock.Jump(time.Hour) },
			"ok warn ok ok ok ok", []string{"the clock of the server is 1h0m0s ahead of this machine's"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			nodes := redistest.StartNodes(t, 3, c.opts...)
			url := "redlock://" + strings.Join(nodes.Addrs(), ",")
			if c.name != "young" {
				trusted(t, nodes)
			}
			recorded(t, url)
			c.breaks(t, nodes.All)
			r := call(t, nil, "doctor", "--store", url, "--group", "g", "--json")
			var e examination
			if err := json.Unmarshal([]byte(r.stdout), &e); err != nil {
				t.Fatalf("%v: %s%s", err, r.stdout, r.stderr)
			}
			var levels []string
			for _, f := range e.Findings {
				levels = append(levels, string(f.Level))
			}
			if got := strings.Join(levels, " "); got != c.levels && c.levels != "" {
				t.Errorf("levels %s, want %s\n%s", got, c.levels, r.stdout)
			}
			for _, want := range c.want {
				if !strings.Contains(r.stdout, want) {
					t.Errorf("it does not say %q:\n%s", want, r.stdout)
				}
			}
		})
	}
}

// kept is how Redis keeps an append-only file by default.
var kept = []redistest.Option{redistest.AppendOnly(), redistest.Args("--appendfsync", "everysec")}

func trusted(t *testing.T, nodes *redistest.Nodes) {
	t.Helper()
	if err := nodes.Trusted(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// recorded makes a crontab leave something in the store, on all servers.
func recorded(t *testing.T, url string) {
	t.Helper()
	p := start(t, nil, "cron", "--group", "g", "--seconds", "--lease", "2s", "--store", url, write(t, "jobs.cron", "* * * * * * true\n"))
	p.await("outcome=succeeded")
	until(t, "all servers have the records", func() bool {
		r := call(t, nil, "doctor", "--store", url, "--group", "g")
		return strings.Contains(r.stdout, "3 of 3 are sure")
	})
	p.signal(syscall.SIGTERM)
	if code := p.exit(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// TestAnOperatorAcceptsALoss has two of three servers lose their data: nobody leads until somebody says that he may.
func TestAnOperatorAcceptsALoss(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartNodes(t, 3, redistest.AppendOnly())
	url := "redlock://" + strings.Join(nodes.Addrs(), ",")
	recorded(t, url)
	for _, n := range nodes.All[:2] {
		if err := n.RestartEmpty(); err != nil {
			t.Fatal(err)
		}
	}
	p := start(t, nil, "cron", "--group", "g", "--seconds", "--lease", "2s", "--store", url, write(t, "jobs.cron", "* * * * * * true\n"))
	said := p.await("doctor", "--accept-loss")
	if !strings.Contains(said, "--group g --accept-loss") {
		t.Errorf("it does not say what to do: %s", said)
	}
	code, bad := doctor(t, url)
	if code != exitFailed || !slices.ContainsFunc(bad, func(f finding) bool {
		return f.Check == "ledger" && f.Level == redisstore.LevelFail && strings.Contains(f.Remedy, "--accept-loss")
	}) {
		t.Errorf("exit code %d, %+v", code, bad)
	}
	if _, _, ran := p.find("run started"); ran {
		t.Error("a run has started")
	}
	if r := call(t, nil, "doctor", "--store", url, "--group", "g", "--accept-loss"); r.code != exitDone {
		t.Errorf("exit code %d, %s%s", r.code, r.stdout, r.stderr)
	}
	p.await("outcome=succeeded")
}

func TestAcceptingALossNeedsAGroupAndSeveralServers(t *testing.T) {
	if r := call(t, nil, "doctor", "--store", "redlock://a,b,c", "--accept-loss"); r.code != exitUsage || !strings.Contains(r.stderr, "needs --group") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
	if r := call(t, nil, "doctor", "--store", "redis://a", "--group", "g", "--accept-loss"); r.code != exitUsage || !strings.Contains(r.stderr, "redlock:// alone") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
}
