package etcdstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/rivals"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

var (
	must      = rivals.Must
	until     = rivals.Until
	short     = rivals.Short
	candidate = rivals.Candidate
	lead      = rivals.Lead
	leads     = rivals.Leads
)

// brief is a lease that ends while a test waits, but not while a busy machine does.
const brief = 3 * time.Second

// prefixes are the places of the tests that have asked for one.
var prefixes = struct {
	sync.Mutex
	of map[testing.TB]string
}{of: map[testing.TB]string{}}

// prefixOf is a place of its own for a test on a shared server, also when the test is run again.
func prefixOf(t testing.TB) string {
	prefixes.Lock()
	defer prefixes.Unlock()
	if prefixes.of[t] == "" {
		prefixes.of[t] = fmt.Sprintf("/test-%d", len(prefixes.of))
	}
	return prefixes.of[t]
}

// tried calls until it is answered, with a little time for each attempt.
func tried[T any](t testing.TB, do func(ctx context.Context) (T, error)) (value T, err error) {
	t.Helper()
	until(t, "an answer", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		value, err = do(ctx)
		return err == nil || store.Definite(err)
	})
	return value, err
}

// through returns a store whose way to addr can be broken.
func through(t testing.TB, addr string, c etcdstore.Config) *etcdstore.Store {
	c.Endpoints = []string{addr}
	return open(t, c)
}

// members starts the cluster that the tests share, which leave it whole.
var members = sync.OnceValues(func() (*etcdtest.Cluster, error) { return etcdtest.NewCluster(3) })

func cluster(t testing.TB) *etcdtest.Cluster {
	t.Helper()
	c, err := members()
	must(t, err)
	started = c
	return c
}

var started *etcdtest.Cluster // nil until a test has asked for it
