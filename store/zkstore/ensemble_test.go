package zkstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/zktest"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/zkstore"
)

// group is several replicas on one ensemble, each with a store of its own that prefers one member.
type group struct {
	*testing.T
	ensemble *zktest.Ensemble
	chroot   string
	elected  chan *term

	mu    sync.Mutex
	terms []*term
}

// term is one term of a replica as its work sees it.
type term struct {
	*election.Term
	id    string
	ctx   context.Context
	ended chan struct{} // closed at the instant that the work's context ended
	end   time.Time     // that instant
}

func newGroup(t *testing.T) *group {
	return &group{T: t, ensemble: ensemble(t), chroot: chrootOf(t), elected: make(chan *term, 1000)}
}

// start runs a replica on the servers until stop is called or the test ends.
func (g *group) start(id string, servers ...string) (stop func()) {
	s := open(g, zkstore.Config{Servers: servers, Chroot: g.chroot, SessionTimeout: timeout})
	e, err := election.New(s, election.Config{Group: "g", ID: id, Lease: timeout})
	must(g, err)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() {
		over <- e.Run(ctx, func(ctx context.Context, leading *election.Term) error {
			c := &term{Term: leading, id: id, ctx: ctx, ended: make(chan struct{})}
			g.enter(c)
			<-ctx.Done()
			c.end = time.Now()
			close(c.ended)
			return nil
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-over; err != nil {
			g.Error(err)
		}
	})
	g.Cleanup(stop)
	return stop
}

// whole waits until all members serve.
func (g *group) whole() {
	g.Helper()
	until(g, "all members", func() bool {
		return !slices.ContainsFunc(g.ensemble.Servers, func(s *zktest.Server) bool { return s.Mode() == "" })
	})
}

// enter notes a term, and that nobody else believes to lead when it begins.
func (g *group) enter(c *term) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, other := range g.terms {
		if other.Valid() {
			g.Errorf("E1: %s leads with token %d while %s does with %d", c.id, c.Token(), other.id, other.Token())
		}
		if other.Token() >= c.Token() {
			g.Errorf("E3: token %d after %d", c.Token(), other.Token())
		}
	}
	g.terms = append(g.terms, c)
	g.elected <- c
}

// next waits for the next term.
func (g *group) next() *term {
	g.Helper()
	select {
	case c := <-g.elected:
		return c
	case <-time.After(patience):
		g.Fatal("nobody leads")
		return nil
	}
}

// newest is the present term.
func (g *group) newest(c *term) *term {
	for len(g.elected) > 0 {
		c = <-g.elected
	}
	return c
}

// watch records when the lease of group g, as the servers at addrs keep it, is deleted.
func (g *group) watch(addrs []string) (deleted <-chan time.Time) {
	conn, _, err := zk.Connect(addrs, 30*time.Second, zk.WithLogInfo(false))
	must(g, err)
	g.Cleanup(conn.Close)
	there, _, events, err := conn.ExistsW(g.chroot + "/singleton/g/lease")
	must(g, err)
	if !there {
		g.Fatal("nobody holds the lease")
	}
	at := make(chan time.Time, 1)
	go func() {
		for e := range events {
			if e.Type == zk.EventNodeDeleted {
				at <- time.Now()
			}
		}
	}()
	return at
}

func (g *group) others(s *zktest.Server) (addrs []string) {
	for _, o := range g.ensemble.Servers {
		if o != s {
			addrs = append(addrs, o.Addr())
		}
	}
	return addrs
}

// TestE2ALeaderCutOffWithItsServerBelievesNoLongerThanTheOthersKeepItsLease: its server goes on to answer reads and pings.
func TestE2ALeaderCutOffWithItsServerBelievesNoLongerThanTheOthersKeepItsLease(t *testing.T) {
	g := newGroup(t)
	for _, mode := range []string{"leader", "follower"} {
		i := slices.IndexFunc(g.ensemble.Servers, func(s *zktest.Server) bool { return s.Mode() == mode })
		cut := g.ensemble.Servers[i]
		stop := g.start(mode, cut.Addr())
		c := g.next()
		deleted := g.watch(g.others(cut))
		g.ensemble.Cut(cut, true)
		<-c.ended
		if cause := context.Cause(c.ctx); !errors.Is(cause, election.ErrExpired) {
			t.Errorf("the term ended by %v", cause)
		}
		margin := (<-deleted).Sub(c.end)
		t.Logf("cut off with a %s, the leader's context ended %v before the servers deleted its lease", mode, margin)
		if margin < 0 {
			t.Errorf("cut off with a %s: the servers had deleted the lease before the leader's context ended", mode)
		}
		stop()
		g.ensemble.Cut(cut, false)
		g.whole()
	}
}

// TestE1NeverTwoLeadersWhateverBreaks breaks members of the ensemble in turn, under three replicas that know them all.
func TestE1NeverTwoLeadersWhateverBreaks(t *testing.T) {
	g := newGroup(t)
	for _, id := range []string{"a", "b", "c"} {
		g.start(id, g.ensemble.Addrs()...)
	}
	c := g.next()
	follower := func() *zktest.Server {
		i := slices.IndexFunc(g.ensemble.Servers, func(s *zktest.Server) bool { return s.Mode() == "follower" })
		return g.ensemble.Servers[i]
	}
	for _, fault := range []struct {
		name string
		do   func() (mend func())
		lost bool // nobody can lead meanwhile
	}{
		{"a minority is killed", func() func() {
			s := follower()
			s.Kill()
			return func() { must(t, s.Restart()) }
		}, false},
		{"a minority stands still", func() func() {
			s := follower()
			s.Stop()
			return s.Cont
		}, false},
		{"the ensemble's leader is killed", func() func() {
			s := g.ensemble.Leader()
			s.Kill()
			return func() { must(t, s.Restart()) }
		}, false},
		{"the ensemble's leader stands still", func() func() {
			s := g.ensemble.Leader()
			s.Stop()
			return s.Cont
		}, false},
		{"the ensemble's leader is cut off", func() func() {
			s := g.ensemble.Leader()
			g.ensemble.Cut(s, true)
			return func() { g.ensemble.Cut(s, false) }
		}, false},
		{"a majority stands still", func() func() {
			a := g.ensemble.Leader()
			b := follower()
			a.Stop()
			b.Stop()
			return func() { a.Cont(); b.Cont() }
		}, true},
	} {
		c = g.newest(c)
		begin := time.Now()
		mend := fault.do()
		if fault.lost {
			<-c.ended
			c = g.newest(c)
			if c.Valid() {
				t.Errorf("%s: %s leads", fault.name, c.id)
			}
			mend()
			c = g.next()
			t.Logf("%s: %s leads after %v", fault.name, c.id, time.Since(begin).Round(time.Millisecond))
			continue
		}
		// The same leader or another commits on: a lease outlives the loss of a member.
		until(t, "a leader while "+fault.name, func() bool {
			c = g.newest(c)
			return c.Valid() && time.Since(begin) > timeout*2/3
		})
		t.Logf("%s: %s leads, with token %d", fault.name, c.id, c.Token())
		mend()
		g.whole()
	}
}

// TestS1AndS2EachTickOfAnEverySecondJobRunsOnce: three replicas, and an ensemble that loses its leader.
func TestS1AndS2EachTickOfAnEverySecondJobRunsOnce(t *testing.T) {
	e := ensemble(t)
	var mu sync.Mutex
	ran := map[time.Time]int{}
	ticks := make(chan time.Time, 1000)
	job := scheduler.Job{Name: "tick", Spec: "* * * * * *", CatchUp: scheduler.CatchUpAll,
		Do: func(_ context.Context, run scheduler.Run) error {
			mu.Lock()
			defer mu.Unlock()
			ran[run.Tick]++
			ticks <- run.Tick
			return nil
		}}
	var all []*scheduler.Scheduler
	for _, id := range []string{"a", "b", "c"} {
		s := open(t, zkstore.Config{Servers: e.Addrs(), Chroot: chrootOf(t), SessionTimeout: timeout})
		jobs, err := scheduler.New(s, scheduler.Config{Group: "g", ID: id, Lease: timeout, Seconds: true})
		must(t, err)
		must(t, jobs.Add(job))
		all = append(all, jobs)
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan error, 1)
		go func() { over <- jobs.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-over; err != nil {
				t.Error(err)
			}
		})
	}
	after := func(tick time.Time) time.Time {
		t.Helper()
		for {
			select {
			case next := <-ticks:
				if !next.Before(tick) {
					return next
				}
			case <-time.After(patience):
				t.Fatal("no tick runs")
			}
		}
	}
	first := after(time.Time{})
	tick := after(first.Add(2 * time.Second))
	killed := e.Leader()
	killed.Kill()
	tick = after(tick.Add(3 * time.Second))
	for _, jobs := range all {
		if jobs.Resign(short(t)) == nil {
			break // the others do not lead
		}
	}
	must(t, killed.Restart())
	last := after(tick.Add(2 * time.Second))
	mu.Lock()
	defer mu.Unlock()
	for tick := first; !tick.After(last); tick = tick.Add(time.Second) {
		if ran[tick] != 1 {
			t.Errorf("%v ran %d times", tick, ran[tick])
		}
	}
}

// TestE2ServerThatOnlyReadsRenewsNothing cuts a member off from the others. For a while it goes on to answer what it has
// been told, as long as nothing is to be changed.
func TestE2ServerThatOnlyReadsRenewsNothing(t *testing.T) {
	g := newGroup(t)
	i := slices.IndexFunc(g.ensemble.Servers, func(s *zktest.Server) bool { return s.Mode() == "follower" })
	cut := g.ensemble.Servers[i]
	within := func(d time.Duration, do func(context.Context) error) error {
		ctx, cancel := context.WithTimeout(t.Context(), d)
		defer cancel()
		return do(ctx)
	}
	for reads := false; !reads; g.whole() { // it may have given up by the time that it is asked
		s := open(t, zkstore.Config{Servers: []string{cut.Addr()}, Chroot: g.chroot, SessionTimeout: 10 * timeout})
		l := lead(t, s, "a", fmt.Sprint("n", time.Now().UnixNano()))
		renew := func(ctx context.Context) error { _, err := s.Renew(ctx, l); return err }
		must(t, within(patience, renew))
		g.ensemble.Cut(cut, true)
		reads = within(time.Second, func(ctx context.Context) error { _, err := s.Leader(ctx, "g"); return err }) == nil
		if err := within(300*time.Millisecond, renew); err == nil {
			t.Error("a renewal was acknowledged by a server that has lost the majority")
		}
		g.ensemble.Cut(cut, false)
		until(t, "the server is back, and has given the lease up", func() bool {
			return within(time.Second, func(ctx context.Context) error { return s.Release(ctx, l) }) == nil
		})
	}
}
