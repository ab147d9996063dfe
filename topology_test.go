//go:build unix

package singleton_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// topology is several servers that the group lives on.
type topology interface {
	store(opts *redisstore.Options) *redisstore.Store
	primary() *redistest.Server // that takes the group's calls; nil while there is none
}

type behindSentinels struct {
	t *testing.T
	*redistest.Sentinels
}

func (s behindSentinels) store(opts *redisstore.Options) *redisstore.Store {
	return redisstore.NewFailover(s.Options(), opts)
}

func (s behindSentinels) primary() *redistest.Server { return s.Primary(s.t.Context()) }

type inCluster struct {
	t *testing.T
	*redistest.Cluster
}

func (c inCluster) store(opts *redisstore.Options) *redisstore.Store {
	client := redis.NewClusterClient(c.Options())
	c.t.Cleanup(func() { _ = client.Close() })
	return redisstore.New(client, opts)
}

func (c inCluster) primary() *redistest.Server {
	for _, n := range c.Nodes { // the first that answers; the one that is gone does not
		if owner, err := c.Owner(c.t.Context(), n, "{g}"); err == nil {
			return owner
		}
	}
	return nil
}

// onTopologies runs a test of a group on Sentinels and in a cluster, with acknowledgement by replicas.
func onTopologies(t *testing.T, test func(*group, topology)) {
	for name, start := range map[string]func(*testing.T) topology{
		"Sentinels": func(t *testing.T) topology { return behindSentinels{t, redistest.StartSentinels(t)} },
		"cluster":   func(t *testing.T) topology { return inCluster{t, redistest.StartCluster(t)} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := start(t)
			g := &group{t: t, name: "g", calls: make(chan *call, 1000)}
			g.reach = func() store.Store {
				return servers.store(&redisstore.Options{Logger: g.log(), MinReplicas: 1})
			}
			test(g, servers)
		})
	}
}

// failedOver takes the group's primary away and waits for another.
func failedOver(t *testing.T, servers topology, end func(*redistest.Server)) (old *redistest.Server) {
	t.Helper()
	eventually(t, "a primary", func() bool { old = servers.primary(); return old != nil })
	end(old)
	eventually(t, "another primary", func() bool { now := servers.primary(); return now != nil && now != old })
	return old
}

// TestE1AndE3AndE4OneLeadsThroughFailovers freezes the primary. When it goes on it takes itself for the primary, in front
// of Sentinels for ten seconds. That nobody else believes to lead is checked whenever a replica begins to.
func TestE1AndE3AndE4OneLeadsThroughFailovers(t *testing.T) {
	t.Parallel()
	onTopologies(t, func(g *group, servers topology) {
		for _, id := range []string{"a", "b", "c"} {
			g.start(g.open(), election.Config{ID: id, Lease: long}, untilEnd)
		}
		st, leader := g.open(), g.next()
		// leads waits until the store says that the newest leader leads.
		leads := func() {
			g.t.Helper()
			eventually(g.t, "a leader that the store knows", func() bool {
				leader = g.newest(leader)
				l, err := st.Leader(g.t.Context(), g.name)
				return err == nil && l.Token == leader.Token() && leader.Valid()
			})
		}
		leads()
		old := failedOver(g.t, servers, (*redistest.Server).Stop)
		leads()
		old.Cont()
		for range 2 { // the hint of a release comes from the new primary
			leads()
			before := leader
			before.by.end()
			if leader = g.newest(leader); leader == before {
				leader = g.next()
			}
		}
		leads()
	})
}

// TestS1AndS2EachTickOnceThroughFailovers kills the primary between the ticks of an every-second job, and starts it again
// without its data.
func TestS1AndS2EachTickOnceThroughFailovers(t *testing.T) {
	t.Parallel()
	onTopologies(t, func(g *group, servers topology) {
		s := newShift(g)
		for _, id := range []string{"a", "b"} {
			s.work(g.open(), scheduler.Config{ID: id, Lease: long},
				scheduler.Job{Name: "tick", Spec: everySecond, CatchUp: scheduler.CatchUpAll})
		}
		first := s.run("tick", time.Time{})
		second := s.run("tick", first.Tick)
		old := failedOver(g.t, servers, (*redistest.Server).Kill)
		if err := old.Restart(); err != nil { // in a cluster nobody else could acknowledge a commit
			g.t.Fatal(err)
		}
		last := s.run("tick", second.Tick.Add(6*time.Second))
		s.accounted("tick", last.Tick)
		inOrder(g.t, s.ticks("tick"), false)
	})
}
