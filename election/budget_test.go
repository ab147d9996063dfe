package election_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

func TestIdleFollowersAskOnceInALease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		var followers []*replica
		for range 200 {
			followers = append(followers, run(t, s, election.Config{}, untilEnd))
			time.Sleep(lease / 200) // they start at different phases of the leader's renewals
		}
		before := make([]int, len(followers))
		for i, f := range followers {
			before[i] = f.wire.total()
		}
		pass(10 * lease)
		most := 0
		for i, f := range followers {
			most = max(most, f.wire.total()-before[i])
		}
		if most > 11 { // they find the lease renewed whenever they look
			t.Errorf("a follower sent %d requests in ten leases", most)
		}
	})
}

// total returns how many calls were made.
func (w *wire) total() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.counts {
		n += c
	}
	return n
}

func TestLeaderAsksThreeTimesInALease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := run(t, memstore.New(), election.Config{}, untilEnd)
		synctest.Wait()
		pass(10*lease + time.Second)
		if n := r.wire.total(); n != 32 { // a subscription, an acquire, 30 renewals
			t.Errorf("%d requests in ten leases", n)
		}
	})
}

func TestFollowersDoNotFloodAStoreThatRefuses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newReplica(t, memstore.New(), election.Config{})
		r.wire.follow(func(string) fault { return fault{lost: true, reset: true} })
		r.start(untilEnd)
		pass(10 * time.Minute)
		if n := r.wire.total(); n > 900 {
			t.Errorf("%d requests in ten minutes", n)
		}
	})
}

func BenchmarkIdleFollower(b *testing.B) {
	const n = 2000
	s := memstore.New()
	if _, err := s.Acquire(b.Context(), "g", candidate("x")); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	memory := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before, goroutines := memory(), runtime.NumGoroutine()
	done := make(chan error)
	told := make(chan struct{}, n)
	for i := range n {
		e, err := election.New(s, election.Config{Group: "g", ID: fmt.Sprint("r", i), Callbacks: election.Callbacks{
			LeaderChanged: func(store.Leader) { told <- struct{}{} },
		}})
		if err != nil {
			b.Fatal(err)
		}
		go func() { done <- e.Run(ctx, untilEnd) }()
	}
	for range n {
		<-told
	}
	count, bytes := runtime.NumGoroutine()-goroutines, memory()-before
	for b.Loop() { // what is measured is there already
	}
	b.ReportMetric(float64(count)/n, "goroutines/follower")
	b.ReportMetric(float64(bytes)/n, "bytes/follower")
	stop()
	for range n {
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}

func candidate(id string) store.Candidate {
	return store.Candidate{Replica: store.Replica{ID: id}, Nonce: "n", TTL: time.Hour, Session: time.Hour, Start: true}
}
