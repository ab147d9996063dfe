package etcdstore_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/etcdstore"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

// group is several replicas on one cluster, each with a store of its own.
type group struct {
	*testing.T
	cluster *etcdtest.Cluster
	prefix  string
	elected chan *term

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
	return &group{T: t, cluster: etcdtest.StartCluster(t), prefix: prefixOf(t), elected: make(chan *term, 1000)}
}

// start runs a replica on the servers until stop is called or the test ends.
func (g *group) start(id string, servers ...string) (stop func()) {
	s := open(g, etcdstore.Config{Endpoints: servers, Prefix: g.prefix})
	e, err := election.New(s, election.Config{Group: "g", ID: id, Lease: brief})
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
		return !slices.ContainsFunc(g.cluster.Servers, func(s *etcdtest.Server) bool { return !s.Serves() })
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
		c := g.next()
		deleted := g.watch(g.others(server))
		if with == "nobody" {
			proxy.Requests.Drop()
			proxy.Replies.Drop()
		} else {
			g.cluster.Cut(server, true)
		}
		<-c.ended
		if cause := context.Cause(c.ctx); !errors.Is(cause, election.ErrExpired) {
			t.Errorf("the term ended by %v", cause)
		}
		margin := (<-deleted).Sub(c.end)
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

// TestE1NeverTwoLeadersWhateverBreaks breaks members of the cluster in turn, under three replicas that know them all.
func TestE1NeverTwoLeadersWhateverBreaks(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	for _, id := range []string{"a", "b", "c"} {
		g.start(id, g.cluster.Addrs()...)
	}
	c := g.next()
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
	for _, fault := range []struct {
		name string
		do   func() (mend func())
		lost bool // nobody can lead meanwhile
	}{
		{"a minority is killed", func() func() { return killed(g.cluster.Follower()) }, false},
		{"a minority stands still", func() func() { return stopped(g.cluster.Follower()) }, false},
		{"a minority is cut off", func() func() { return cut(g.cluster.Follower()) }, false},
		{"the servers' leader is killed", func() func() { return killed(g.cluster.Leader()) }, false},
		{"the servers' leader stands still", func() func() { return stopped(g.cluster.Leader()) }, false},
		{"the servers' leader is cut off", func() func() { return cut(g.cluster.Leader()) }, false},
		{"all members are compacted and defragmented", func() func() {
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
		}, false},
		{"a majority stands still", func() func() { return majority(stopped) }, true},
		{"a majority is cut off", func() func() { return majority(cut) }, true},
		{"a majority is killed", func() func() {
			a, b := g.cluster.Leader(), g.cluster.Follower()
			a.Kill()
			b.Kill()
			return func() { // one alone serves nobody
				must(t, a.Launch())
				must(t, b.Launch())
				must(t, a.Wait())
				must(t, b.Wait())
			}
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
			return c.Valid() && time.Since(begin) > brief
		})
		t.Logf("%s: %s leads, with token %d", fault.name, c.id, c.Token())
		mend()
		g.whole()
	}
}

// TestS1AndS2EachTickOfAnEverySecondJobRunsOnce: three replicas, and servers that lose their leader.
func TestS1AndS2EachTickOfAnEverySecondJobRunsOnce(t *testing.T) {
	t.Parallel()
	e := etcdtest.StartCluster(t)
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
		s := open(t, etcdstore.Config{Endpoints: e.Addrs(), Prefix: prefixOf(t)})
		jobs, err := scheduler.New(s, scheduler.Config{Group: "g", ID: id, Lease: brief, Seconds: true})
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
