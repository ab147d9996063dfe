package etcdstore_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.etcd.io/etcd/client/v3"

	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/internal/testlog"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
)

// TestARenewalProvesTheKey: that an etcd lease lives on says nothing about who leads.
func TestARenewalProvesTheKey(t *testing.T) {
	t.Parallel()
	client := admin(t, server.Addr())
	key := prefixOf(t) + "/singleton/g/lease"
	s := open(t, etcdstore.Config{Prefix: prefixOf(t)})
	for name, take := range map[string]func(){
		"deleted": func() {
			_, err := client.Delete(t.Context(), key)
			must(t, err)
		},
		"another's, on the same etcd lease": func() {
			found, err := client.Get(t.Context(), key)
			must(t, err)
			_, err = client.Put(t.Context(), key, "1 5 b n2", clientv3.WithLease(clientv3.LeaseID(found.Kvs[0].Lease)))
			must(t, err)
		},
	} {
		l := lead(t, s, "a", strings.ReplaceAll(name, " ", "-"))
		take()
		if _, err := s.Renew(short(t), l); !errors.Is(err, store.ErrLost) {
			t.Errorf("%s: renewing: %v", name, err)
		}
		if err := s.Commit(short(t), l, 1, nil); !errors.Is(err, store.ErrLost) {
			t.Errorf("%s: committing: %v", name, err)
		}
		if _, err := client.Delete(t.Context(), key); err != nil {
			t.Error(err)
		}
	}
}

// TestWhatHasLapsedIsNotRevived cuts a store off until the servers have ended its session and lease.
func TestWhatHasLapsedIsNotRevived(t *testing.T) {
	t.Parallel()
	proxy := netproxy.Start(t, server.Addr())
	c := etcdstore.Config{Prefix: prefixOf(t)}
	s, other := through(t, proxy.Addr(), c), open(t, c)
	brief := candidate("a", "n1")
	brief.TTL = 2 * time.Second
	l, err := s.Acquire(short(t), "g", brief)
	must(t, err)
	must(t, s.Commit(short(t), l, 1, nil))
	proxy.Requests.Drop()
	proxy.Replies.Drop()
	until(t, "the end of the lease", func() bool { return leads(t, other) == "" })
	next := lead(t, other, "b", "n2")
	if next.Token <= l.Token {
		t.Errorf("token %d after %d", next.Token, l.Token)
	}
	proxy.Requests.Pass()
	proxy.Replies.Pass()
	if _, err := tried(t, func(ctx context.Context) (store.Grant, error) { return s.Renew(ctx, l) }); !errors.Is(err, store.ErrLost) {
		t.Errorf("renewing: %v", err)
	}
	_, err = tried(t, func(ctx context.Context) (time.Duration, error) {
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
}

func TestGrantsAreWholeSecondsAndTwoAtLeast(t *testing.T) {
	t.Parallel()
	log := &testlog.Log{}
	s := open(t, etcdstore.Config{Prefix: prefixOf(t), Logger: log.Logger(slog.LevelInfo)})
	for i, c := range []struct{ asked, granted time.Duration }{
		{time.Millisecond, 2 * time.Second}, {2 * time.Second, 2 * time.Second}, {2001 * time.Millisecond, 3 * time.Second},
		{15 * time.Second, 15 * time.Second}, {store.MaxDuration, store.MaxDuration},
	} {
		candidate := candidate("a", string(rune('a'+i)))
		candidate.TTL = c.asked
		l, err := s.Acquire(short(t), "g", candidate)
		must(t, err)
		again, err := s.Renew(short(t), l)
		if must(t, err); l.TTL != c.granted || again.TTL != c.granted {
			t.Errorf("asked for %v: granted %v and %v", c.asked, l.TTL, again.TTL)
		}
		must(t, s.Release(short(t), l))
		if granted, err := s.Join(short(t), "g", store.Replica{ID: string(rune('a' + i))}, c.asked, true); err != nil || granted != c.granted {
			t.Errorf("joined for %v: granted %v, %v", c.asked, granted, err)
		}
	}
	if n := strings.Count(log.String(), "longer leases"); n != 1 {
		t.Errorf("it was logged %d times that leases are longer:\n%s", n, log)
	}
}

// TestEachRefreshHangsOnANewEtcdLease: nothing relies on an etcd lease for longer than it was given at first. A shorter refresh leaves a session
// as long as it was.
func TestEachRefreshHangsOnANewEtcdLease(t *testing.T) {
	t.Parallel()
	client := admin(t, server.Addr())
	under := func(key string) clientv3.LeaseID {
		found, err := client.Get(t.Context(), prefixOf(t)+"/singleton/g/"+key)
		must(t, err)
		return clientv3.LeaseID(found.Kvs[0].Lease)
	}
	s := open(t, etcdstore.Config{Prefix: prefixOf(t)})
	r := store.Replica{ID: "a"}
	var before clientv3.LeaseID
	join := func(ttl time.Duration, longest time.Duration) {
		granted, err := s.Join(short(t), "g", r, ttl, true)
		must(t, err)
		left, err := client.TimeToLive(t.Context(), under("sessions/a"))
		must(t, err)
		if under("sessions/a") == before {
			t.Errorf("a session refreshed for %v hangs on the etcd lease that it hung on", ttl)
		}
		if granted < ttl || left.GrantedTTL > int64(longest/time.Second) || left.GrantedTTL < int64(longest/time.Second)-10 {
			t.Errorf("a session refreshed for %v goes on for %v, on an etcd lease of %d s; want about %v", ttl, granted, left.GrantedTTL, longest)
		}
		before = under("sessions/a")
	}
	join(time.Hour, time.Hour)
	join(time.Hour, time.Hour)
	join(time.Minute, time.Hour)
	join(2*time.Hour, 2*time.Hour)
	l := lead(t, s, "a", "n1")
	for range 2 {
		before = under("lease")
		_, err := s.Renew(short(t), l)
		must(t, err)
		if under("sessions/a") != under("lease") {
			t.Error("lease and session of the leader do not end together")
		}
		if under("lease") == before {
			t.Error("a lease that was renewed hangs on the etcd lease that it hung on")
		}
		join(24*time.Hour, 24*time.Hour)
	}
}

// TestAHungEndpointIsLeftForTheNext: the connection stands, and nothing is answered.
func TestAHungEndpointIsLeftForTheNext(t *testing.T) {
	t.Parallel()
	var all []*netproxy.Proxy
	c := etcdstore.Config{Prefix: prefixOf(t)}
	for range 3 {
		p := netproxy.Start(t, server.Addr())
		all = append(all, p)
		c.Endpoints = append(c.Endpoints, p.Addr())
	}
	s := open(t, c)
	l := lead(t, s, "a", "n1")
	used := func() (one *netproxy.Proxy) { // the way that the store takes
		until(t, "one connection", func() bool {
			n := 0
			for _, p := range all {
				if p.Open() > 0 {
					n, one = n+1, p
				}
			}
			return n == 1
		})
		return one
	}
	for range 3 {
		p := used()
		p.Replies.Drop()
		attempt, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		_, err := s.Renew(attempt, l)
		cancel()
		if err == nil || store.Definite(err) {
			t.Errorf("renewing where nothing is answered: %v", err)
		}
		if _, err := s.Renew(short(t), l); err != nil {
			t.Errorf("renewing after that: %v", err)
		}
		p.Replies.Pass()
	}
	// One call that may take longer goes on to the next endpoint by itself.
	used().Requests.Drop()
	if _, err := s.Renew(short(t), l); err != nil {
		t.Errorf("renewing in one call: %v", err)
	}
}

// TestCloseLetsLapseWhatWasNotGivenUp: work that ignores its end may go on after Close.
func TestCloseLetsLapseWhatWasNotGivenUp(t *testing.T) {
	t.Parallel()
	c := etcdstore.Config{Prefix: prefixOf(t)}
	watching := open(t, c)
	hints := watched(t, watching, "g")
	<-hints
	s := open(t, c)
	brief := candidate("a", "n1")
	brief.TTL = 2 * time.Second
	l, err := s.Acquire(short(t), "g", brief)
	must(t, err)
	must(t, s.Close())
	if leads(t, watching) != "a" {
		t.Fatal("the lease ended with Close")
	}
	<-hints
	if leads(t, watching) != "" {
		t.Error("the lease goes on after its end")
	}
	if _, err := s.Renew(t.Context(), l); !errors.Is(err, store.ErrPermanent) {
		t.Errorf("renewing after Close: %v", err)
	}
}
