// Package rivals is what the tests of stores on real servers share: the calls of one client, and replicas that compete for
// the lease of group g while servers break.
package rivals

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Patience is how long a test waits for what comes by itself.
const Patience = 60 * time.Second

// Must ends the test with err, if there is one.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Until waits for what comes by itself.
func Until(t testing.TB, what string, come func() bool) {
	t.Helper()
	for end := time.Now().Add(Patience); !come(); {
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

// Short bounds one call.
func Short(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), Patience)
	t.Cleanup(cancel)
	return ctx
}

// Candidate asks for a lease and a session that do not end while a test runs.
func Candidate(id, nonce string) store.Candidate {
	return store.Candidate{Replica: store.Replica{ID: id}, Nonce: nonce, TTL: time.Hour, Session: time.Hour, Start: true}
}

// Lead takes the lease of group g.
func Lead(t testing.TB, s store.Store, id, nonce string) store.Lease {
	t.Helper()
	l, err := s.Acquire(Short(t), "g", Candidate(id, nonce))
	Must(t, err)
	return l
}

// Leads tells who leads group g.
func Leads(t testing.TB, s store.Store) string {
	l, err := s.Leader(Short(t), "g")
	if err != nil {
		if !errors.Is(err, store.ErrNoLeader) {
			t.Log(err)
		}
		return ""
	}
	return l.Replica
}
