package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
)

// counter is a store that counts the attempts that it has refused.
type counter struct {
	store.Store
	held *atomic.Int64
}

func (c counter) Acquire(ctx context.Context, group string, candidate store.Candidate) (store.Lease, error) {
	l, err := c.Store.Acquire(ctx, group, candidate)
	if _, held := errors.AsType[*store.HeldError](err); held {
		c.held.Add(1)
	}
	return l, err
}

// followers starts electors in several processes, and returns how many attempts are answered "held" and when terms begin.
func followers(t *testing.T, p *tapped, processes, each int, lease time.Duration) (held *atomic.Int64, leads chan time.Time) {
	t.Helper()
	held, leads = &atomic.Int64{}, make(chan time.Time, 1000)
	ctx, end := context.WithCancel(t.Context())
	var runs sync.WaitGroup
	for range processes {
		s, _ := p.another(t)
		for range each {
			e, err := election.New(counter{s, held}, election.Config{Group: "g", Lease: lease})
			must(t, err)
			runs.Go(func() {
				must(t, e.Run(ctx, func(ctx context.Context, _ *election.Term) error {
					leads <- time.Now()
					<-ctx.Done()
					return nil
				}))
			})
		}
	}
	t.Cleanup(func() { end(); runs.Wait() })
	return held, leads
}

func TestOfAHerdAFewAskForAFreeLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tap(t)
		p.way = time.Millisecond
		c := candidate("first", "n")
		l, err := p.Acquire(t.Context(), "g", c)
		must(t, err)
		held, leads := followers(t, p, 20, 15, time.Minute)
		time.Sleep(10 * time.Second)
		held.Store(0)
		freed := time.Now()
		must(t, p.Release(t.Context(), l))
		led := (<-leads).Sub(freed)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := held.Load(); n > 50 {
			t.Errorf("%d of 300 attempts were answered with held", n)
		}
		if led > 10*time.Millisecond {
			t.Errorf("one leads %v after the release", led)
		}
		if n := len(leads); n > 0 {
			t.Errorf("%d more terms", n)
		}
		t.Logf("%d held, %v until one leads", held.Load(), led)
	})
}

func TestOfAHerdAFewAskWhenTheLeaseEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tap(t)
		p.way = time.Millisecond
		c := candidate("first", "n")
		c.TTL = 20 * time.Second
		l, err := p.Acquire(t.Context(), "g", c)
		must(t, err)
		held, leads := followers(t, p, 20, 15, 20*time.Second)
		var end time.Time
		for range 7 { // all ask again meanwhile, and hear how many they are
			time.Sleep(6 * time.Second)
			_, err := p.Renew(t.Context(), l)
			must(t, err)
			end = time.Now().Add(c.TTL)
		}
		time.Sleep(time.Until(end) - time.Second)
		held.Store(0)
		led := (<-leads).Sub(end)
		if led > 30*time.Millisecond {
			t.Errorf("one leads %v after the end of the lease", led)
		}
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		soon := held.Load()
		time.Sleep(2 * time.Second) // all have had their turn
		synctest.Wait()
		if n := held.Load(); n > 50 {
			t.Errorf("%d of 300 attempts were answered with held", n)
		}
		t.Logf("%d held at once, %d after 2 s, %v until one leads", soon, held.Load(), led)
	})
}

func TestManyElectionsOfOneProcessLoseNoLeaseWhenOneCallInFiveFails(t *testing.T) {
	loseNoLease(t, 50, 100)
}

// loseNoLease has one process lead some groups and follow in others, with leases of 15 s, and for two minutes one request in
// five fail: a renewal mostly goes together with others, and fails with them.
func loseNoLease(t *testing.T, led, followed int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := tap(t)
		other, _ := p.another(t)
		for i := range followed {
			c := candidate("other", "n")
			c.TTL, c.Session = time.Hour, time.Hour
			_, err := other.Acquire(t.Context(), fmt.Sprintf("followed%d", i), c)
			must(t, err)
		}
		var leads, lost atomic.Int64
		ctx, end := context.WithCancel(t.Context())
		var runs sync.WaitGroup
		t.Cleanup(func() { end(); runs.Wait() })
		campaign := func(group string) {
			e, err := election.New(p, election.Config{Group: group})
			must(t, err)
			runs.Go(func() {
				must(t, e.Run(ctx, func(term context.Context, _ *election.Term) error {
					leads.Add(1)
					<-term.Done()
					if ctx.Err() == nil {
						lost.Add(1)
					}
					return nil
				}))
			})
		}
		for i := range led {
			campaign(fmt.Sprintf("led%d", i))
		}
		for i := range followed {
			campaign(fmt.Sprintf("followed%d", i))
		}
		time.Sleep(5 * time.Second)
		p.mu.Lock()
		p.failing = rand.New(rand.NewPCG(1, 2))
		p.dials = 0
		p.mu.Unlock()
		p.sent()
		time.Sleep(2 * time.Minute)
		p.mu.Lock()
		p.failing = nil
		p.mu.Unlock()
		synctest.Wait()
		if leads.Load() != int64(led) || lost.Load() > 0 {
			t.Errorf("%d terms began, and %d were lost", leads.Load(), lost.Load())
		}
		t.Logf("%d groups led, %d followed: %d requests, %d of %d terms lost", led, followed, len(p.sent()), lost.Load(), leads.Load())
	})
}

func TestThousandsOfWatchersShareAConnectionAndDoNotAskAtOnceWhenItIsBackAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := tap(t)
		const count = 2000
		var mu sync.Mutex
		stand := map[string]time.Time{}
		begun := time.Now()
		for i := range count {
			group := fmt.Sprintf("g%d", i)
			must(t, p.Watch(t.Context(), group, store.LeaseFree, func() {
				mu.Lock()
				defer mu.Unlock()
				stand[group] = time.Now()
			}))
		}
		judge := func(when string, dials, lists int) {
			time.Sleep(2 * time.Second)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			at := map[time.Time]int{}
			for _, moment := range stand {
				at[moment]++
			}
			for moment, n := range at {
				if n > 500 && lists < count {
					t.Errorf("%s: %d ask at once, after %v", when, n, moment.Sub(begun))
				}
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if len(stand) != count || p.dials > dials || p.lists > lists {
				t.Errorf("%s: %d of %d stand, over %d connections, after %d commands", when, len(stand), count, p.dials, p.lists)
			}
			clear(stand)
			p.dials, p.lists = 0, 0
		}
		judge("at first", 1, count) // they come one by one, and may be subscribed to so
		begun = time.Now()
		must(t, p.conns[0].Close())
		judge("after the connection broke", 2, count/100) // go-redis makes one of its own, which is given up
	})
}
