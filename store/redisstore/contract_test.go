package redisstore_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/go-singleton/singleton/store/storetest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// A pool that has failed to dial goes on trying for up to a second after it was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// open returns a store on client that ends with the test.
func open(t testing.TB, client redis.UniversalClient, opts *redisstore.Options) *redisstore.Store {
	s := redisstore.New(client, opts)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// harness gives each store a prefix of its own on one server; prefix returns the last.
func harness(client redis.UniversalClient) (h storetest.Harness, prefix func() string) {
	n := 0
	prefix = func() string { return fmt.Sprintf("test%d", n) }
	return storetest.Harness{
		Open: func(t *testing.T) store.Store {
			n++
			return open(t, client, &redisstore.Options{Prefix: prefix(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		},
		Wipe: func(t *testing.T) {
			if err := client.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		},
	}, prefix
}

func TestContract(t *testing.T) {
	h, _ := harness(redistest.Start(t).Client())
	storetest.Run(t, h)
}

func TestContractOnMiniredis(t *testing.T) {
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer client.Close()
	h, prefix := harness(client)
	h.Fill = func(t *testing.T, ids []string) {
		for _, id := range ids {
			m.HSet(prefix()+":{g}:inbox", id, "m")
		}
	}
	storetest.Run(t, h)
}
