package election_test

import (
	"context"
	"errors"
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
					"panic":  {"level=ERROR", "work panicked", "lead panicked: broken", "turns_test.go"},
					"goexit": {"level=ERROR", "work panicked", "runtime.Goexit"},
					"nil":    {"term has ended", "lead has returned"},
				}
				if r.logged(want[name]...) != 1 {
					t.Errorf("log: %s", r.logs.String())
				}
				pass(2 * time.Minute) // alone it tries again and again, less and less often
				if n := terms.Load(); n < 3 || n > 8 {
					t.Fatalf("%d terms in two minutes", n)
				}
				sound := run(t, s, election.Config{}, untilEnd)
				await(t, lease, "another leads", sound.leads)
				pass(5 * time.Minute)
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
		pass(500 * time.Millisecond)
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
		pass(time.Minute)
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
			pass(time.Second + 7*time.Millisecond)
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
			pass(2 * time.Second)
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
