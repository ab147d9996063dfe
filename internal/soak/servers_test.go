package soak_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/soak"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/internal/zktest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/go-singleton/singleton/store/zkstore"
)

// stores are the kinds of -on.
var stores = map[string]func(testing.TB) soak.Servers{
	"redis": startRedis, "sentinels": startSentinels, "cluster": startCluster, "zookeeper": startZooKeeper,
	"redlock": startRedlock,
}

var kept = []redistest.Option{redistest.AppendOnly(), redistest.Args("--appendfsync", "everysec")} // Redis's default

func startRedis(t testing.TB) soak.Servers {
	server := redistest.Start(t, kept...)
	return soak.Servers{
		URL: server.URL(), Store: closed(t, redisstore.New(server.Client(), nil)),
		Leader: func(context.Context) soak.Server { return server }, Away: time.Second, Forgets: true,
		Requests: func() float64 { return reads(t, server) },
	}
}

func startSentinels(t testing.TB) soak.Servers {
	all := redistest.StartSentinels(t, kept...)
	return soak.Servers{
		URL:    fmt.Sprintf("redis+sentinel://%s/%s?min_replicas=1", strings.Join(all.Addrs(), ","), redistest.PrimaryName),
		Store:  closed(t, redisstore.NewFailover(all.Options(), nil)),
		Leader: settled(t, all.Primary), Away: 4 * time.Second,
	}
}

func startCluster(t testing.TB) soak.Servers {
	all := redistest.StartCluster(t, kept...)
	client := redis.NewClusterClient(all.Options())
	t.Cleanup(func() { _ = client.Close() })
	return soak.Servers{
		URL:   fmt.Sprintf("redis+cluster://%s?min_replicas=1", strings.Join(all.Addrs(), ",")),
		Store: closed(t, redisstore.New(client, nil)),
		Leader: settled(t, func(ctx context.Context) *redistest.Server {
			for _, n := range all.Nodes {
				if owner, err := all.Owner(ctx, n, "{soak}"); err == nil {
					return owner
				}
			}
			return nil
		}),
		Away: 5 * time.Second,
	}
}

func startZooKeeper(t testing.TB) soak.Servers {
	all := zktest.StartEnsemble(t)
	st := zkstore.New(zkstore.Config{Servers: all.Addrs(), SessionTimeout: 3 * time.Second})
	return soak.Servers{
		URL: "zk://" + strings.Join(all.Addrs(), ","), Store: closed(t, st),
		Leader: func(context.Context) soak.Server { return all.Leader() }, Away: 4 * time.Second,
		Requests: func() (n float64) {
			for _, s := range all.Servers {
				said := s.Ask("mntr")
				for ; said == "" && t.Context().Err() == nil; said = s.Ask("mntr") {
					continue // it is slow to answer
				}
				n += figure(t, said, "zk_packets_received\t")
			}
			return n
		},
	}
}

// reads is how many times Redis servers have read from a client: a script counts once, with all that it does.
func reads(t testing.TB, servers ...*redistest.Server) (n float64) {
	for _, s := range servers {
		info, err := s.Client().Info(t.Context(), "stats").Result()
		if err != nil {
			t.Fatal(err)
		}
		n += figure(t, info, "total_reads_processed:")
	}
	return n
}

// figure is the number behind a name in what a server says about itself.
func figure(t testing.TB, text, name string) (n float64) {
	_, rest, _ := strings.Cut(text, name)
	if _, err := fmt.Sscanf(rest, "%g", &n); err != nil {
		t.Fatalf("no %q in: %s", name, text)
	}
	return n
}

func closed(t testing.TB, st store.Store) store.Store {
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// settled waits until there is a primary.
func settled(t testing.TB, find func(context.Context) *redistest.Server) func(context.Context) soak.Server {
	return func(ctx context.Context) soak.Server {
		for {
			if p := find(ctx); p != nil {
				return p
			}
			if !world.Rest(ctx, 20*time.Millisecond, nil) {
				t.Fatal("there is no primary")
			}
		}
	}
}
