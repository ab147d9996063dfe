package election_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

// only returns a script that lets f happen to calls of op, at most n times.
func only(op string, n int, f fault) func(string) fault {
	var times atomic.Int64
	return func(o string) fault {
		if o != op || times.Add(1) > int64(n) {
			return fault{}
		}
		return f
	}
}

func TestB1StoreAcceptsAndNeverAnswers(t *testing.T) {
	// A store that does not even heed the context of the call: the context of lead ends all the same.
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		begun := time.Now()
		var ended shared[time.Duration]
		r := run(t, deaf{s, begun.Add(time.Second)}, election.Config{}, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			ended.set(time.Since(begun))
			return context.Cause(ctx)
		})
		await(t, lease, "context ends", func() bool { return ended.get() != 0 })
		if ended.get() != span {
			t.Errorf("ended after %v, want %v", ended.get(), span)
		}
		r.stop(nil)
	})
}

// deaf is a store whose renewals hang for an hour, whatever their context says.
type deaf struct {
	store.Store
	from time.Time
}

func (d deaf) Renew(ctx context.Context, l store.Lease) (store.Grant, error) {
	if time.Now().After(d.from) {
		time.Sleep(time.Hour)
	}
	return d.Store.Renew(ctx, l)
}

func TestB2LateReplyToARenewalThenACut(t *testing.T) {
	for _, reply := range []time.Duration{5 * lease / 10, 6 * lease / 10} {
		t.Run(reply.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				leader := run(t, slow{s, reply}, election.Config{}, untilEnd)
				synctest.Wait()
				follower := run(t, s, election.Config{}, untilEnd)
				time.Sleep(lease/3 + reply + time.Millisecond)
				leader.wire.cut()
				for range 3 * lease / time.Millisecond {
					synctest.Wait()
					if leader.leads() && follower.leads() {
						t.Fatal("two lead")
					}
					time.Sleep(time.Millisecond)
				}
				if !follower.leads() {
					t.Error("the follower does not lead")
				}
				leader.wire.follow(nil)
			})
		})
	}
}

// slow is a store whose replies to renewals take their time, whatever the context says.
type slow struct {
	store.Store
	reply time.Duration
}

func (s slow) Renew(ctx context.Context, l store.Lease) (store.Grant, error) {
	g, err := s.Store.Renew(context.WithoutCancel(ctx), l)
	time.Sleep(s.reply)
	return g, err
}

func TestB3LostReplyToAnAcquire(t *testing.T) {
	for _, reset := range []bool{false, true} {
		t.Run(fmt.Sprintf("retried, reset %v", reset), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				r := newReplica(t, s, election.Config{})
				r.wire.follow(only("acquire", 1, fault{mute: true, reset: reset}))
				r.start(untilEnd)
				took := await(t, time.Second, "leads", r.leads)
				if r.wire.count("acquire") != 2 || r.wire.count("release") != 0 {
					t.Errorf("after %v: %v", took, r.wire.counts)
				}
			})
		})
	}
	t.Run("given up by a stop", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := memstore.New()
			r := newReplica(t, s, election.Config{})
			r.wire.follow(only("acquire", 1, fault{mute: true}))
			r.start(untilEnd)
			synctest.Wait()
			if _, err := s.Leader(t.Context(), "g"); err != nil {
				t.Fatal("the acquire has not arrived")
			}
			r.stop(nil)
			<-r.done
			if l, err := s.Leader(t.Context(), "g"); !errors.Is(err, store.ErrNoLeader) {
				t.Errorf("%+v has the lease, %v", l, err)
			}
			if got := r.seen(); got != "" {
				t.Errorf("callbacks: %s", got)
			}
		})
	})
	t.Run("given up after a lease", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := memstore.New()
			r := newReplica(t, s, election.Config{})
			r.wire.follow(func(op string) fault { return fault{mute: op == "acquire"} })
			r.start(untilEnd)
			await(t, 2*lease, "given up", func() bool { return r.wire.count("release") > 0 })
			if l, err := s.Leader(t.Context(), "g"); !errors.Is(err, store.ErrNoLeader) {
				t.Errorf("%+v has the lease, %v", l, err)
			}
			r.wire.follow(nil)
			await(t, time.Second, "leads", r.leads)
		})
	})
	t.Run("another holds it meanwhile", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := memstore.New()
			leader := run(t, s, election.Config{}, untilEnd)
			synctest.Wait()
			late := newReplica(t, s, election.Config{})
			// The first attempt is still on its way when the leader stops: it must not take the lease for nobody.
			late.wire.follow(only("acquire", 1, fault{request: 5 * time.Second}))
			late.start(untilEnd)
			time.Sleep(4 * time.Second)
			if late.wire.count("release") != 1 {
				t.Errorf("not given up: %v", late.wire.counts)
			}
			late.stop(nil)
			<-late.done
			leader.stop(nil)
			<-leader.done
			late.wire.late.Wait()
			if l, err := s.Leader(t.Context(), "g"); !errors.Is(err, store.ErrNoLeader) {
				t.Errorf("%+v has the lease, %v", l, err)
			}
		})
	})
}

func TestB4ReleaseWhileTheContextOfRunIsOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		r.wire.follow(only("release", 2, fault{lost: true}))
		r.stop(nil)
		<-r.done
		if l, err := s.Leader(t.Context(), "g"); !errors.Is(err, store.ErrNoLeader) {
			t.Errorf("%+v has the lease, %v", l, err)
		}
	})
}

func TestB5LeaseIsTakenAway(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		first := r.Term()
		time.Sleep(time.Second)
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
			time.Sleep(10 * time.Second)
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
		time.Sleep(10 * time.Minute)
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
		time.Sleep(l.Remaining - time.Millisecond)
		synctest.Wait()
		if follower.leads() {
			t.Error("the follower leads before the leader's lease has ended")
		}
		await(t, 20*time.Millisecond, "the follower leads", follower.leads)
		leader.wire.follow(nil)
	})
}

func TestGrantThatComesTooLateIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, late{s}, election.Config{Lease: 500 * time.Millisecond}, untilEnd)
		time.Sleep(1500 * time.Millisecond)
		if got := r.seen(); got != "" || r.wire.count("release") != 1 {
			t.Errorf("callbacks: %s, %v", got, r.wire.counts)
		}
	})
}

func TestB9OneRenewalFailsOrIsSlow(t *testing.T) {
	for _, f := range []fault{{lost: true}, {lost: true, reset: true}, {mute: true}, {reply: lease * 4 / 10}, {request: lease * 4 / 10}} {
		t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := run(t, memstore.New(), election.Config{}, untilEnd)
				synctest.Wait()
				r.wire.follow(only("renew", 1, f))
				time.Sleep(time.Minute)
				if got := r.seen(); strings.Contains(got, "lost") || !r.leads() {
					t.Errorf("callbacks: %s", got)
				}
			})
		})
	}
}

func TestB9OneCallInThreeFailsForTenMinutes(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := run(t, memstore.New(), election.Config{}, untilEnd)
				synctest.Wait()
				chance := rand.New(rand.NewPCG(seed, 0))
				row, failed := 0, 0
				r.wire.follow(func(string) fault {
					if row == 2 || chance.IntN(3) > 0 {
						row = 0
						return fault{}
					}
					row++
					failed++
					return fault{lost: true, reset: chance.IntN(2) > 0}
				})
				time.Sleep(10 * time.Minute)
				if got := r.seen(); strings.Contains(got, "lost") || !r.leads() || failed < 20 {
					t.Errorf("%d calls failed, callbacks: %s", failed, got)
				}
			})
		})
	}
}

func TestB10BrokenWorkGivesAnotherItsTurn(t *testing.T) {
	for name, broken := range map[string]func(context.Context, *election.Term) error{
		"error":  func(context.Context, *election.Term) error { return errors.New("broken") },
		"panic":  func(context.Context, *election.Term) error { panic("broken") },
		"goexit": func(context.Context, *election.Term) error { runtime.Goexit(); return nil },
		"nil":    func(context.Context, *election.Term) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				var terms atomic.Int64
				r := run(t, s, election.Config{}, func(ctx context.Context, term *election.Term) error {
					if terms.Add(1) > 100 {
						return untilEnd(ctx, term) // it does not cool down: end this bubble all the same
					}
					return broken(ctx, term)
				})
				synctest.Wait()
				if l, err := s.Leader(t.Context(), "g"); !errors.Is(err, store.ErrNoLeader) {
					t.Fatalf("%+v has the lease, %v", l, err)
				}
				want := map[string][]string{
					"error":  {"level=ERROR", "work failed", "error=broken"},
					"panic":  {"level=ERROR", "work panicked", "lead panicked: broken", "cases_test.go"},
					"goexit": {"level=ERROR", "work panicked", "runtime.Goexit"},
					"nil":    {"term has ended", "lead has returned"},
				}
				if r.logged(want[name]...) != 1 {
					t.Errorf("log: %s", r.logs.String())
				}
				time.Sleep(2 * time.Minute) // alone it tries again and again, less and less often
				if n := terms.Load(); n < 3 || n > 8 {
					t.Fatalf("%d terms in two minutes", n)
				}
				sound := run(t, s, election.Config{}, untilEnd)
				await(t, lease, "another leads", sound.leads)
				time.Sleep(5 * time.Minute)
				if !sound.leads() {
					t.Error("the broken one won again")
				}
			})
		})
	}
}

func TestB10EachFollowerLeadsBeforeTheBrokenOneAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var order shared[[]string]
		for _, id := range []string{"a", "b", "c"} {
			run(t, s, election.Config{ID: id}, func(ctx context.Context, term *election.Term) error {
				if order.set(append(order.get(), id)); len(order.get()) > 100 {
					return untilEnd(ctx, term)
				}
				return errors.New("broken")
			})
		}
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if got := slices.Sorted(slices.Values(order.get())); !slices.Equal(got, []string{"a", "b", "c"}) {
			t.Errorf("order %v", got)
		}
	})
}

func TestB11FollowerIsShutDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		run(t, s, election.Config{ID: "leader"}, untilEnd)
		synctest.Wait()
		follower := run(t, s, election.Config{}, func(context.Context, *election.Term) error {
			t.Error("the follower's work was called")
			return nil
		})
		time.Sleep(time.Minute)
		follower.stop(nil)
		synctest.Wait()
		<-follower.done
		if got := follower.seen(); follower.err != nil || got != "leader leader" {
			t.Errorf("Run returned %v, callbacks: %s", follower.err, got)
		}
		if follower.wire.count("release") != 0 {
			t.Error("the follower released what it does not hold")
		}
	})
}

func TestB11StopWhileTheLeaseIsBeingGranted(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, late{s}, election.Config{}, func(context.Context, *election.Term) error {
			t.Error("the work was called")
			return nil
		})
		synctest.Wait()
		r.stop(nil)
		<-r.done
		if l, err := s.Leader(t.Context(), "g"); !errors.Is(err, store.ErrNoLeader) || r.seen() != "" {
			t.Errorf("%+v has the lease, %v", l, err)
		}
	})
}

func TestB11StopOfACandidateWhileTheStoreHangs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newReplica(t, memstore.New(), election.Config{})
		r.wire.cut()
		r.start(untilEnd)
		for range 50 {
			time.Sleep(time.Second + 7*time.Millisecond)
			stopped := time.Now()
			r.stop(nil)
			if <-r.done; time.Since(stopped) > time.Second {
				t.Fatalf("Run returned after %v", time.Since(stopped))
			}
			r.start(untilEnd)
		}
	})
}

// late is a store whose replies to acquires take their time, whatever the context says.
type late struct{ store.Store }

func (l late) Acquire(ctx context.Context, group string, c store.Candidate) (store.Lease, error) {
	granted, err := l.Store.Acquire(context.WithoutCancel(ctx), group, c)
	time.Sleep(time.Second)
	return granted, err
}

func TestB12HundredTermsLeaveNothingBehind(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		a, b := run(t, s, election.Config{}, untilEnd), run(t, s, election.Config{}, untilEnd)
		await(t, time.Second, "one leads", func() bool { return a.leads() || b.leads() })
		synctest.Wait()
		before, terms := ours(), 0
		for range 100 {
			leader := a
			if b.leads() {
				leader = b
			}
			if err := leader.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * time.Second)
			terms += strings.Count(a.seen()+b.seen(), "elected")
		}
		synctest.Wait()
		if after := ours(); len(after) > len(before) || terms < 100 {
			t.Errorf("before %d terms: %s\nafter: %s", terms, before, after)
		}
		if n := a.wire.count("watch") + b.wire.count("watch"); n != 2 {
			t.Errorf("%d subscriptions", n)
		}
	})
	// And goleak in TestMain.
}

// ours returns the goroutines that run code of this package.
func ours() (stacks []string) {
	buf := make([]byte, 1<<20)
	for g := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(g, "singleton/election.") {
			stacks = append(stacks, g)
		}
	}
	return stacks
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
		time.Sleep(50 * time.Millisecond)
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
		time.Sleep(time.Second + time.Millisecond)
		synctest.Wait()
		before := effects.Load()
		// The machine sleeps: its wall clock and the store's go on, its monotonic clock and its timers do not.
		r.ahead.Store(int64(2 * lease))
		s.SetClockOffset(2 * lease)
		time.Sleep(10 * time.Millisecond)
		synctest.Wait()
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
		time.Sleep(time.Second)
		first := r.Term()
		s.SetClockOffset(time.Hour) // the lease is gone
		await(t, lease, "leads again", func() bool { return r.leads() && r.Term() != first })
		second := r.Term()
		if second.Token() <= first.Token() {
			t.Errorf("token %d after %d", second.Token(), first.Token())
		}
		s.SetClockOffset(0) // its end is an hour away; the next renewal brings it back
		time.Sleep(lease)
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
		time.Sleep(5 * time.Minute)
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
