package zkstore_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/zkstore"
)

func BenchmarkRenew(b *testing.B) {
	s := open(b, zkstore.Config{Servers: ensemble(b).Addrs(), Chroot: chrootOf(b), SessionTimeout: time.Hour})
	l := lead(b, s, "a", fmt.Sprint("n", b.N))
	for b.Loop() {
		if _, err := s.Renew(b.Context(), l); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCommitOfOneTick(b *testing.B) {
	s := open(b, zkstore.Config{Servers: ensemble(b).Addrs(), Chroot: chrootOf(b), SessionTimeout: time.Hour})
	l := lead(b, s, "a", fmt.Sprint("n", b.N))
	value := []byte(strings.Repeat("v", 200))
	number := uint64(0)
	for b.Loop() {
		number++
		changes := []store.Change{{Bucket: "job", Key: "j", Value: value}, {Bucket: "run", Key: "r", Value: value, Delete: number%2 == 0}}
		if err := s.Commit(b.Context(), l, number, changes); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRelease is from the release by one replica to the grant to another that watches.
func BenchmarkRelease(b *testing.B) {
	c := zkstore.Config{Servers: ensemble(b).Addrs(), Chroot: chrootOf(b), SessionTimeout: time.Hour}
	one, other := open(b, c), open(b, c)
	hints := make(chan bool, 10_000)
	if err := other.Watch(b.Context(), "g", store.LeaseFree, func() { hints <- true }); err != nil {
		b.Fatal(err)
	}
	<-hints
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		l := lead(b, one, "a", fmt.Sprint("a", n))
		b.StartTimer()
		must(b, one.Release(b.Context(), l))
		for {
			<-hints
			if l, err := other.Acquire(b.Context(), "g", candidate("b", fmt.Sprint("b", n))); err == nil {
				b.StopTimer()
				must(b, other.Release(b.Context(), l))
				b.StartTimer()
				break
			}
		}
	}
}

// BenchmarkCrash is from the moment that a leader is gone to the grant to another that watches, with sessions of 3 s.
func BenchmarkCrash(b *testing.B) {
	c := zkstore.Config{Chroot: chrootOf(b), SessionTimeout: timeout}
	other := open(b, c)
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		proxy := netproxy.Start(b, server.Addr())
		s := through(b, proxy.Addr(), c)
		lead(b, s, "a", fmt.Sprint("a", n))
		hints := make(chan bool, 10_000)
		must(b, other.Watch(b.Context(), "g", store.LeaseFree, func() { hints <- true }))
		b.StartTimer()
		proxy.Requests.Drop()
		proxy.Replies.Drop()
		for {
			<-hints
			if l, err := other.Acquire(b.Context(), "g", candidate("b", fmt.Sprint("b", n))); err == nil {
				b.StopTimer()
				must(b, other.Release(b.Context(), l))
				b.StartTimer()
				break
			}
		}
	}
}

// BenchmarkIdleReplica counts what the servers receive from one replica that follows and one that leads, pings included,
// in ten seconds with sessions of 15 s.
func BenchmarkIdleReplica(b *testing.B) {
	c := zkstore.Config{Chroot: chrootOf(b)}
	received := func() (n int) {
		for line := range strings.Lines(server.Ask("srvr")) {
			if text, found := strings.CutPrefix(strings.TrimSpace(line), "Received: "); found {
				n, _ = strconv.Atoi(text)
			}
		}
		return n
	}
	for b.Loop() {
		leader, follower := open(b, c), open(b, c)
		for _, s := range []*zkstore.Store{leader, follower} {
			must(b, s.Watch(b.Context(), "g", store.LeaseFree, func() {}))
		}
		l := lead(b, leader, "a", "n1")
		_, _ = follower.Acquire(b.Context(), "g", candidate("b", "n2"))
		before, begin := received(), time.Now()
		next := begin
		for time.Since(begin) < 10*time.Second {
			if time.Now().After(next) {
				next = next.Add(l.TTL / 3)
				if _, err := leader.Renew(b.Context(), l); err != nil {
					b.Fatal(err)
				}
			}
			<-time.After(50 * time.Millisecond)
		}
		b.ReportMetric(float64(received()-before-1)/time.Since(begin).Seconds(), "requests/s")
		must(b, leader.Release(b.Context(), l))
		b.ReportMetric(0, "ns/op")
	}
}
