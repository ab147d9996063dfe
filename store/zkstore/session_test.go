package zkstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/internal/testlog"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/zkstore"
)

// TestASilentlyOpenedSessionKeepsNothing cuts a store off until the servers have ended its session. The client opens
// another one without a word.
func TestASilentlyOpenedSessionKeepsNothing(t *testing.T) {
	proxy := netproxy.Start(t, server.Addr())
	c := zkstore.Config{Chroot: chrootOf(t), SessionTimeout: timeout}
	s, other := through(t, proxy.Addr(), c), open(t, c)
	l := lead(t, s, "a", "n1")
	must(t, s.Commit(short(t), l, 1, nil))
	proxy.Requests.Drop()
	proxy.Replies.Drop()
	until(t, "the end of the session", func() bool { return leads(t, other) == "" })
	next := lead(t, other, "b", "n2")
	if next.Token <= l.Token {
		t.Errorf("token %d after %d", next.Token, l.Token)
	}
	proxy.Requests.Pass()
	proxy.Replies.Pass()
	if _, err := tried(t, func(ctx context.Context) (store.Grant, error) { return s.Renew(ctx, l) }); !errors.Is(err, store.ErrLost) {
		t.Errorf("renewing: %v", err)
	}
	_, err := tried(t, func(ctx context.Context) (time.Duration, error) {
		return s.Join(ctx, "g", store.Replica{ID: "a"}, time.Second, false)
	})
	if !errors.Is(err, store.ErrEnded) {
		t.Errorf("refreshing: %v", err)
	}
	if err := s.Commit(short(t), l, 1, nil); err != nil {
		t.Errorf("the commit that was applied last: %v", err)
	}
	if err := s.Commit(short(t), l, 2, nil); !errors.Is(err, store.ErrLost) {
		t.Errorf("the next commit: %v", err)
	}
	if leads(t, s) != "b" {
		t.Error("the other does not lead")
	}
	must(t, other.Release(short(t), next))
	lead(t, s, "a", "n3")
}

// TestALeaseMovesWithItsSession loses the connection again and again, within the session.
func TestALeaseMovesWithItsSession(t *testing.T) {
	proxy := netproxy.Start(t, server.Addr())
	s := through(t, proxy.Addr(), zkstore.Config{Chroot: chrootOf(t), SessionTimeout: time.Hour})
	l := lead(t, s, "a", "n1")
	for range 5 {
		proxy.Cut()
		g, err := tried(t, func(ctx context.Context) (store.Grant, error) { return s.Renew(ctx, l) })
		if err != nil || g.TTL != 40*time.Minute {
			t.Fatalf("granted %v, %v", g.TTL, err)
		}
	}
}

func TestAGrantIsTwoThirdsOfTheSessionAtMost(t *testing.T) {
	s := open(t, zkstore.Config{Chroot: chrootOf(t), SessionTimeout: 30 * time.Second})
	if l := lead(t, s, "a", "n1"); l.TTL != 20*time.Second {
		t.Errorf("granted %v", l.TTL)
	}
	c := candidate("a", "n1")
	c.TTL = 5 * time.Second
	if l, err := s.Acquire(short(t), "g", c); err != nil || l.TTL != c.TTL {
		t.Errorf("granted %v, %v", l.TTL, err)
	}
	log := &testlog.Log{}
	longer := open(t, zkstore.Config{Chroot: chrootOf(t), SessionTimeout: 36*time.Hour - time.Second, Logger: log.Logger(slog.LevelInfo)})
	granted, err := longer.Join(short(t), "g", store.Replica{ID: "b"}, 24*time.Hour, true)
	if must(t, err); granted < 23*time.Hour || granted > 24*time.Hour {
		t.Errorf("granted %v", granted)
	}
}

// TestCloseLetsLapseWhatWasNotGivenUp: work that ignores its end may go on after Close.
func TestCloseLetsLapseWhatWasNotGivenUp(t *testing.T) {
	c := zkstore.Config{Chroot: chrootOf(t), SessionTimeout: timeout}
	watching := open(t, c)
	gone := make(chan bool, 100)
	s := open(t, c)
	l := lead(t, s, "a", "n1")
	must(t, s.Close())
	if leads(t, watching) != "a" {
		t.Fatal("the lease ended with Close")
	}
	must(t, watching.Watch(t.Context(), "g", store.LeaseFree, func() { gone <- true }))
	<-gone // the watch stands
	<-gone
	if leads(t, watching) != "" {
		t.Error("the lease goes on after the session")
	}
	if _, err := s.Renew(t.Context(), l); !errors.Is(err, store.ErrPermanent) {
		t.Errorf("renewing after Close: %v", err)
	}
}

// TestCloseWaitsForCallsThatBeginMeanwhile is for the race detector: each call starts a goroutine, which Close waits for.
func TestCloseWaitsForCallsThatBeginMeanwhile(t *testing.T) {
	for range 10 {
		s := open(t, zkstore.Config{Chroot: chrootOf(t), SessionTimeout: timeout})
		var callers sync.WaitGroup
		begun := make(chan bool, 100)
		for i := range cap(begun) {
			callers.Go(func() {
				for first := true; ; first = false {
					_, err := s.Join(t.Context(), fmt.Sprint("g", i), store.Replica{ID: "a"}, time.Minute, true)
					if first {
						begun <- true
					}
					if errors.Is(err, store.ErrPermanent) {
						return
					}
				}
			})
		}
		<-begun
		must(t, s.Close())
		callers.Wait()
	}
}

func TestCloseEndsASessionThatNothingLivesOn(t *testing.T) {
	c := zkstore.Config{Chroot: chrootOf(t), SessionTimeout: time.Hour}
	sessions := func() int {
		n := 0
		for _, line := range []byte(server.Ask("dump")) {
			if line == '\n' {
				n++
			}
		}
		return n
	}
	before := sessions()
	s := open(t, c)
	must(t, s.Release(short(t), lead(t, s, "a", "n1")))
	must(t, s.Leave(short(t), "g", "a"))
	if sessions() <= before {
		t.Error("the dump shows no session")
	}
	must(t, s.Close())
	until(t, "the end of the session", func() bool { return sessions() <= before })
}

// TestAZnodeOfAnotherSessionIsTakenOver: a replica whose session lives on a ZooKeeper session that this store does not
// keep alive would be gone while it thinks that it lives.
func TestAZnodeOfAnotherSessionIsTakenOver(t *testing.T) {
	conn := admin(t, server.Addr())
	s := open(t, zkstore.Config{Chroot: chrootOf(t), SessionTimeout: time.Hour})
	lead(t, s, "a", "n1")
	path := chrootOf(t) + "/singleton/g/sessions/b"
	_, err := conn.Create(path, []byte("about b"), zk.FlagEphemeral, zk.WorldACL(zk.PermAll))
	must(t, err)
	_, err = s.Join(short(t), "g", store.Replica{ID: "b"}, time.Minute, false)
	must(t, err)
	data, stat, err := conn.Get(path)
	must(t, err)
	if stat.EphemeralOwner == conn.SessionID() || string(data) != "about b" {
		t.Errorf("%q belongs to %x", data, stat.EphemeralOwner)
	}
}
