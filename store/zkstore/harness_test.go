package zkstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/rivals"
	"github.com/go-singleton/singleton/internal/zktest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/zkstore"
)

var (
	must      = rivals.Must
	until     = rivals.Until
	short     = rivals.Short
	candidate = rivals.Candidate
	lead      = rivals.Lead
	leads     = rivals.Leads
)

// timeout is a ZooKeeper session that ends while a test waits, but not while a busy machine does.
const timeout = 3 * time.Second

// chroots are the places of the tests that have asked for one.
var chroots = struct {
	sync.Mutex
	of map[testing.TB]string
}{of: map[testing.TB]string{}}

// chrootOf is a place of its own for a test on a shared server, also when the test is run again.
func chrootOf(t testing.TB) string {
	chroots.Lock()
	defer chroots.Unlock()
	if chroots.of[t] == "" {
		chroots.of[t] = fmt.Sprintf("/test-%d", len(chroots.of))
	}
	return chroots.of[t]
}

// tried calls until it is answered, with a little time for each attempt.
func tried[T any](t testing.TB, do func(ctx context.Context) (T, error)) (value T, err error) {
	t.Helper()
	until(t, "an answer", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		value, err = do(ctx)
		return err == nil || errors.Is(err, store.ErrLost) || errors.Is(err, store.ErrEnded) || errors.Is(err, store.ErrPermanent)
	})
	return value, err
}

// through returns a store whose way to addr can be broken.
func through(t testing.TB, addr string, c zkstore.Config) *zkstore.Store {
	c.Servers = []string{addr}
	return open(t, c)
}

// members starts the ensemble that the tests share, which leave it whole.
var members = sync.OnceValues(func() (*zktest.Ensemble, error) { return zktest.NewEnsemble(3) })

func ensemble(t testing.TB) *zktest.Ensemble {
	t.Helper()
	e, err := members()
	must(t, err)
	started = e
	return e
}

var started *zktest.Ensemble // nil until a test has asked for it
