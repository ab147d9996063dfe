package soak

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/program"
	"github.com/go-singleton/singleton/internal/tally"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/redisstore"
)

var (
	length   = flag.Duration("for", 20*time.Second, "length of each scenario")
	topology = flag.String("on", "one", "one Redis, sentinels or cluster")
)

var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(program.Run(m, &binary))
}

const (
	lease    = 3 * time.Second
	interval = 9 * time.Second        // between faults
	shift    = 130 * time.Millisecond // so that they strike at other times of a tick
	frozen   = 5 * time.Second
	settle   = 2*lease + 4*time.Second // after the last fault
)

// group is three replicas on one Redis.
type group struct {
	t        *testing.T
	servers  servers
	store    *redisstore.Store
	inspect  *scheduler.Inspector
	dir      string
	file     string
	replicas map[string]*replica
	old      []*replica

	afterTerm, afterLease []time.Duration
	terms                 []time.Time
}

func newGroup(t *testing.T) *group {
	g := &group{t: t, servers: newServers(t), dir: t.TempDir(), replicas: make(map[string]*replica)}
	g.store = g.servers.store
	var err error
	if g.inspect, err = scheduler.NewInspector(g.store, "soak", "soak"); err != nil {
		t.Fatal(err)
	}
	g.file = filepath.Join(g.dir, "effects")
	crontab := "#: name=tick catch-up=all on-interrupt=rerun\n" +
		"* * * * * * echo $SINGLETON_TICK_UNIX $(date +%s%N) >> " + g.file + "\n"
	if err := os.WriteFile(filepath.Join(g.dir, "crontab"), []byte(crontab), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"r1", "r2", "r3"} {
		g.launch(name)
	}
	return g
}

func (g *group) launch(name string) {
	if r := g.replicas[name]; r != nil {
		g.old = append(g.old, r)
	}
	g.replicas[name] = launch(g.t, binary, name, "cron", "--group", "soak", "--store", g.servers.url, "--id", name,
		"--seconds", "--lease", lease.String(), "--history", "2000", "--log-format", "json",
		filepath.Join(g.dir, "crontab"))
}

// leader waits until somebody leads and returns that replica.
func (g *group) leader(ctx context.Context) *replica {
	for {
		l, err := g.store.Leader(ctx, "soak")
		if err == nil {
			name, _, _ := strings.Cut(l.Replica, "-")
			return g.replicas[name]
		}
		if !pause(ctx, 20*time.Millisecond) {
			g.t.Fatalf("nobody leads: %v", err)
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool { return world.Rest(ctx, d, nil) }

// electedAfter waits until a replica was elected after at, and returns when.
func (g *group) electedAfter(ctx context.Context, at time.Time) (time.Time, bool) {
	for pause(ctx, 5*time.Millisecond) {
		for _, r := range g.replicas {
			if when, ok := r.electedAfter(at); ok {
				return when, true
			}
		}
	}
	return time.Time{}, false
}

// The faults. Each returns when the group has what it needs to recover.

func (g *group) killLeader(ctx context.Context) {
	r := g.leader(ctx)
	at := time.Now()
	held, err := g.store.Leader(ctx, "soak")
	r.kill()
	end := at.Add(held.Remaining)
	if when, ok := g.electedAfter(ctx, at); ok && err == nil {
		g.afterLease = append(g.afterLease, when.Sub(end))
	}
	g.launch(r.name)
}

func (g *group) termLeader(ctx context.Context) {
	r := g.leader(ctx)
	g.terms = append(g.terms, time.Now())
	r.stop(g.t)
	g.launch(r.name)
}

func (g *group) freezeLeader(ctx context.Context) {
	r := g.leader(ctx)
	r.signal(syscall.SIGSTOP)
	pause(ctx, frozen)
	r.signal(syscall.SIGCONT)
}

func (g *group) freezeRedis(ctx context.Context) {
	server := g.servers.primary(ctx)
	server.Stop()
	pause(ctx, frozen)
	server.Cont()
}

func (g *group) killRedis(ctx context.Context) {
	server := g.servers.primary(ctx)
	server.Kill()
	pause(ctx, g.servers.away)
	if err := server.Restart(); err != nil {
		g.t.Fatal(err)
	}
}

func (g *group) emptyRedis(ctx context.Context) {
	server := g.servers.primary(ctx)
	server.Kill()
	pause(ctx, g.servers.away)
	if err := server.RestartEmpty(); err != nil {
		g.t.Fatal(err)
	}
}

func TestSoak(t *testing.T) {
	scenarios := []struct {
		name   string
		fault  func(*group, context.Context)
		forget bool // the store loses its data: history and what was not remembered are gone
	}{
		{"kill the leader", (*group).killLeader, false},
		{"end the leader politely", (*group).termLeader, false},
		{"freeze the leader", (*group).freezeLeader, false},
		{"freeze redis", (*group).freezeRedis, false},
		{"kill redis", (*group).killRedis, false},
		{"empty redis", (*group).emptyRedis, *topology == "one"}, // else another takes its place, with the data
	}
	for _, s := range scenarios {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t)
			v := g.run(func(ctx context.Context) { s.fault(g, ctx) })
			t.Log(v)
			if len(g.afterLease) > 0 {
				t.Logf("new leader after the lease's end: median %v of %d", tally.Median(g.afterLease), len(g.afterLease))
			}
			if len(v.Doubled) > 0 {
				t.Errorf("doubled without an interruption: %v", v.Doubled)
			}
			if !s.forget && len(v.Missing) > 0 {
				t.Errorf("missing: %v", v.Missing)
			}
			if !s.forget && len(v.Unaccounted) > 0 {
				t.Errorf("not in the history: %v", v.Unaccounted)
			}
			if t.Failed() {
				g.keepLogs()
			}
		})
	}
}

// run lets faults happen until the time is over, lets the group settle, ends it politely, and counts.
func (g *group) run(fault func(context.Context)) tally.Verdict {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), *length+3*time.Minute)
	defer cancel()
	said := &tally.Chronicle{}
	gathering, stopGathering := context.WithCancel(ctx)
	gathered := make(chan struct{})
	go func() {
		defer close(gathered)
		for pause(gathering, time.Second) {
			_ = said.Gather(gathering, g.inspect, "tick") // a store that does not answer is what the scenario is about
		}
	}()

	g.awaitEffects(ctx)
	faults := 0
	for end := time.Now().Add(*length); time.Now().Before(end); faults++ {
		began := time.Now()
		fault(ctx)
		pause(ctx, interval+time.Duration(faults%8)*shift-time.Since(began))
	}
	pause(ctx, settle)
	for _, r := range g.replicas {
		r.stop(g.t)
	}
	stopGathering()
	<-gathered
	if err := said.Gather(ctx, g.inspect, "tick"); err != nil {
		g.t.Error(err)
	}
	effects, err := tally.Read(g.file)
	if err != nil {
		g.t.Error(err)
	}
	g.t.Logf("%d faults; skipped: %s", faults, said.Skipped())
	g.measureTerms(effects)
	return tally.Judge(effects, said)
}

// awaitEffects waits for the first line of the job.
func (g *group) awaitEffects(ctx context.Context) {
	for {
		if info, err := os.Stat(g.file); err == nil && info.Size() > 0 {
			return
		}
		if !pause(ctx, 20*time.Millisecond) {
			g.t.Fatal("the job never ran")
		}
	}
}

// measureTerms reports how late the first tick after each SIGTERM was.
func (g *group) measureTerms(effects []tally.Effect) {
	for _, at := range g.terms {
		for _, e := range effects {
			if due := time.Unix(e.Tick, 0); due.After(at) {
				g.afterTerm = append(g.afterTerm, e.At.Sub(due))
				break
			}
		}
	}
	if len(g.afterTerm) > 0 {
		g.t.Logf("first tick after SIGTERM: late by median %v of %d", tally.Median(g.afterTerm), len(g.afterTerm))
	}
}

func (g *group) keepLogs() {
	for _, r := range g.replicas {
		g.old = append(g.old, r)
	}
	for _, r := range g.old {
		g.t.Logf("log of %s (pid %d):\n%s", r.name, r.cmd.Process.Pid, r.logs())
	}
}
