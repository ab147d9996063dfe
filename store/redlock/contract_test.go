package redlock_test

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redlock"
	"github.com/go-singleton/singleton/store/storetest"
)

func TestMain(m *testing.M) {
	logging.Disable() // of go-redis, which tells of each dial that failed
	goleak.VerifyTestMain(m,
		// A pool that has failed to dial goes on trying for up to a second after it was closed.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}

// clients returns one for each node.
func clients(nodes *redistest.Nodes) (list []*redis.Client) {
	for _, n := range nodes.All {
		list = append(list, n.Client())
	}
	return list
}

// open returns a store that ends with the test.
func open(t testing.TB, clients []*redis.Client, cfg redlock.Config) *redlock.Store {
	t.Helper()
	s, err := redlock.New(clients, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// TestContract runs on servers that have just started: what they have acknowledged is on disk, so that each has a vote.
func TestContract(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d servers", n), func(t *testing.T) {
			nodes := redistest.StartNodes(t, n, redistest.AppendOnly())
			list, opened := clients(nodes), 0
			prefix := func() string { return fmt.Sprintf("test%d", opened) }
			storetest.Run(t, storetest.Harness{
				Open: func(t *testing.T) store.Store {
					opened++
					return open(t, list, redlock.Config{Prefix: prefix(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
				},
				Wipe: func(t *testing.T) {
					for _, c := range list {
						if err := c.FlushAll(t.Context()).Err(); err != nil {
							t.Fatal(err)
						}
					}
				},
				Fill: func(t *testing.T, ids []string) {
					messages := map[string]any{}
					for _, id := range ids {
						messages[id] = "m"
					}
					for _, c := range list {
						if err := c.HSet(t.Context(), prefix()+":{g}:inbox", messages).Err(); err != nil {
							t.Fatal(err)
						}
					}
				},
			})
		})
	}
}
