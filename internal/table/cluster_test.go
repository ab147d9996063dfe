//go:build unix

package table

import (
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// inCluster returns a kind of a cluster of three primaries and three replicas.
func inCluster(name, title string, opts redisstore.Options) Kind {
	return Kind{
		Name: name, Title: title,
		Start: func(t testing.TB) Servers {
			c := redistest.StartCluster(t, redistest.Args(kept...))
			return Servers{Addrs: c.Addrs(), It: topology(cluster{c})}
		},
		Open: func(addrs []string, link *Link, _ time.Duration) (store.Store, error) {
			client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Dialer: link.Dial})
			return owned{redisstore.New(client, &opts), client}, nil
		},
		Faults: []Fault{primaryKilled, primaryFrozen, forgetful(waiting(opts)), primaryEmptied, moved},
	}
}

func clusterKinds() []Kind {
	return []Kind{
		inCluster("cluster", "Cluster", redisstore.Options{}),
		inCluster("cluster-ack", "Cluster, `MinReplicas: 1`", redisstore.Options{MinReplicas: 1}),
	}
}

type cluster struct{ *redistest.Cluster }

func (c cluster) primary(s *Scene) (p *redistest.Server) {
	s.Await("an owner of the group's slot", func() bool {
		for _, n := range c.Nodes { // the first that answers; the one that is gone does not
			if owner, err := c.Owner(s.Context(), n, "{"+group+"}"); err == nil && owner != nil {
				p = owner
				return true
			}
		}
		return false
	})
	return p
}

// replicas returns the node that stands beside another in the same shard.
func (c cluster) replicas(_ *Scene, p *redistest.Server) []*redistest.Server {
	at := slices.Index(c.Nodes, p)
	return []*redistest.Server{c.Nodes[(at+len(c.Nodes)/2)%len(c.Nodes)]}
}

func (c cluster) whole(s *Scene) {
	s.Must(c.Formed())
	s.Await("a replica at the owner of the group's slot", func() bool { return connected(s, c.primary(s)) == 1 })
}

// moved moves the group's slot to another primary while the group goes on.
var moved = On("the group's slot moves to another primary", func(s *Scene, all topology) {
	c, ctx := all.(cluster), s.Context()
	from := c.primary(s)
	var to *redistest.Server
	for _, n := range c.Nodes {
		if n != from && connected(s, n) > 0 {
			to = n
		}
	}
	ids := map[*redistest.Server]string{}
	for _, n := range []*redistest.Server{from, to} {
		id, err := c.ID(ctx, n)
		s.Must(err)
		ids[n] = id
	}
	source, target := from.Client(), to.Client()
	defer func() { _, _ = source.Close(), target.Close() }()
	slot, err := source.ClusterKeySlot(ctx, "{"+group+"}").Result()
	s.Must(err)
	s.Must(target.Do(ctx, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[from]).Err())
	s.Must(source.Do(ctx, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[to]).Err())
	host, port, err := net.SplitHostPort(to.Addr())
	s.Must(err)
	for { // one key after another, as redis-cli does it: some are here then, some there
		keys, err := source.ClusterGetKeysInSlot(ctx, int(slot), 1).Result()
		s.Must(err)
		if len(keys) == 0 {
			break
		}
		s.Must(source.Do(ctx, "MIGRATE", host, port, keys[0], 0, 5000).Err())
		s.Rest(50 * time.Millisecond)
	}
	for _, n := range []*redis.Client{target, source} {
		s.Must(n.Do(ctx, "CLUSTER", "SETSLOT", slot, "NODE", ids[to]).Err())
	}
	s.Await("the move is known to all", func() bool { return c.primary(s) == to })
	all.whole(s)
})
