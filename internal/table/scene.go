//go:build unix

package table

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/tally"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

// Lease is that of the replicas: longer than the failover of the servers of internal/redistest, as it is in production.
const Lease = 6 * time.Second

const (
	patience = 2 * time.Minute // for whatever must come
	recent   = 300 * time.Millisecond
	look     = 5 * time.Millisecond
	calm     = 3 * time.Second        // between two strokes
	shift    = 130 * time.Millisecond // so that they fall at other times of a tick
)

// Scene is a group of three replicas on servers that a fault strikes.
type Scene struct {
	t        testing.TB
	kind     Kind
	servers  Servers
	store    store.Store
	inspect  *scheduler.Inspector
	dir      string
	ticks    string // file
	replicas map[string]*Replica

	lostTerms, lostTicks int // of what replicas had been granted, when the store forgot
}

func newScene(t testing.TB, kind Kind, servers Servers) *Scene {
	s := &Scene{t: t, kind: kind, servers: servers, dir: t.TempDir(), replicas: map[string]*Replica{}}
	s.ticks = filepath.Join(s.dir, "ticks")
	var err error
	if s.store, err = kind.Open(servers.Addrs, nil, Lease); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.store.Close() })
	if s.inspect, err = scheduler.NewInspector(s.store, group, "table"); err != nil {
		t.Fatal(err)
	}
	s.Await("a ledger", func() bool { return scheduler.Create(t.Context(), s.store, group) == nil })
	for _, name := range []string{"a", "b", "c"} {
		s.launch(name)
	}
	return s
}

// Context ends with the test.
func (s *Scene) Context() context.Context { return s.t.Context() }

// Rest lets time pass.
func (s *Scene) Rest(d time.Duration) { world.Rest(s.t.Context(), d, nil) }

// Must fails the test for an error.
func (s *Scene) Must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// Await waits for what comes by itself.
func (s *Scene) Await(what string, come func() bool) {
	s.t.Helper()
	if !s.AwaitFor(patience, come) {
		s.keepLogs()
		s.t.Fatalf("it did not come: %s", what)
	}
}

// AwaitFor waits for what may come, and reports whether it has.
func (s *Scene) AwaitFor(limit time.Duration, come func() bool) bool {
	for end := time.Now().Add(limit); !come(); {
		if time.Now().After(end) {
			return false
		}
		s.Rest(look)
	}
	return true
}

// Leader waits until somebody leads and returns that replica; of several the one with the highest token.
func (s *Scene) Leader() (leader *Replica) {
	s.t.Helper()
	s.Await("a leader", func() bool {
		highest, since := uint64(0), now().add(-recent)
		for _, st := range s.stints() {
			if st.last > since && st.token > highest {
				highest, leader = st.token, s.replicas[st.replica]
			}
		}
		return leader != nil
	})
	return leader
}

// Replicas returns all of them.
func (s *Scene) Replicas() (all []*Replica) {
	for _, name := range slices.Sorted(maps.Keys(s.replicas)) {
		all = append(all, s.replicas[name])
	}
	return all
}

// Still keeps all replicas from doing anything while look is called.
func (s *Scene) Still(look func()) {
	for _, r := range s.Replicas() {
		r.process.Stop()
	}
	look()
	for _, r := range s.Replicas() {
		r.process.Cont()
	}
}

// awaitTerm waits until a term has begun after a moment.
func (s *Scene) awaitTerm(after moment) {
	s.t.Helper()
	s.Await("another term", func() bool { return s.begun(after) })
}

func (s *Scene) begun(after moment) bool {
	return slices.ContainsFunc(s.stints(), func(st stint) bool { return st.first > after })
}

// stints returns those of all replicas.
func (s *Scene) stints() (all []stint) {
	for _, r := range s.Replicas() {
		some, err := r.stints()
		if err != nil {
			s.t.Fatal(err)
		}
		all = append(all, some...)
	}
	return all
}

// effects returns the lines of the job.
func (s *Scene) effects() []tally.Effect {
	all, err := tally.Read(s.ticks)
	if err != nil {
		s.t.Fatal(err)
	}
	return all
}

// ran returns how many lines of the job there are.
func (s *Scene) ran() int { return len(s.effects()) }

// settled waits until somebody leads and a tick has run that was not due before.
func (s *Scene) settled() {
	s.t.Helper()
	from := time.Now().Unix()
	s.Leader()
	s.Await("a tick", func() bool {
		return slices.ContainsFunc(s.effects(), func(e tally.Effect) bool { return e.Tick > from })
	})
	s.Leader()
}

// Remains says what a store that forgets still knows: the highest token that it has given, and the job's last tick. It
// counts what the replicas had been granted beyond that.
func (s *Scene) Remains(token uint64, last time.Time) {
	for _, st := range s.stints() {
		if st.token > token {
			s.lostTerms++
		}
	}
	lost := map[int64]bool{}
	for _, e := range s.effects() {
		if e.Tick > last.Unix() {
			lost[e.Tick] = true
		}
	}
	s.lostTicks += len(lost)
}

// run has the fault strike some times and judges what came of it.
func (s *Scene) run(f Fault, times int) row {
	said := &tally.Chronicle{}
	gathering, stop := context.WithCancel(s.t.Context())
	gathered := make(chan struct{})
	go func() {
		defer close(gathered)
		for world.Rest(gathering, time.Second, nil) {
			short, cancel := context.WithTimeout(gathering, 2*time.Second)
			_ = said.Gather(short, s.inspect, job) // a store that does not answer is what the scene is about
			cancel()
		}
	}()
	r := row{kind: s.kind, fault: f, times: times}
	s.settled()
	type window struct{ from, to moment }
	var windows []window
	for i := range times {
		s.Rest(calm + time.Duration(i%8)*shift)
		from := now()
		f.Strike(s)
		s.settled()
		windows = append(windows, window{from, now()})
	}
	for _, r := range s.Replicas() {
		r.stop(s)
	}
	stop()
	<-gathered
	s.Await("the history", func() bool { return said.Gather(s.t.Context(), s.inspect, job) == nil })

	stints := s.stints()
	for _, w := range windows {
		r.without = append(r.without, without(stints, w.from, w.to))
	}
	r.terms, r.overlaps, r.notGrown = len(stints), overlaps(stints), notGrown(stints)
	r.verdict = tally.Judge(s.effects(), said)
	r.lostTerms, r.lostTicks = s.lostTerms, s.lostTicks
	return r
}

// keepLogs shows what the replicas have logged.
func (s *Scene) keepLogs() {
	for name := range s.replicas {
		text, err := os.ReadFile(filepath.Join(s.dir, name+".log"))
		s.t.Logf("log of %s: %v\n%s", name, err, text)
	}
	for _, st := range inOrder(s.stints()) {
		s.t.Logf("%s led with token %d from %d to %d", st.replica, st.token, st.first, st.last)
	}
}
