package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

func (d deaf) Renew(ctx context.Context, l store.Lease) (store.Grant, error) {
	if time.Now().After(d.from) {
		time.Sleep(time.Hour)
	}
	return d.Store.Renew(ctx, l)
}

func (s slow) Renew(ctx context.Context, l store.Lease) (store.Grant, error) {
	g, err := s.Store.Renew(context.WithoutCancel(ctx), l)
	time.Sleep(s.reply)
	return g, err
}

func TestB5LeaseIsTakenAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		first := r.Term()
		pass(time.Second)
		s.Wipe()
		other, err := s.Acquire(t.Context(), "g", store.Candidate{
			Replica: store.Replica{ID: "other"}, Nonce: "n", TTL: lease, Session: lease, Start: true, Floor: first.Token(),
		})
		if err != nil {
			t.Fatal(err)
		}
		await(t, lease/3, "stops within a renewal interval", func() bool { return !first.Valid() })
		if cause := context.Cause(first.Context()); cause != election.ErrLost {
			t.Errorf("cause %v", cause)
		}
		if l, err := s.Leader(t.Context(), "g"); err != nil || l.Token != other.Token {
			t.Errorf("the late release took the lease of %+v: %v", l, err)
		}
		await(t, 2*lease, "leads again", r.leads)
		if r.Term().Token() <= other.Token {
			t.Errorf("token %d after %d", r.Term().Token(), other.Token)
		}
		want := fmt.Sprintf("lost %d: %v, leader , leader other, elected %d, leader vm", first.Token(), election.ErrLost, r.Term().Token())
		if got := strings.ReplaceAll(r.seen(), hostName(r), "vm"); !strings.HasSuffix(got, want) {
			t.Errorf("callbacks: %s, want %s", got, want)
		}
	})
}

func hostName(r *replica) string {
	name, _, _ := strings.Cut(r.ID(), "-")
	return name
}

func TestB6SameIDs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var replicas []*replica
		for _, id := range []string{"worker-1", "worker-1", "worker-10", "worker"} {
			replicas = append(replicas, run(t, s, election.Config{ID: id}, untilEnd))
		}
		ids := map[string]bool{}
		for range 10 {
			pass(10 * time.Second)
			leaders := 0
			for _, r := range replicas {
				ids[r.ID()] = true
				if r.leads() {
					leaders++
				}
			}
			if leaders != 1 {
				t.Fatalf("%d lead", leaders)
			}
		}
		if len(ids) != len(replicas) {
			t.Errorf("IDs %v", ids)
		}
	})
}

func TestB7GroupsAreIndependentAndTheirNamesChecked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var replicas []*replica
		for _, g := range []string{"a", "ab", "a.b", "a-b"} {
			replicas = append(replicas, run(t, s, election.Config{Group: g}, untilEnd))
		}
		synctest.Wait()
		for _, r := range replicas {
			if !r.leads() {
				t.Error("one of four groups has no leader")
			}
		}
	})
	for _, name := range []string{"", "{a}", "a/b", "a:b", "a b", "a\n", strings.Repeat("a", 129)} {
		if _, err := election.New(memstore.New(), election.Config{Group: name}); err == nil {
			t.Errorf("group %q was accepted", name)
		}
		for _, err := range election.Watch(t.Context(), memstore.New(), name) {
			if !errors.Is(err, store.ErrPermanent) {
				t.Errorf("group %q is watched: %v", name, err)
			}
		}
	}
}

func TestB8TheLeadersLeaseCounts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		leader := run(t, s, election.Config{Lease: 30 * time.Second}, untilEnd)
		synctest.Wait()
		follower := run(t, s, election.Config{Lease: 5 * time.Second}, untilEnd)
		synctest.Wait()
		id, asked := follower.ID(), follower.wire.count("acquire")
		pass(10 * time.Minute)
		if follower.leads() || !leader.leads() {
			t.Error("the follower took over from a leader that renews")
		}
		// The first question shows that the leader's lease outlasts the own session, so that a longer one is asked for.
		if asked != 2 || follower.ID() != id {
			t.Errorf("%d questions at first, ID %s then %s", asked, id, follower.ID())
		}
		if n := follower.wire.count("acquire") - asked; n > 30 {
			t.Errorf("%d questions in 20 leases of the leader", n)
		}
		l, err := s.Leader(t.Context(), "g")
		if err != nil {
			t.Fatal(err)
		}
		leader.wire.cut()
		pass(l.Remaining - time.Millisecond)
		if follower.leads() {
			t.Error("the follower leads before the leader's lease has ended")
		}
		await(t, 20*time.Millisecond, "the follower leads", follower.leads)
		leader.wire.follow(nil)
	})
}

func (l late) Acquire(ctx context.Context, group string, c store.Candidate) (store.Lease, error) {
	granted, err := l.Store.Acquire(context.WithoutCancel(ctx), group, c)
	time.Sleep(time.Second)
	return granted, err
}

func TestB13ReleaseBetweenAcquireAndSubscription(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		leader := run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		follower := newReplica(t, s, election.Config{})
		// The reply "held" is on its way while the leader releases.
		follower.wire.follow(only("acquire", 1, fault{reply: 100 * time.Millisecond}))
		follower.start(untilEnd)
		pass(50 * time.Millisecond)
		leader.stop(nil)
		<-leader.done
		if took := await(t, time.Second, "the follower leads", follower.leads); took > 51*time.Millisecond {
			t.Errorf("led %v after the release", took)
		}
	})
}

func TestB18LeaderIsSuspendedPastItsLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var effects, past, terms atomic.Int64
		var commit shared[error]
		r := run(t, s, election.Config{}, func(ctx context.Context, term *election.Term) error {
			if terms.Add(1) > 1 {
				return untilEnd(ctx, term)
			}
			for term.Valid() && context.Cause(ctx) != context.Canceled { // it heeds a stop, and else only Valid
				effects.Add(1)
				time.Sleep(10 * time.Millisecond)
			}
			if ctx.Err() == nil {
				t.Error("Valid is false, and the context goes on")
			}
			if !term.Valid() {
				past.Add(1)
				commit.set(s.Commit(t.Context(), term.Lease(), 1, nil))
			}
			return context.Cause(ctx)
		})
		pass(time.Second + time.Millisecond)
		before := effects.Load()
		// The machine sleeps: its wall clock and the store's go on, its monotonic clock and its timers do not.
		r.ahead.Store(int64(2 * lease))
		s.SetClockOffset(2 * lease)
		pass(10 * time.Millisecond)
		if n := effects.Load() - before; n != 0 || past.Load() != 1 || commit.get() == nil {
			t.Errorf("%d effects after the lease, commit %v", n, commit.get())
		}
		if got := r.seen(); !strings.Contains(got, election.ErrExpired.Error()) {
			t.Errorf("callbacks: %s", got)
		}
		await(t, 2*lease, "leads again", r.leads)
	})
}

func TestB19ClockOfTheStoreJumps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{ID: "first"}, untilEnd)
		pass(time.Second)
		first := r.Term()
		s.SetClockOffset(time.Hour) // the lease is gone
		await(t, lease, "leads again", func() bool { return r.leads() && r.Term() != first })
		second := r.Term()
		if second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		if n := r.logged("the store's clock has jumped", "jump=1h0m0s", "level=WARN"); n != 1 {
			t.Errorf("the jump ahead was logged %d times: %s", n, r.logs.String())
		}
		s.SetClockOffset(0) // its end is an hour away; the next renewal brings it back
		pass(lease)
		if n := r.logged("the store's clock has jumped", "jump=-1h0m0s", "level=WARN"); n != 1 {
			t.Errorf("the jump was logged %d times: %s", n, r.logs.String())
		}
		if !second.Valid() {
			t.Error("the leader stopped although it renews")
		}
		// A leader that is gone when the clock jumps back holds on to its lease for an hour.
		r.wire.cut()
		s.SetClockOffset(-time.Hour)
		next := run(t, s, election.Config{ID: "next"}, untilEnd)
		pass(5 * time.Minute)
		if n := next.logged("far in the future", "leader="+second.Lease().Replica, "level=WARN"); n != 1 {
			t.Errorf("the far end was reported %d times: %s", n, next.logs.String())
		}
		s.Wipe() // or a person deletes it
		await(t, time.Minute, "the next one leads", next.leads)
		if next.Term().Token() <= second.Token() {
			t.Errorf("token %d after %d", next.Term().Token(), second.Token())
		}
		r.wire.follow(nil)
	})
}
