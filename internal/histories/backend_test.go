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

// backend is a server, or several, that the clients of a history share.
type backend struct {
	addrs  []string
	faults []fault // of the servers
	lag    time.Duration
	dim    bool // who does not hold the lease may be shown a moment that never was
	early  bool // a lease may end before its time

	// open returns a client's store, which it reaches at addrs, and a way to write past it.
	open func(t *testing.T, addrs []string, ttl time.Duration) (store.Store, func(ctx context.Context, value string) error)
}

// fault is one of a server, until it is mended.
type fault struct {
	begin, end func() error
}

func quietly(do func()) func() error {
	return func() error {
		do()
		return nil
	}
}

func onRedis(t *testing.T) *backend {
	server := redistest.Start(t)
	return &backend{
		addrs: []string{server.Addr()}, faults: []fault{{quietly(server.Stop), quietly(server.Cont)}},
		open: func(t *testing.T, addrs []string, _ time.Duration) (store.Store, func(context.Context, string) error) {
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

func onZooKeeper(t *testing.T) *backend {
	server := zktest.Start(t)
	return &backend{
		addrs: []string{server.Addr()}, faults: []fault{{quietly(server.Stop), quietly(server.Cont)}}, lag: time.Hour,
		open: func(t *testing.T, addrs []string, ttl time.Duration) (store.Store, func(context.Context, string) error) {
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
