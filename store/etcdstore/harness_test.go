package etcdstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

// patience is how long a test waits for what comes by itself.
const patience = 60 * time.Second

// brief is a lease that ends while a test waits, but not while a busy machine does.
const brief = 3 * time.Second

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
		return err == nil || store.Definite(err)
	})
	return value, err
}

// through returns a store whose way to addr can be broken.
func through(t testing.TB, addr string, c etcdstore.Config) *etcdstore.Store {
	c.Endpoints = []string{addr}
	return open(t, c)
}

// lockedLog is a log that several goroutines write.
type lockedLog struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lockedLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lockedLog) logger() *slog.Logger { return slog.New(slog.NewTextHandler(l, nil)) }

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
