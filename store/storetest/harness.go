package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Harness is what the suite needs to know about a store.
type Harness struct {
	// Open returns an empty store that nobody else uses and that ends with the test.
	Open func(t *testing.T) store.Store
	// Wipe makes the store that Open returned last lose all its data, as a server does that restarts empty. Where it is
	// nil the rules about that are left out.
	Wipe func(t *testing.T)
	// Fill puts the messages into group g's inbox in a quicker way than Post; nil is Post.
	Fill func(t *testing.T, ids []string)

	// Apart is how long after each other the servers of the store may hear of one call; 0 where there is one. By so much more the
	// end of a session may differ from that of the lease that it was granted with.
	Apart time.Duration
}

// Run checks all rules of the contract on the stores of h.
func Run(t *testing.T, h Harness) {
	for _, part := range []struct {
		name  string
		rules []rule
	}{
		{"leases", leaseRules},
		{"tokens", tokenRules},
		{"sessions", sessionRules},
		{"commits", commitRules},
		{"reads", readRules},
		{"inbox", inboxRules},
		{"hints", hintRules},
		{"arguments", argumentRules},
		{"calls", callRules},
		{"faults", faultRules()},
	} {
		t.Run(part.name, func(t *testing.T) {
			for _, r := range part.rules {
				if r.wipes && h.Wipe == nil {
					continue
				}
				t.Run(r.name, func(t *testing.T) {
					ctx, cancel := context.WithTimeout(t.Context(), patience)
					defer cancel()
					r.check(&env{T: t, ctx: ctx, s: h.Open(t), harness: h})
				})
			}
		})
	}
}

// rule is one sentence of the contract.
type rule struct {
	name  string
	check func(e *env)
	wipes bool // needs Harness.Wipe
}

const (
	long  = time.Minute           // does not end while a rule is checked
	short = 60 * time.Millisecond // ends while a rule is checked

	patience = 15 * time.Second // of a rule with a store that leaves it waiting
)

// env is a rule under check: a store, and calls that fail the test where the rule takes their success for granted.
type env struct {
	*testing.T
	ctx     context.Context
	s       store.Store
	harness Harness
}

func candidate(id, nonce string) store.Candidate {
	return store.Candidate{Replica: store.Replica{ID: id}, Nonce: nonce, TTL: long, Session: 2 * long, Start: true}
}

// lead makes replica id the leader of group g.
func (e *env) lead(id, nonce string) store.Lease {
	e.Helper()
	return e.acquire("g", candidate(id, nonce))
}

func (e *env) acquire(group string, c store.Candidate) store.Lease {
	e.Helper()
	l, err := e.s.Acquire(e.ctx, group, c)
	if err != nil {
		e.Fatalf("acquire by %s: %v", c.ID, err)
	}
	return l
}

// held returns whom an acquire names that must be refused because the lease is held.
func (e *env) held(group string, c store.Candidate) store.Leader {
	e.Helper()
	l, err := e.s.Acquire(e.ctx, group, c)
	held, ok := errors.AsType[*store.HeldError](err)
	if !ok {
		e.Fatalf("acquire by %s: %v, %v; want a HeldError", c.ID, l, err)
	}
	return held.Leader
}

// eventually acquires as a follower does: when the time is over that the store says the lease has left.
func (e *env) eventually(c store.Candidate) store.Lease {
	e.Helper()
	for {
		l, err := e.s.Acquire(e.ctx, "g", c)
		if err == nil {
			return l
		}
		held, ok := errors.AsType[*store.HeldError](err)
		if !ok {
			e.Fatalf("acquire by %s: %v", c.ID, err)
		}
		e.wait(held.Leader.Remaining + time.Millisecond)
	}
}

func (e *env) release(l store.Lease) {
	e.Helper()
	e.must(e.s.Release(e.ctx, l))
}

func (e *env) commit(l store.Lease, number uint64, changes ...store.Change) {
	e.Helper()
	e.must(e.s.Commit(e.ctx, l, number, changes))
}

func (e *env) post(id, message string) {
	e.Helper()
	e.must(e.s.Post(e.ctx, "g", id, []byte(message)))
}

func (e *env) join(id string, ttl time.Duration) time.Duration {
	e.Helper()
	granted, err := e.s.Join(e.ctx, "g", store.Replica{ID: id}, ttl, true)
	e.must(err)
	return granted
}

// sessionLeft returns how long a session that is alive goes on: a refresh by the least duration does not lengthen it.
func (e *env) sessionLeft(id string) time.Duration {
	e.Helper()
	left, err := e.s.Join(e.ctx, "g", store.Replica{ID: id}, time.Millisecond, false)
	e.must(err)
	return left
}

// ids lists who has a session.
func (e *env) ids() string {
	e.Helper()
	replicas, err := e.s.Replicas(e.ctx, "g")
	e.must(err)
	var text strings.Builder
	for _, r := range replicas {
		text.WriteString(r.ID + " ")
	}
	return text.String()
}

// records returns a bucket as text.
func (e *env) records(bucket string) string {
	e.Helper()
	var text bytes.Buffer
	for r, err := range e.s.Read(e.ctx, "g", nil, bucket) {
		e.must(err)
		fmt.Fprintf(&text, "%s=%s ", r.Key, r.Value)
	}
	return text.String()
}

// read returns how many records of a bucket a leader gets, and the error that the reading ends with.
func (e *env) read(l *store.Lease, bucket string) (n int, err error) {
	for _, err := range e.s.Read(e.ctx, "g", l, bucket) {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// state is all that can be seen of group g, less what passes with time.
func (e *env) state() string {
	e.Helper()
	leader, err := e.s.Leader(e.ctx, "g")
	if err != nil {
		e.want(err, store.ErrNoLeader)
	}
	token, number, err := e.s.Position(e.ctx, "g")
	e.must(err)
	return fmt.Sprintf("leader %s %d; sessions %s; position %d %d; job %s; inbox %s",
		leader.Replica, leader.Token, e.ids(), token, number, e.records("job"), e.records("inbox"))
}

// until waits for what comes by itself.
func (e *env) until(come func() bool) {
	e.Helper()
	for !come() {
		e.wait(time.Millisecond)
	}
}

func (e *env) wait(d time.Duration) {
	e.Helper()
	select {
	case <-time.After(d):
	case <-e.ctx.Done():
		e.Fatalf("waited for %v in vain", patience)
	}
}

func (e *env) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

func (e *env) want(got, want error) {
	e.Helper()
	if !errors.Is(got, want) {
		e.Fatalf("got error %v, want %v", got, want)
	}
}

func (e *env) equal(got, want any) {
	e.Helper()
	if got != want {
		e.Fatalf("got  %v\nwant %v", got, want)
	}
}

func put(bucket, key, value string) store.Change {
	return store.Change{Bucket: bucket, Key: key, Value: []byte(value)}
}

func remove(bucket, key string) store.Change {
	return store.Change{Bucket: bucket, Key: key, Delete: true}
}
