package soak

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/redis/go-redis/v9"
)

// servers is the Redis, of whatever topology, that a group of replicas is on.
type servers struct {
	url     string
	store   *redisstore.Store
	primary func(context.Context) *redistest.Server // that takes the calls
	away    time.Duration                           // how long one that was killed stays away: others take its place meanwhile
}

func newServers(t *testing.T) servers {
	kept := []redistest.Option{redistest.AppendOnly(), redistest.Args("--appendfsync", "everysec")} // Redis's default
	var s servers
	switch *topology {
	case "one":
		server := redistest.Start(t, kept...)
		s = servers{server.URL(), redisstore.New(server.Client(), nil),
			func(context.Context) *redistest.Server { return server }, time.Second}
	case "sentinels":
		all := redistest.StartSentinels(t, kept...)
		url := fmt.Sprintf("redis+sentinel://%s/%s?min_replicas=1", strings.Join(all.Addrs(), ","), redistest.PrimaryName)
		s = servers{url, redisstore.NewFailover(all.Options(), nil), settled(t, all.Primary), 4 * time.Second}
	case "cluster":
		all := redistest.StartCluster(t, kept...)
		client := redis.NewClusterClient(all.Options())
		t.Cleanup(func() { _ = client.Close() })
		url := fmt.Sprintf("redis+cluster://%s?min_replicas=1", strings.Join(all.Addrs(), ","))
		s = servers{url, redisstore.New(client, nil), settled(t, func(ctx context.Context) *redistest.Server {
			for _, n := range all.Nodes {
				if owner, err := all.Owner(ctx, n, "{soak}"); err == nil {
					return owner
				}
			}
			return nil
		}), 5 * time.Second}
	default:
		t.Fatalf("-on %s: want one, sentinels or cluster", *topology)
	}
	t.Cleanup(func() { _ = s.store.Close() })
	return s
}

// settled waits until there is a primary.
func settled(t *testing.T, find func(context.Context) *redistest.Server) func(context.Context) *redistest.Server {
	return func(ctx context.Context) *redistest.Server {
		for {
			if p := find(ctx); p != nil {
				return p
			}
			if !pause(ctx, 20*time.Millisecond) {
				t.Fatal("there is no primary")
			}
		}
	}
}
