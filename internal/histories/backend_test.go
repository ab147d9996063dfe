package histories

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/zktest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/go-singleton/singleton/store/zkstore"
)

func onRedis(t *testing.T) *Backend {
	server := redistest.Start(t)
	return &Backend{
		Addrs: []string{server.Addr()}, Faults: []Fault{{Quietly(server.Stop), Quietly(server.Cont)}},
		Open: func(t *testing.T, addrs []string, _ time.Duration) (store.Store, func(context.Context, string) error) {
			client := redis.NewClient(&redis.Options{Addr: addrs[0], MaxRetries: -1, ContextTimeoutEnabled: true})
			s := redisstore.New(client, nil)
			t.Cleanup(func() {
				if err := errors.Join(s.Close(), client.Close()); err != nil {
					t.Error(err)
				}
			})
			return s, func(ctx context.Context, value string) error {
				return client.HSet(ctx, "singleton:{"+group+"}:r:"+bucket, key, value).Err()
			}
		},
	}
}

func onZooKeeper(t *testing.T) *Backend {
	server := zktest.Start(t)
	return &Backend{
		Addrs: []string{server.Addr()}, Faults: []Fault{{Quietly(server.Stop), Quietly(server.Cont)}}, Lag: time.Hour,
		Open: func(t *testing.T, addrs []string, ttl time.Duration) (store.Store, func(context.Context, string) error) {
			s := zkstore.New(zkstore.Config{Servers: addrs, SessionTimeout: ttl * 3 / 2})
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			return s, nil
		},
	}
}
