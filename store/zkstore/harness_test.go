package zkstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/zktest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/zkstore"
)

// patience is how long a test waits for what comes by itself.
const patience = 60 * time.Second

// timeout is a ZooKeeper session that ends while a test waits, but not while a busy machine does.
const timeout = 3 * time.Second

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits for what comes by itself.
func until(t testing.TB, what string, come func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !come(); {
		if time.Now().After(end) {
			t.Fatalf("waited in vain for %s", what)
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("the test ended")
		}
	}
}

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

func candidate(id, nonce string) store.Candidate {
	return store.Candidate{Replica: store.Replica{ID: id}, Nonce: nonce, TTL: time.Hour, Session: time.Hour, Start: true}
}

// short bounds one call.
func short(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func lead(t testing.TB, s store.Store, id, nonce string) store.Lease {
	t.Helper()
	l, err := s.Acquire(short(t), "g", candidate(id, nonce))
	must(t, err)
	return l
}

// leads tells who leads group g.
func leads(t testing.TB, s store.Store) string {
	l, err := s.Leader(short(t), "g")
	if err != nil {
		if !errors.Is(err, store.ErrNoLeader) {
			t.Log(err)
		}
		return ""
	}
	return l.Replica
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
