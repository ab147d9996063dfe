package redlock_test

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/process"
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
	return process.Started(t, func() (*redlock.Store, error) { return redlock.New(clients, cfg) })
}

// commands are those that the package's documentation names for a user.
func commands(t *testing.T) (list []string) {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n// commands ")
	names, _, ended := strings.Cut(rest, ", without which")
	if !found || !ended {
		t.Fatal("doc.go names no commands")
	}
	return strings.FieldsFunc(strings.NewReplacer("//", "", " and ", " ", "; and ", " ").Replace(names), func(r rune) bool {
		return strings.ContainsRune(", ;\n", r)
	})
}

// few returns clients for a user of that name, who may do what is documented and nothing else.
func few(t *testing.T, nodes *redistest.Nodes, prefix string) (list []*redis.Client) {
	args := []any{"ACL", "SETUSER", "few", "reset", "on", ">pw", "~" + prefix + "*", "&" + prefix + "*"}
	for _, c := range commands(t) {
		args = append(args, "+"+c)
	}
	for _, n := range nodes.All {
		if err := n.Client().Do(t.Context(), args...).Err(); err != nil {
			t.Fatal(err)
		}
		list = append(list, n.Client(func(o *redis.Options) { o.Username, o.Password = "few", "pw" }))
	}
	return list
}

// nothingRefused fails for what servers have refused anybody.
func nothingRefused(t *testing.T, admins []*redis.Client) {
	t.Helper()
	for _, c := range admins {
		denied, err := c.ACLLog(t.Context(), 10).Result()
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range denied {
			t.Errorf("SEC2: %s %s was refused to %s", d.Reason, d.Object, d.Username)
		}
	}
}

// TestContract runs as the user that is documented, on servers that have just started: what they have acknowledged is on
// disk, so that each has a vote.
func TestContract(t *testing.T) {
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("%d servers", n), func(t *testing.T) {
			nodes := redistest.StartNodes(t, n, redistest.AppendOnly())
			list, admins, opened := few(t, nodes, "test"), clients(nodes), 0
			prefix := func() string { return fmt.Sprintf("test%d", opened) }
			storetest.Run(t, storetest.Harness{
				Apart: time.Second,
				Open: func(t *testing.T) store.Store {
					opened++
					return open(t, list, redlock.Config{Prefix: prefix(), Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
				},
				Wipe: func(t *testing.T) {
					for _, c := range admins {
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
					for _, c := range admins {
						if err := c.HSet(t.Context(), prefix()+":{g}:inbox", messages).Err(); err != nil {
							t.Fatal(err)
						}
					}
				},
			})
			nothingRefused(t, admins)
		})
	}
}
