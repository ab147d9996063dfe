package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/internal/rivals"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

// group is several replicas on one cluster, each with a store of its own.
type group struct {
	*testing.T
	*rivals.Group
	cluster *etcdtest.Cluster
	prefix  string
}

func newGroup(t *testing.T) *group {
	return &group{T: t, Group: rivals.New(t), cluster: etcdtest.StartCluster(t), prefix: prefixOf(t)}
}

// start runs a replica on the servers until stop is called or the test ends.
func (g *group) start(id string, servers ...string) (stop func()) {
	s := open(g, etcdstore.Config{Endpoints: servers, Prefix: g.prefix})
	return g.Start(id, s, brief)
}

// whole waits until all members serve.
func (g *group) whole() {
	g.Helper()
	until(g, "all members", func() bool {
		return !slices.ContainsFunc(g.cluster.Servers, func(s *etcdtest.Server) bool { return !s.Serves() })
	})
}

// watch records when the lease of group g, as the servers at addrs keep it, is deleted.
func (g *group) watch(addrs []string) (deleted <-chan time.Time) {
	client := admin(g, addrs...)
	at := make(chan time.Time, 1)
	news := client.Watch(clientv3.WithRequireLeader(g.Context()), g.prefix+"/singleton/g/lease", clientv3.WithFilterPut(), clientv3.WithCreatedNotify())
	if answer := <-news; !answer.Created {
		g.Fatal("the watch does not stand")
	}
	go func() {
		for answer := range news {
			if len(answer.Events) > 0 {
				at <- time.Now()
				return
			}
		}
	}()
	return at
}

func (g *group) others(s *etcdtest.Server) (addrs []string) {
	for _, o := range g.cluster.Servers {
		if o != s {
			addrs = append(addrs, o.Addr())
		}
	}
	return addrs
}

// TestE2ALeaderCutOffBelievesNoLongerThanTheOthersKeepItsLease: alone, and together with its server, which goes on to accept
// what it sends.
func TestE2ALeaderCutOffBelievesNoLongerThanTheOthersKeepItsLease(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	for _, with := range []string{"nobody", "a follower", "the leader"} {
		server := g.cluster.Follower()
		if with == "the leader" {
			server = g.cluster.Leader()
		}
		proxy := netproxy.Start(t, server.Addr())
		stop := g.start("r", proxy.Addr())
		c := g.Next()
		deleted := g.watch(g.others(server))
		if with == "nobody" {
			proxy.Requests.Drop()
			proxy.Replies.Drop()
		} else {
			g.cluster.Cut(server, true)
		}
		<-c.Ended
		if cause := context.Cause(c.Context); !errors.Is(cause, election.ErrExpired) {
			t.Errorf("the term ended by %v", cause)
		}
		margin := (<-deleted).Sub(c.End)
		t.Logf("cut off with %s, the leader's context ended %v before the servers deleted its lease", with, margin)
		if margin < 0 {
			t.Errorf("cut off with %s: the servers had deleted the lease before the leader's context ended", with)
		}
		proxy.Requests.Pass()
		proxy.Replies.Pass()
		stop()
		g.cluster.Cut(server, false)
		g.whole()
	}
}

// TestE2AServerThatHasLedEndsNoLease: it has stood still for longer than a lease lasts, and when it goes on it ends what it
// thinks to have ended, before it hears of another leader of the servers. It knows of no renewal meanwhile.
func TestE2AServerThatHasLedEndsNoLease(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	old := g.cluster.Leader()
	s := open(g, etcdstore.Config{Endpoints: g.others(old), Prefix: g.prefix})
	type term struct {
		store.Lease
		until time.Time // the holder's deadline
	}
	var terms []*term // many, because the server ends only some of them in time
	for i := range 30 {
		c, sent := candidate("a", "n1"), time.Now()
		c.TTL = brief
		l, err := s.Acquire(short(t), fmt.Sprint("g", i), c)
		must(t, err)
		terms = append(terms, &term{l, sent.Add(l.TTL)})
	}
	renew := func() {
		for _, l := range terms {
			sent := time.Now()
			granted, err := s.Renew(short(t), l.Lease)
			switch {
			case err == nil:
				l.until = sent.Add(granted.TTL)
			case errors.Is(err, store.ErrLost) && time.Now().Before(l.until):
				t.Fatalf("the lease of %s has ended %v early", l.Group, time.Until(l.until))
			}
		}
	}
	old.Stop()
	for begin := time.Now(); time.Since(begin) < brief*3/2; {
		renew()
	}
	old.Cont()
	until(t, "the server follows", func() bool { renew(); return old.Serves() && !old.Leads() })
	renew()
}

// TestE1NeverTwoLeadersWhateverBreaks breaks members of the cluster in turn, under three replicas that know them all.
func TestE1NeverTwoLeadersWhateverBreaks(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	for _, id := range []string{"a", "b", "c"} {
		g.start(id, g.cluster.Addrs()...)
	}
	killed := func(s *etcdtest.Server) func() {
		s.Kill()
		return func() { must(t, s.Restart()) }
	}
	stopped := func(s *etcdtest.Server) func() {
		s.Stop()
		return s.Cont
	}
	cut := func(s *etcdtest.Server) func() {
		g.cluster.Cut(s, true)
		return func() { g.cluster.Cut(s, false) }
	}
	majority := func(do func(*etcdtest.Server) func()) func() {
		a, b := g.cluster.Leader(), g.cluster.Follower()
		first, second := do(a), do(b)
		return func() { first(); second() }
	}
	g.Bear([]rivals.Fault{
		{Name: "a minority is killed", Do: func() func() { return killed(g.cluster.Follower()) }},
		{Name: "a minority stands still", Do: func() func() { return stopped(g.cluster.Follower()) }},
		{Name: "a minority is cut off", Do: func() func() { return cut(g.cluster.Follower()) }},
		{Name: "the servers' leader is killed", Do: func() func() { return killed(g.cluster.Leader()) }},
		{Name: "the servers' leader stands still", Do: func() func() { return stopped(g.cluster.Leader()) }},
		{Name: "the servers' leader is cut off", Do: func() func() { return cut(g.cluster.Leader()) }},
		{Name: "all members are compacted and defragmented", Do: func() func() {
			client := admin(t, g.cluster.Addrs()...)
			now, err := client.Get(short(t), "none")
			must(t, err)
			_, err = client.Compact(short(t), now.Header.Revision, clientv3.WithCompactPhysical())
			must(t, err)
			for _, addr := range g.cluster.Addrs() {
				_, err := client.Defragment(short(t), addr)
				must(t, err)
			}
			return func() {}
		}},
		{Name: "a majority stands still", Do: func() func() { return majority(stopped) }, Lost: true},
		{Name: "a majority is cut off", Do: func() func() { return majority(cut) }, Lost: true},
		{Name: "a majority is killed", Do: func() func() {
			a, b := g.cluster.Leader(), g.cluster.Follower()
			a.Kill()
			b.Kill()
			return func() { // one alone serves nobody
				must(t, a.Launch())
				must(t, b.Launch())
				must(t, a.Wait())
				must(t, b.Wait())
			}
		}, Lost: true},
	}, brief, g.whole)
}

// TestS1AndS2EachTickOfAnEverySecondJobRunsOnce: three replicas, and servers that lose their leader.
func TestS1AndS2EachTickOfAnEverySecondJobRunsOnce(t *testing.T) {
	t.Parallel()
	e := etcdtest.StartCluster(t)
	rivals.EverySecond(t, brief, func() store.Store {
		return open(t, etcdstore.Config{Endpoints: e.Addrs(), Prefix: prefixOf(t)})
	}, func() func() {
		killed := e.Leader()
		killed.Kill()
		return func() { must(t, killed.Restart()) }
	})
}
