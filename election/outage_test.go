package election_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

func TestB2LateReplyToARenewalThenACut(t *testing.T) {
	for _, reply := range []time.Duration{5 * lease / 10, 6 * lease / 10} {
		t.Run(reply.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				leader := run(t, slow{s, reply}, election.Config{}, untilEnd)
				synctest.Wait()
				follower := run(t, s, election.Config{}, untilEnd)
				pass(lease/3 + reply + time.Millisecond)
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
	t.Run("granted after that, though its release never arrived", func(t *testing.T) {
		bubble(t, func(t *testing.T) {
			s := memstore.New()
			r := newReplica(t, s, election.Config{})
			// As a server does that stands still: it has the first attempt, hears nothing for more than a lease, and goes on.
			begun, asked := time.Now(), false
			r.wire.follow(func(op string) fault {
				switch {
				case op == "acquire" && !asked:
					asked = true
					return fault{request: lease + 5*time.Second}
				case time.Since(begun) < lease+5*time.Second:
					return fault{lost: true}
				}
				return fault{}
			})
			r.start(untilEnd)
			pass(lease + 5*time.Second)
			if l, err := s.Leader(t.Context(), "g"); err != nil || r.leads() {
				t.Fatalf("%+v, %v: the late acquire has taken no lease", l, err)
			}
			await(t, lease/5+time.Second, "leads", r.leads) // when its present attempt has run out
			if n := r.wire.count("release"); n < 2 {
				t.Errorf("%d releases", n)
			}
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
			pass(4 * time.Second)
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

func TestGrantThatComesTooLateIsGivenUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, late{s}, election.Config{Lease: 500 * time.Millisecond}, untilEnd)
		pass(1500 * time.Millisecond)
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
				pass(time.Minute)
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
				pass(10 * time.Minute)
				if got := r.seen(); strings.Contains(got, "lost") || !r.leads() || failed < 20 {
					t.Errorf("%d calls failed, callbacks: %s", failed, got)
				}
			})
		})
	}
}
