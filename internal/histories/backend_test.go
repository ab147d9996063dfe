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

// backend is a server that the clients of a history share.
type backend struct {
	addr       string
	stop, cont func() // freeze and thaw it
	lag        time.Duration

	// open returns a client's store, which it reaches at addr, and a way to write past it.
	open func(t *testing.T, addr string, ttl time.Duration) (store.Store, func(ctx context.Context, value string) error)
}

func onRedis(t *testing.T) *backend {
	server := redistest.Start(t)
	return &backend{
		addr: server.Addr(), stop: server.Stop, cont: server.Cont,
		open: func(t *testing.T, addr string, _ time.Duration) (store.Store, func(context.Context, string) error) {
			client := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1, ContextTimeoutEnabled: true})
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

func onZooKeeper(t *testing.T) *backend {
	server := zktest.Start(t)
	return &backend{
		addr: server.Addr(), stop: server.Stop, cont: server.Cont, lag: time.Hour,
		open: func(t *testing.T, addr string, ttl time.Duration) (store.Store, func(context.Context, string) error) {
			s := zkstore.New(zkstore.Config{Servers: []string{addr}, SessionTimeout: ttl * 3 / 2})
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			return s, nil
		},
	}
}
