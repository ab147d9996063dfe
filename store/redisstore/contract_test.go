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
	goleak.VerifyTestMain(topologies{m},
		// A pool that has failed to dial goes on trying for up to a second after it was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"),
		// What go-redis's own client of Sentinels listens to them with; it leaves that behind.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9.(*sentinelFailover).listen"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9.(*channel).initMsgChan.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9.(*channel).initHealthCheck.func1"))
}

// open returns a store on client that ends with the test.
func open(t testing.TB, client redis.UniversalClient, opts *redisstore.Options) *redisstore.Store {
	return ends(t, redisstore.New(client, opts))
}

// ends closes a store at the end of the test.
func ends(t testing.TB, s *redisstore.Store) *redisstore.Store {
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// harness gives each store that open returns a prefix of its own; prefix returns the last. The servers of admins are all
// that keep its data.
func harness(open func(*testing.T, *redisstore.Options) *redisstore.Store, admins ...*redis.Client) (h storetest.Harness, prefix func() string) {
	n := 0
	prefix = func() string { return fmt.Sprintf("test%d", n) }
	return storetest.Harness{
		Open: func(t *testing.T) store.Store {
			n++
			return open(t, &redisstore.Options{Prefix: prefix(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		},
		Wipe: func(t *testing.T) {
			for _, admin := range admins {
				if err := admin.FlushAll(t.Context()).Err(); err != nil {
					t.Fatal(err)
				}
			}
		},
	}, prefix
}

// on opens stores on one client.
func on(client redis.UniversalClient) func(*testing.T, *redisstore.Options) *redisstore.Store {
	return func(t *testing.T, opts *redisstore.Options) *redisstore.Store { return open(t, client, opts) }
}

// TestContract and those on other topologies run as the user that is documented.
func TestContract(t *testing.T) {
	server := redistest.Start(t)
	grant(t, rules(t, "test*"), server)
	h, _ := harness(on(server.Client(few)), server.Client())
	storetest.Run(t, h)
}

func TestContractOnMiniredis(t *testing.T) {
	m := miniredis.RunT(t)
	m.ClockTTL(true)
	client := redis.NewClient(&redis.Options{Addr: m.Addr()})
	defer client.Close()
	h, prefix := harness(on(client), client)
	h.Fill = func(t *testing.T, ids []string) {
		for _, id := range ids {
			m.HSet(prefix()+":{g}:inbox", id, "m")
		}
	}
	storetest.Run(t, h)
}
