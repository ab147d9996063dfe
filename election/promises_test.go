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

func TestE2ContextEndsBeforeTheLeaseCanWhateverTheStoreDoes(t *testing.T) {
	for _, f := range []fault{{lost: true}, {lost: true, reset: true}, {mute: true}, {err: errWrong}, {request: time.Hour}} {
		t.Run(fmt.Sprintf("%+v", f), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				begun := time.Now()
				var ended shared[time.Time]
				var cause shared[error]
				r := run(t, s, election.Config{}, func(ctx context.Context, term *election.Term) error {
					<-ctx.Done()
					ended.set(time.Now())
					cause.set(context.Cause(ctx))
					if term.Valid() || term.Remaining() != 0 || term.Context().Err() == nil {
						t.Error("the term is valid without its context")
					}
					return nil
				})
				synctest.Wait()
				r.wire.follow(func(string) fault { return f })
				await(t, lease, "context ends", func() bool { return cause.get() != nil })
				if got := ended.get().Sub(begun); got != span || cause.get() != election.ErrExpired {
					t.Errorf("ended after %v with %v, want %v with ErrExpired", got, cause.get(), span)
				}
				r.wire.follow(nil)
				r.stop(nil)
				<-r.done
			})
		})
	}
}

func TestE2DeadlineCountsFromTheSendingOfTheLastRenewal(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		term, begun := r.Term(), time.Now()
		r.wire.follow(func(op string) fault { return fault{reply: 150 * time.Millisecond} })
		pass(lease/3 + time.Second) // one renewal is answered
		r.wire.cut()
		<-term.Context().Done()
		if got := time.Since(begun); got != third+span {
			t.Errorf("ended after %v, want %v", got, third+span)
		}
	})
}

func TestE2FirstDeadlineCountsFromTheSendingOfTheAcquire(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := newReplica(t, memstore.New(), election.Config{})
		r.wire.follow(only("acquire", 1, fault{reply: 150 * time.Millisecond}))
		begun := time.Now()
		r.start(untilEnd)
		await(t, time.Second, "leads", r.leads)
		term := r.Term()
		r.wire.cut()
		<-term.Context().Done()
		if got := time.Since(begun); got != span {
			t.Errorf("ended after %v, want %v", got, span)
		}
	})
}

func TestE3TokensGrowThroughLossOfDataAndClocksSetBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var last, terms atomic.Uint64
		lead := func(ctx context.Context, term *election.Term) error {
			if before := last.Swap(term.Token()); term.Token() <= before {
				t.Errorf("token %d after %d", term.Token(), before)
			}
			terms.Add(1)
			return untilEnd(ctx, term)
		}
		for range 3 {
			run(t, s, election.Config{}, lead)
		}
		for i := range 20 {
			pass(time.Minute)
			if i%2 == 0 {
				s.SetClockOffset(-time.Duration(i) * time.Hour) // with its data the store forgets what it has given
			}
			s.Wipe()
		}
		pass(time.Minute)
		if terms.Load() < 20 {
			t.Errorf("%d terms", terms.Load())
		}
	})
}

func TestE3TokensGrowWhenTheGroupMovesToAnotherStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		old, next := memstore.New(), memstore.New()
		old.SetClockOffset(time.Hour) // its tokens are ahead
		var tokens shared[[]uint64]
		r := run(t, old, election.Config{}, func(ctx context.Context, term *election.Term) error {
			tokens.set(append(tokens.get(), term.Token()))
			return untilEnd(ctx, term)
		})
		pass(time.Second)
		r.wire.moveTo(next)
		pass(time.Minute)
		if got := tokens.get(); len(got) != 2 || got[1] <= got[0] {
			t.Errorf("tokens %v", got)
		}
	})
}

func TestE4ReleaseWaitsForWorkAndTheLeaseIsRenewedMeanwhile(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		var returned shared[time.Time]
		leader := run(t, s, election.Config{ID: "leader"}, func(ctx context.Context, term *election.Term) error {
			<-ctx.Done()
			time.Sleep(3 * lease) // it takes its time
			if !term.Valid() || term.Context().Err() != nil {
				t.Error("the lease is over although the store answers")
			}
			returned.set(time.Now())
			return nil
		})
		synctest.Wait()
		var took shared[time.Duration]
		follower := run(t, s, election.Config{ID: "follower"}, func(ctx context.Context, term *election.Term) error {
			took.set(time.Since(returned.get()))
			if returned.get().IsZero() {
				t.Error("two lead")
			}
			return untilEnd(ctx, term)
		})
		pass(time.Minute)
		leader.stop(errors.New("enough"))
		await(t, 4*lease, "the follower leads", follower.leads)
		if took.get() != 0 {
			t.Errorf("took over %v after the work had returned", took.get())
		}
		<-leader.done
		if leader.err != nil {
			t.Errorf("Run returned %v", leader.err)
		}
		if got := leader.seen(); !strings.HasSuffix(got, ": enough, leader ") {
			t.Errorf("callbacks: %s", got)
		}
	})
}

func TestE4TermIsOverBeforeItsReleaseIsSent(t *testing.T) {
	for _, end := range []string{"stop", "resign", "return", "cut"} {
		t.Run(end, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				r := run(t, memstore.New(), election.Config{}, func(ctx context.Context, term *election.Term) error {
					if end == "return" {
						rest(ctx, time.Second)
						return nil
					}
					return untilEnd(ctx, term)
				})
				synctest.Wait()
				term, released := r.Term(), 0
				r.wire.follow(func(op string) fault {
					if op == "release" {
						if released++; term.Valid() || term.Context().Err() == nil {
							t.Error("the lease is released while its term is valid")
						}
					}
					return fault{lost: end == "cut"}
				})
				switch end {
				case "stop":
					r.stop(nil)
				case "resign":
					_ = r.Resign(t.Context())
				}
				pass(lease)
				if released == 0 {
					t.Error("not released")
				}
				r.wire.follow(nil)
			})
		})
	}
}

func TestE5FollowersLeadWhenTheLeaseOfACrashedLeaderEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		leader := run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		var followers []*replica
		for range 5 {
			followers = append(followers, run(t, s, election.Config{}, untilEnd))
		}
		pass(time.Minute)
		leader.wire.cut() // to the others, a crash
		l, err := s.Leader(t.Context(), "g")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(l.Remaining)
		if took := await(t, time.Second, "another leads", func() bool {
			for _, f := range followers {
				if f.leads() {
					return true
				}
			}
			return false
		}); took > 11*time.Millisecond {
			t.Errorf("took %v from the end of the lease", took)
		}
		leader.wire.follow(nil)
	})
}

func TestE6TransientFaultsAreRetriedAndLoggedOncePerMinute(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := newReplica(t, s, election.Config{})
		r.wire.follow(func(string) fault { return fault{lost: true, reset: true} })
		r.start(untilEnd)
		pass(10 * time.Minute)
		if r.leads() {
			t.Error("leads on an error")
		}
		if n := r.logged("store does not answer, trying again", errReset.Error(), "level=WARN"); n < 5 || n > 11 {
			t.Errorf("logged %d times in ten minutes", n)
		}
		r.wire.follow(nil)
		await(t, 2*time.Second, "leads when the store answers again", r.leads)
	})
}

func TestE6PermanentFaultEndsRunAtOnceWhileAcquiring(t *testing.T) {
	for _, op := range []string{"acquire", "watch"} {
		t.Run(op, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				r := newReplica(t, s, election.Config{})
				r.wire.follow(func(o string) fault {
					if o == op {
						return fault{err: errWrong}
					}
					return fault{}
				})
				r.start(untilEnd)
				synctest.Wait()
				<-r.done
				if !errors.Is(r.err, store.ErrPermanent) || !strings.Contains(r.err.Error(), "right password") {
					t.Errorf("Run returned %v", r.err)
				}
			})
		})
	}
}

func TestE6PermanentFaultEndsRunAtTheDeadlineWhileLeading(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, untilEnd)
		pass(time.Second)
		wrong := func(string) fault { return fault{err: errWrong} }
		r.wire.follow(wrong)
		pass(lease / 2)
		r.wire.follow(nil) // mended in time
		pass(time.Minute)
		if got := strings.Count(r.seen(), "lost"); got != 0 {
			t.Fatalf("lost %d terms to a fault that was mended", got)
		}
		r.wire.follow(wrong)
		term := r.Term()
		<-r.done
		if !errors.Is(r.err, store.ErrPermanent) || term.Valid() {
			t.Errorf("Run returned %v", r.err)
		}
		if got := r.seen(); !strings.Contains(got, election.ErrExpired.Error()) {
			t.Errorf("callbacks: %s", got)
		}
	})
}
