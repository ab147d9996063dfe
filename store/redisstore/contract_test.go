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

// harness gives each store a prefix of its own on one server.
func harness(client redis.UniversalClient) storetest.Harness {
	n := 0
	return storetest.Harness{
		Open: func(t *testing.T) store.Store {
			n++
			return open(t, client, &redisstore.Options{Prefix: fmt.Sprintf("test%d", n), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		},
		Wipe: func(t *testing.T) {
			if err := client.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
		},
	}
}

func TestContract(t *testing.T) {
	storetest.Run(t, harness(redistest.Start(t).Client()))
}

func TestContractOnMiniredis(t *testing.T) {
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer client.Close()
	storetest.Run(t, harness(client))
}
