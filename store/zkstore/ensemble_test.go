package zkstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/rivals"
	"github.com/go-singleton/singleton/internal/zktest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/zkstore"
)

// group is several replicas on one ensemble, each with a store of its own that prefers one member.
type group struct {
	*testing.T
	*rivals.Group
	ensemble *zktest.Ensemble
	chroot   string
}

func newGroup(t *testing.T) *group {
	return &group{T: t, Group: rivals.New(t), ensemble: ensemble(t), chroot: chrootOf(t)}
}

// start runs a replica on the servers until stop is called or the test ends.
func (g *group) start(id string, servers ...string) (stop func()) {
	s := open(g, zkstore.Config{Servers: servers, Chroot: g.chroot, SessionTimeout: timeout})
	return g.Start(id, s, timeout)
}

// whole waits until all members serve.
func (g *group) whole() {
	g.Helper()
	restarted, err := g.ensemble.Heal()
	must(g, err)
	if restarted {
		g.Log("ZooKeeper wrote nothing any more, and its leader was restarted")
	}
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
		c := g.Next()
		deleted := g.watch(g.others(cut))
		g.ensemble.Cut(cut, true)
		<-c.Ended
		if cause := context.Cause(c.Context); !errors.Is(cause, election.ErrExpired) {
			t.Errorf("the term ended by %v", cause)
		}
		margin := (<-deleted).Sub(c.End)
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
	follower := func() *zktest.Server {
		i := slices.IndexFunc(g.ensemble.Servers, func(s *zktest.Server) bool { return s.Mode() == "follower" })
		return g.ensemble.Servers[i]
	}
	g.Bear([]rivals.Fault{
		{Name: "a minority is killed", Do: func() func() {
			s := follower()
			s.Kill()
			return func() { must(t, s.Restart()) }
		}},
		{Name: "a minority stands still", Do: func() func() {
			s := follower()
			s.Stop()
			return s.Cont
		}},
		{Name: "the ensemble's leader is killed", Do: func() func() {
			s := g.ensemble.Leader()
			s.Kill()
			return func() { must(t, s.Restart()) }
		}},
		{Name: "the ensemble's leader stands still", Do: func() func() {
			s := g.ensemble.Leader()
			s.Stop()
			return s.Cont
		}},
		{Name: "the ensemble's leader is cut off", Do: func() func() {
			s := g.ensemble.Leader()
			g.ensemble.Cut(s, true)
			return func() { g.ensemble.Cut(s, false) }
		}},
		{Name: "a majority stands still", Do: func() func() {
			a := g.ensemble.Leader()
			b := follower()
			a.Stop()
			b.Stop()
			return func() { a.Cont(); b.Cont(); g.whole() }
		}, Lost: true},
	}, timeout*2/3, g.whole)
}

// TestS1AndS2EachTickOfAnEverySecondJobRunsOnce: three replicas, and an ensemble that loses its leader.
func TestS1AndS2EachTickOfAnEverySecondJobRunsOnce(t *testing.T) {
	e := ensemble(t)
	rivals.EverySecond(t, timeout, func() store.Store {
		return open(t, zkstore.Config{Servers: e.Addrs(), Chroot: chrootOf(t), SessionTimeout: timeout})
	}, func() func() {
		killed := e.Leader()
		killed.Kill()
		return func() { must(t, killed.Restart()) }
	})
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
		must(t, within(rivals.Patience, renew))
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
