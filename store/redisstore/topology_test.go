package redisstore_test

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/go-singleton/singleton/store/storetest"
)

// The topologies are started once, for all tests that leave them whole.
var (
	sentinels = shared[*redistest.Sentinels]{start: redistest.NewSentinels}
	cluster   = shared[*redistest.Cluster]{start: redistest.NewCluster}
)

type shared[T io.Closer] struct {
	start func(redistest.Config) (T, error)
	once  sync.Once
	it    T
	err   error
}

func (s *shared[T]) get(t testing.TB) T {
	t.Helper()
	s.once.Do(func() { s.it, s.err = s.start(redistest.Config{}) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.it
}

func (s *shared[T]) close() error {
	started := true
	s.once.Do(func() { started = false })
	if !started || s.err != nil {
		return s.err
	}
	return s.it.Close()
}

// topologies are tests that end the topologies after them.
type topologies struct{ *testing.M }

func (m topologies) Run() int {
	flag.Parse()
	said := false
	flag.Visit(func(f *flag.Flag) { said = said || f.Name == "test.parallel" })
	if !said { // most of them only wait for a failover
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err) // the flag is there in each test
		}
	}
	logging.Disable() // of go-redis, which tells of each dial that failed
	code := m.M.Run()
	for _, err := range []error{sentinels.close(), cluster.close()} {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	return code
}

// openFailover returns a store on the primary that Sentinels name.
func openFailover(t testing.TB, s *redistest.Sentinels, opts *redisstore.Options) *redisstore.Store {
	return ends(t, redisstore.NewFailover(s.Options(), opts))
}

// openCluster returns a store on a cluster.
func openCluster(t testing.TB, c *redistest.Cluster, opts *redisstore.Options) *redisstore.Store {
	client := redis.NewClusterClient(c.Options())
	t.Cleanup(func() { _ = client.Close() })
	return open(t, client, opts)
}

func TestContractOverSentinels(t *testing.T) {
	s := sentinels.get(t)
	grant(t, rules(t, "test*"), s.Servers...)
	grant(t, []string{"+sentinel|get-master-addr-by-name"}, s.Sentinels...)
	from := s.Options()
	from.Username, from.Password, from.SentinelUsername, from.SentinelPassword = "few", "pw", "few", "pw"
	h, _ := harness(func(t *testing.T, opts *redisstore.Options) *redisstore.Store {
		return ends(t, redisstore.NewFailover(from, opts))
	}, s.Servers[0].Client())
	storetest.Run(t, h)
}

func TestContractOnACluster(t *testing.T) {
	c := cluster.get(t)
	grant(t, rules(t, "test*", "+cluster|slots"), c.Nodes...)
	as := c.Options()
	as.Username, as.Password = "few", "pw"
	client := redis.NewClusterClient(as)
	defer client.Close()
	h, _ := harness(on(client), c.Nodes[0].Client(), c.Nodes[1].Client(), c.Nodes[2].Client())
	storetest.Run(t, h)
}

func TestGroupsOfAClusterLieOnAllNodesAndReplicasAreNotRead(t *testing.T) {
	c := cluster.get(t)
	options := c.Options()
	options.RouteRandomly, options.ReadTimeout = true, -1 // of the application; nothing of it is the store's
	client := redis.NewClusterClient(options)
	defer client.Close()
	s := open(t, client, &redisstore.Options{Prefix: "spread"})
	nonce := fmt.Sprint(time.Now().UnixNano())
	for i := range 20 {
		group := fmt.Sprint("g", i)
		l, err := s.Acquire(t.Context(), group, candidate("a", nonce))
		must(t, err)
		must(t, s.Commit(t.Context(), l, 1, nil))
	}
	for _, n := range c.Nodes[3:] {
		if text := n.Client().Info(t.Context(), "commandstats").Val(); strings.Contains(text, "cmdstat_readonly") {
			t.Errorf("%s was asked as a replica", n.Addr())
		}
	}
	for _, n := range c.Nodes[:3] {
		keys, err := n.Client().Keys(t.Context(), "spread:*:lease").Result()
		must(t, err)
		if len(keys) == 0 {
			t.Errorf("no lease is on %s", n.Addr())
		}
	}
	for i := range 20 { // a hint comes from whatever node publishes it
		group := fmt.Sprint("g", i)
		hints := watched(t, s, group)
		<-hints
		must(t, s.Release(t.Context(), store.Lease{Group: group, Replica: "a", Nonce: nonce}))
		<-hints
	}
}

func textLogger(to io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(to, nil)) }
