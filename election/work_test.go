package election_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

func TestWorkThatIgnoresItsContextKeepsTheLeaseUntilItLapses(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var calls atomic.Int64
		r := run(t, s, election.Config{}, func(ctx context.Context, term *election.Term) error {
			if calls.Add(1) > 1 {
				return untilEnd(ctx, term)
			}
			time.Sleep(5 * lease)
			return nil
		})
		synctest.Wait()
		r.wire.cut()
		pass(lease - time.Millisecond)
		if _, err := s.Leader(t.Context(), "g"); err != nil || r.wire.count("release") > 0 {
			t.Error("released while the work goes on")
		}
		if err := r.Check(); !errors.Is(err, election.ErrOverdue) {
			t.Errorf("Check says %v past the deadline", err)
		}
		r.wire.follow(nil)
		pass(2 * lease)
		if calls.Load() != 1 || r.wire.count("acquire") != 1 {
			t.Error("it campaigns although its work goes on")
		}
		if n := r.logged("level=ERROR", "work goes on after its lease has ended"); n != 1 {
			t.Errorf("logged %d times", n)
		}
		pass(2*lease + time.Second)
		if err := r.Check(); err != nil || calls.Load() != 2 {
			t.Errorf("Check says %v, %d calls when the work has returned", err, calls.Load())
		}
		if got := r.seen(); strings.Count(got, "lost") != 1 || strings.Count(got, "elected") != 2 {
			t.Errorf("callbacks: %s", got)
		}
	})
}

func TestWorkThatReturnsInTimeAfterTheEndOfItsLeaseIsNotOverdue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			time.Sleep(time.Second) // within the guard
			return nil
		})
		synctest.Wait()
		r.wire.cut()
		pass(lease)
		if r.Check() != nil || r.logged("level=ERROR") != 0 {
			t.Errorf("Check says %v, log: %s", r.Check(), r.logs.String())
		}
		r.wire.follow(nil)
	})
}

// A machine that was suspended past the lease: neither the work nor anybody else could do a thing meanwhile.
func TestWorkThatReturnsSoonAfterASuspensionIsNotOverdue(t *testing.T) {
	for _, c := range []struct {
		takes   time.Duration // of the work, to return
		overdue bool
	}{
		{0, false},
		{lifetime.Guard(lease) / 4, false},
		{lease, true},
	} {
		bubble(t, func(t *testing.T) {
			s := memstore.New()
			r := run(t, s, election.Config{}, func(ctx context.Context, _ *election.Term) error {
				<-ctx.Done()
				time.Sleep(c.takes)
				return nil
			})
			synctest.Wait()
			r.ahead.Store(int64(3 * lease))
			pass(lease)
			if n := r.logged("level=ERROR", "work goes on after its lease has ended"); (n > 0) != c.overdue {
				t.Errorf("work that takes %v to return: logged %d times: %s", c.takes, n, r.logs.String())
			}
			pass(lease)
		})
	}
}

func TestWorkThatHasReturnedIsNotOverdueWhileItsReleaseGetsNoAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			time.Sleep(lease)
			return nil
		})
		synctest.Wait()
		r.wire.cut()
		pass(span + lease - time.Millisecond)
		if err := r.Check(); !errors.Is(err, election.ErrOverdue) {
			t.Errorf("Check says %v past the deadline", err)
		}
		pass(2 * time.Millisecond)
		if err := r.Check(); err != nil || r.wire.count("release") != 1 {
			t.Errorf("Check says %v when the work has returned; %v", err, r.wire.counts)
		}
		r.wire.follow(nil)
	})
}

func TestErrStopEndsRun(t *testing.T) {
	for _, when := range []string{"at once", "after a stop", "after a loss"} {
		t.Run(when, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				r := run(t, s, election.Config{}, func(ctx context.Context, _ *election.Term) error {
					if when != "at once" {
						<-ctx.Done()
					}
					return fmt.Errorf("done here: %w", election.ErrStop)
				})
				pass(time.Second)
				switch when {
				case "after a stop":
					r.stop(nil)
				case "after a loss":
					s.Wipe()
				}
				<-r.done
				if r.err != nil {
					t.Errorf("Run returned %v", r.err)
				}
				if _, err := s.Leader(t.Context(), "g"); !errors.Is(err, store.ErrNoLeader) {
					t.Errorf("the lease is still held: %v", err)
				}
				if r.logged("level=ERROR") > 0 {
					t.Errorf("log: %s", r.logs.String())
				}
			})
		})
	}
}

func TestCauseOfTheEndReachesWorkAndCallbacks(t *testing.T) {
	enough := errors.New("enough")
	broken := errors.New("broken")
	for name, c := range map[string]struct {
		end  func(*replica, *memstore.Store)
		work error
		want error // cause for the work; nil when the work ends itself
		lost string
	}{
		"stop with a cause": {func(r *replica, _ *memstore.Store) { r.stop(enough) }, nil, enough, enough.Error()},
		"stop":              {func(r *replica, _ *memstore.Store) { r.stop(nil) }, nil, context.Canceled, context.Canceled.Error()},
		"resign": {func(r *replica, _ *memstore.Store) { _ = r.Resign(context.Background()) }, nil, election.ErrResigned,
			election.ErrResigned.Error()},
		"taken":     {func(_ *replica, s *memstore.Store) { s.Wipe() }, nil, election.ErrLost, election.ErrLost.Error()},
		"cut off":   {func(r *replica, _ *memstore.Store) { r.wire.cut() }, nil, election.ErrExpired, election.ErrExpired.Error()},
		"left":      {func(r *replica, _ *memstore.Store) { _ = r.Leave() }, nil, store.ErrEnded, store.ErrEnded.Error()},
		"broken":    {nil, broken, nil, broken.Error()},
		"returning": {nil, nil, nil, "election: lead has returned"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				var cause, termCause shared[error]
				var terms atomic.Int64
				r := run(t, s, election.Config{ID: "me"}, func(ctx context.Context, term *election.Term) error {
					if terms.Add(1) > 1 {
						return untilEnd(ctx, term)
					}
					if c.want == nil {
						return c.work
					}
					<-ctx.Done()
					cause.set(context.Cause(ctx))
					termCause.set(context.Cause(term.Context()))
					return c.work
				})
				synctest.Wait()
				if c.end != nil {
					c.end(r, s)
				}
				pass(lease - 500*time.Millisecond)
				if cause.get() != c.want {
					t.Errorf("cause %v, want %v", cause.get(), c.want)
				}
				if name == "stop" || name == "resign" || name == "stop with a cause" {
					if err := termCause.get(); err != nil {
						t.Errorf("the term itself had ended by then: %v", err)
					}
				}
				got := r.seen()
				if first, _, _ := strings.Cut(got, ", leader , "); !strings.HasPrefix(got, "elected ") ||
					!strings.Contains(first, ", leader me, lost ") || !strings.Contains(first, ": "+c.lost) {
					t.Errorf("callbacks: %s", got)
				}
				r.wire.follow(nil)
			})
		})
	}
}

// Leave ends the session behind the elector's back.
func (r *replica) Leave() error { return r.wire.Leave(context.Background(), "g", r.ID()) }

func TestEndedSessionEndsTheTermAndTheLeaseIsReleased(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		id, term := r.ID(), r.Term()
		if err := r.Leave(); err != nil {
			t.Fatal(err)
		}
		await(t, lease, "leads again", func() bool { return r.leads() && r.Term() != term })
		if r.ID() == id || r.Term().Lease().Replica != r.ID() {
			t.Errorf("ID %s after %s", r.ID(), id)
		}
	})
}

func TestPanicAfterALossIsFollowedByACoolDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var terms atomic.Int64
		r := run(t, s, election.Config{}, func(ctx context.Context, _ *election.Term) error {
			terms.Add(1)
			<-ctx.Done()
			panic("on the way out")
		})
		pass(time.Second)
		s.Wipe()
		pass(third - time.Second/2) // the renewal half a second ago has told it
		if terms.Load() != 1 || r.logged("work panicked") != 1 {
			t.Errorf("%d terms, log: %s", terms.Load(), r.logs.String())
		}
		pass(2 * time.Second)
		if terms.Load() != 2 {
			t.Errorf("%d terms", terms.Load())
		}
	})
}

func TestCallbacksAreInOrderAndNeverInTheWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var mu sync.Mutex
		var order []string
		add := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, s)
		}
		e, err := election.New(s, election.Config{Group: "g", Callbacks: election.Callbacks{
			Elected: func(*election.Term) {
				time.Sleep(10 * lease) // renewals go on
				add("elected")
			},
			LeaderChanged: func(l store.Leader) {
				add("changed")
				panic("in a callback")
			},
			Lost: func(term *election.Term, cause error) {
				time.Sleep(time.Second)
				add("lost")
			},
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx, untilEnd) }()
		pass(5 * lease)
		mu.Lock()
		if term := e.Term(); term == nil || len(order) != 0 {
			t.Errorf("term %v, order %v", term, order)
		}
		mu.Unlock()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if got := strings.Join(order, " "); got != "elected changed lost changed" {
			t.Errorf("order %s", got)
		}
	})
}

func TestTwoRunsAtOnceAreAnErrorAndOneAfterTheOtherIsNot(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := run(t, memstore.New(), election.Config{}, untilEnd)
		synctest.Wait()
		if err := r.Run(t.Context(), untilEnd); err == nil {
			t.Fatal("two at once")
		}
		if !r.leads() {
			t.Error("the second Run has disturbed the first")
		}
		id := r.ID()
		r.stop(nil)
		<-r.done
		if r.leads() || r.Check() != nil {
			t.Errorf("after Run: leads %v, Check says %v", r.leads(), r.Check())
		}
		r.start(untilEnd)
		synctest.Wait()
		if !r.leads() || r.ID() == id {
			t.Errorf("leads %v, ID %s after %s", r.leads(), r.ID(), id)
		}
	})
}

func TestRunWithAnEndedContextAsksNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newReplica(t, memstore.New(), election.Config{})
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := r.Run(ctx, untilEnd); err != nil || len(r.wire.counts) != 0 {
			t.Errorf("Run returned %v after %v", err, r.wire.counts)
		}
	})
}

func TestStoreTimeIsNeverAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		s.SetClockOffset(time.Hour)
		r := newReplica(t, s, election.Config{})
		r.wire.follow(func(string) fault { return fault{reply: 100 * time.Millisecond} })
		r.start(untilEnd)
		pass(time.Second)
		for range 100 {
			behind := time.Now().Add(time.Hour).Sub(r.Term().StoreTime())
			if behind < 0 || behind > 100*time.Millisecond {
				t.Fatalf("behind by %v", behind)
			}
			pass(time.Second)
		}
	})
}
