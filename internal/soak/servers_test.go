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
var stores = map[string]func(*testing.T) soak.Servers{
	"redis": startRedis, "sentinels": startSentinels, "cluster": startCluster, "zookeeper": startZooKeeper,
}

var kept = []redistest.Option{redistest.AppendOnly(), redistest.Args("--appendfsync", "everysec")} // Redis's default

func startRedis(t *testing.T) soak.Servers {
	server := redistest.Start(t, kept...)
	return soak.Servers{
		URL: server.URL(), Store: closed(t, redisstore.New(server.Client(), nil)),
		Leader: func(context.Context) soak.Server { return server }, Away: time.Second, Forgets: true,
	}
}

func startSentinels(t *testing.T) soak.Servers {
	all := redistest.StartSentinels(t, kept...)
	return soak.Servers{
		URL:    fmt.Sprintf("redis+sentinel://%s/%s?min_replicas=1", strings.Join(all.Addrs(), ","), redistest.PrimaryName),
		Store:  closed(t, redisstore.NewFailover(all.Options(), nil)),
		Leader: settled(t, all.Primary), Away: 4 * time.Second,
	}
}

func startCluster(t *testing.T) soak.Servers {
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

func startZooKeeper(t *testing.T) soak.Servers {
	all := zktest.StartEnsemble(t)
	st := zkstore.New(zkstore.Config{Servers: all.Addrs(), SessionTimeout: 3 * time.Second})
	return soak.Servers{
		URL: "zk://" + strings.Join(all.Addrs(), ","), Store: closed(t, st),
		Leader: func(context.Context) soak.Server { return all.Leader() }, Away: 4 * time.Second,
	}
}

func closed(t *testing.T, st store.Store) store.Store {
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// settled waits until there is a primary.
func settled(t *testing.T, find func(context.Context) *redistest.Server) func(context.Context) soak.Server {
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
