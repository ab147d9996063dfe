package memstore_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

func candidate(id, nonce string) store.Candidate {
	return store.Candidate{Replica: store.Replica{ID: id}, Nonce: nonce, TTL: 10 * time.Second, Session: 30 * time.Second, Start: true}
}

func TestLeaseEndsWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := memstore.New(), t.Context()
		first, err := s.Acquire(ctx, "g", candidate("a", "n1"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Second)
		_, err = s.Acquire(ctx, "g", candidate("b", "n2"))
		held, ok := errors.AsType[*store.HeldError](err)
		if !ok || held.Leader != (store.Leader{Replica: "a", Token: first.Token, Remaining: 6 * time.Second}) {
			t.Fatalf("while held: %v, %+v", err, held)
		}
		time.Sleep(held.Leader.Remaining)
		second, err := s.Acquire(ctx, "g", candidate("b", "n3"))
		if err != nil || second.Token <= first.Token {
			t.Fatalf("when over: %v, token %d after %d", err, second.Token, first.Token)
		}
		if _, err := s.Renew(ctx, first); !errors.Is(err, store.ErrLost) {
			t.Fatalf("renewing the lease that is over: %v", err)
		}
	})
}

func TestWipeForgetsAllAndHintsEachWatcher(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := memstore.New(), t.Context()
		var hints []string
		for _, name := range []string{"a", "b"} {
			if err := s.Watch(ctx, name, store.LeaseFree, func() { hints = append(hints, name) }); err != nil {
				t.Fatal(err)
			}
		}
		lease, err := s.Acquire(ctx, "a", candidate("r", "n1"))
		if err != nil {
			t.Fatal(err)
		}
		s.Wipe()
		if got := len(hints); got != 4 {
			t.Fatalf("hints %v, want each watcher's first and one for the restart", hints)
		}
		if _, err := s.Join(ctx, "a", store.Replica{ID: "r"}, time.Second, false); !errors.Is(err, store.ErrEnded) {
			t.Fatalf("session after a wipe: %v", err)
		}
		c := candidate("r", "n2")
		c.Floor = lease.Token
		next, err := s.Acquire(ctx, "a", c)
		if err != nil || next.Token <= lease.Token {
			t.Fatalf("token %d after %d, %v", next.Token, lease.Token, err)
		}
	})
}

func TestClockOfTheStoreJumps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := memstore.New(), t.Context()
		first, err := s.Acquire(ctx, "g", candidate("a", "n1"))
		if err != nil {
			t.Fatal(err)
		}
		s.SetClockOffset(time.Hour)
		second, err := s.Acquire(ctx, "g", candidate("b", "n2"))
		if err != nil || second.Token <= first.Token || second.Time.Sub(first.Time) != time.Hour {
			t.Fatalf("an hour forward: %+v, %v", second, err)
		}
		s.SetClockOffset(0)
		_, err = s.Acquire(ctx, "g", candidate("a", "n3"))
		held, ok := errors.AsType[*store.HeldError](err)
		if !ok || held.Leader.Remaining != time.Hour+10*time.Second {
			t.Fatalf("an hour back: %v", err)
		}
		if err := s.Release(ctx, second); err != nil {
			t.Fatal(err)
		}
		third, err := s.Acquire(ctx, "g", candidate("a", "n4"))
		if err != nil || third.Token <= second.Token {
			t.Fatalf("after the jump back: token %d after %d, %v", third.Token, second.Token, err)
		}
	})
}

func TestSnapshotLosesWhatCameAfterIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := memstore.New(), t.Context()
		lease, err := s.Acquire(ctx, "g", candidate("a", "n1"))
		if err != nil {
			t.Fatal(err)
		}
		put := func(number uint64, value string) error {
			return s.Commit(ctx, lease, number, []store.Change{{Bucket: "job", Key: "j", Value: []byte(value)}})
		}
		if err := put(1, "old"); err != nil {
			t.Fatal(err)
		}
		restore := s.Snapshot()
		if err := put(2, "new"); err != nil {
			t.Fatal(err)
		}
		restore()
		for r, err := range s.Read(ctx, "g", nil, "job") {
			if err != nil || string(r.Value) != "old" {
				t.Fatalf("%s, %v", r.Value, err)
			}
		}
		if err := put(3, "newer"); !errors.Is(err, store.ErrGap) {
			t.Fatalf("a commit after the loss: %v", err)
		}
	})
}
