package etcdstore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
)

func BenchmarkRenew(b *testing.B) {
	s := open(b, etcdstore.Config{Endpoints: cluster(b).Addrs(), Prefix: prefixOf(b)})
	l := lead(b, s, "a", fmt.Sprint("n", b.N))
	for b.Loop() {
		if _, err := s.Renew(b.Context(), l); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkCommitOfOneTick(b *testing.B) {
	s := open(b, etcdstore.Config{Endpoints: cluster(b).Addrs(), Prefix: prefixOf(b)})
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
	c := etcdstore.Config{Endpoints: cluster(b).Addrs(), Prefix: prefixOf(b)}
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

// BenchmarkCrash is from the moment that a leader is gone to the grant to another that watches, with leases of 3 s.
func BenchmarkCrash(b *testing.B) {
	c := etcdstore.Config{Endpoints: cluster(b).Addrs(), Prefix: prefixOf(b)}
	other := open(b, c)
	hints := make(chan bool, 10_000)
	must(b, other.Watch(b.Context(), "g", store.LeaseFree, func() { hints <- true }))
	<-hints
	for n := 0; b.Loop(); n++ {
		b.StopTimer()
		crashing := candidate("a", fmt.Sprint("a", n))
		crashing.TTL = brief
		s := etcdstore.New(c)
		_, err := s.Acquire(b.Context(), "g", crashing)
		must(b, err)
		must(b, s.Close())
		b.StartTimer()
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

// BenchmarkIdleReplicas counts what the servers receive from one replica that leads with a lease of 15 s and one that
// follows, in half a minute.
func BenchmarkIdleReplicas(b *testing.B) {
	c := etcdstore.Config{Endpoints: []string{server.Addr()}, Prefix: prefixOf(b)}
	received := func() float64 {
		return server.Metric("grpc_server_msg_received_total", `grpc_service="etcdserverpb`)
	}
	for n := 0; b.Loop(); n++ {
		leader, follower := open(b, c), open(b, c)
		for _, s := range []*etcdstore.Store{leader, follower} {
			must(b, s.Watch(b.Context(), "g", store.LeaseFree, func() {}))
		}
		leading := candidate("a", fmt.Sprint("n", n))
		leading.TTL = 15 * time.Second
		l, err := leader.Acquire(b.Context(), "g", leading)
		must(b, err)
		_, _ = follower.Acquire(b.Context(), "g", candidate("b", fmt.Sprint("m", n)))
		before, begin := received(), time.Now()
		for next := begin; time.Since(begin) < 30*time.Second; {
			if time.Now().After(next) {
				next = next.Add(l.TTL / 3)
				if _, err := leader.Renew(b.Context(), l); err != nil {
					b.Fatal(err)
				}
			}
			<-time.After(50 * time.Millisecond)
		}
		b.ReportMetric((received()-before)/time.Since(begin).Seconds(), "requests/s")
		must(b, leader.Release(b.Context(), l))
		b.ReportMetric(0, "ns/op")
	}
}
