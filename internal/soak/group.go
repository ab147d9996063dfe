//go:build unix

package soak

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/tally"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

const (
	lease    = 3 * time.Second
	often    = "* * * * * *"
	interval = 9 * time.Second        // between faults
	shift    = 130 * time.Millisecond // so that they strike at other times of a tick
	frozen   = 5 * time.Second
	settle   = 2*lease + 4*time.Second // after the last fault
)

// Server is one server of a store.
type Server interface {
	Stop()               // freezes it
	Cont()               // thaws it
	Kill()               // ends it, as a crash does
	Restart() error      // starts it again and waits until it serves
	RestartEmpty() error // the same, after the loss of its data
}

// Servers is the store that a group of replicas is on.
type Servers struct {
	URL     string
	Store   store.Store                  // for looking; closed by who has made it
	Leader  func(context.Context) Server // the one that takes the calls, or leads the others
	Away    time.Duration                // how long one that was killed stays away: others take its place meanwhile
	Forgets bool                         // the one has all the data: without it, what nobody remembers is gone

	Requests func() float64 // how many requests all servers have had; nil where nobody counts them
}

// group is three replicas on one store.
type group struct {
	t        testing.TB
	binary   string
	lease    time.Duration
	servers  Servers
	inspect  *scheduler.Inspector
	dir      string
	file     string
	replicas map[string]*replica
	old      []*replica

	afterTerm, afterLease []time.Duration
	terms                 []time.Time
}

// newGroup starts three replicas with a job that is due as spec says.
func newGroup(t testing.TB, binary string, servers Servers, lease time.Duration, spec string) *group {
	g := &group{t: t, binary: binary, lease: lease, servers: servers, dir: t.TempDir(), replicas: make(map[string]*replica)}
	var err error
	if g.inspect, err = scheduler.NewInspector(servers.Store, "soak", "soak"); err != nil {
		t.Fatal(err)
	}
	g.file = filepath.Join(g.dir, "effects")
	// A machine that stands still for minutes is no reason to skip what is late.
	crontab := "#: name=tick catch-up=all catch-up-max=2000 on-interrupt=rerun\n" +
		spec + " echo $SINGLETON_TICK_UNIX $(date +%s%N) >> " + g.file + "\n"
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
	g.replicas[name] = launch(g.t, g.binary, name, "cron", "--group", "soak", "--store", g.servers.URL, "--id", name,
		"--seconds", "--lease", g.lease.String(), "--history", "2000", "--log-format", "json",
		filepath.Join(g.dir, "crontab"))
}

// leader waits until somebody leads and returns that replica.
func (g *group) leader(ctx context.Context) *replica {
	for {
		l, err := g.servers.Store.Leader(ctx, "soak")
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

// run lets faults happen until the time is over, lets the group settle, ends it politely, and counts.
func (g *group) run(length time.Duration, faults []fault) tally.Verdict {
	g.t.Helper()
	ctx, cancel := context.WithTimeout(g.t.Context(), length+3*time.Minute)
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
	n := 0
	for end := time.Now().Add(length); time.Now().Before(end); n++ {
		began := time.Now()
		faults[n%len(faults)].strike(g, ctx)
		pause(ctx, interval+time.Duration(n%8)*shift-time.Since(began))
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
	g.t.Logf("%d faults; skipped: %s", n, said.Skipped())
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
