package lifetime_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/internal/world"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errExpired = errors.New("expired")

const ttl = 10 * time.Second // drift 102 ms, guard 1 s: deadline after 9.898 s, end after 8.898 s

// skewed is a world whose wall clock is off by what is stored in ahead.
func skewed(ctx context.Context) (_ context.Context, w *world.World, ahead *atomic.Int64) {
	ahead = new(atomic.Int64)
	real := world.From(ctx)
	w = &world.World{
		Wall:   func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		Random: real.Random, ID: real.ID, Secret: real.Secret,
	}
	return world.With(ctx, w), w, ahead
}

func TestDriftAndGuard(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct{ ttl, drift, guard, span time.Duration }{
		{500 * ms, 7 * ms, 50 * ms, 443 * ms},
		{2000 * ms, 22 * ms, 200 * ms, 1778 * ms},
		{15000 * ms, 152 * ms, 1500 * ms, 13348 * ms},
	} {
		if d, g, s := lifetime.Drift(c.ttl), lifetime.Guard(c.ttl), lifetime.Span(c.ttl); d != c.drift || g != c.guard || s != c.span {
			t.Errorf("%v: drift %v, guard %v, span %v; want %v, %v, %v", c.ttl, d, g, s, c.drift, c.guard, c.span)
		}
	}
}

func TestEndsGuardBeforeItsDeadlineCountedFromTheSending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world.From(t.Context())
		sent := w.Now()
		time.Sleep(3 * time.Second) // the reply takes so long
		l := lifetime.New(t.Context(), sent, ttl, errExpired)
		if got := l.Remaining(); got != 5898*time.Millisecond {
			t.Fatalf("remaining %v", got)
		}
		if got := l.UntilDeadline(); got != 6898*time.Millisecond {
			t.Fatalf("until the deadline %v", got)
		}
		<-l.Context().Done()
		if got := time.Since(sent.Mono); got != 8898*time.Millisecond {
			t.Errorf("context ended after %v", got)
		}
		if cause := context.Cause(l.Context()); cause != errExpired || l.Over() != errExpired {
			t.Errorf("cause %v, over %v", cause, l.Over())
		}
		if l.Valid() || l.Remaining() != 0 || l.Patience() != 0 {
			t.Errorf("still valid")
		}
		if got := l.UntilDeadline(); got != time.Second {
			t.Errorf("guard left for the last work: %v", got)
		}
	})
}

func TestExtendMovesTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world.From(t.Context())
		start := w.Now()
		l := lifetime.New(t.Context(), start, ttl, errExpired)
		ended := l.Context().Done()
		time.Sleep(4 * time.Second)
		if !l.Extend(w.Now(), ttl) || l.Remaining() != 8898*time.Millisecond {
			t.Fatalf("remaining %v", l.Remaining())
		}
		// A shorter grant counts too: the store keeps no more than it has said last.
		if !l.Extend(w.Now(), 5*time.Second) || l.Remaining() != 4448*time.Millisecond {
			t.Fatalf("remaining %v", l.Remaining())
		}
		<-ended
		if got := time.Since(start.Mono); got != 8448*time.Millisecond {
			t.Errorf("ended after %v", got)
		}
	})
}

func TestNothingRevivesWhatIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world.From(t.Context())
		l := lifetime.New(t.Context(), w.Now(), ttl, errExpired)
		sent := w.Now()
		time.Sleep(9 * time.Second) // the reply to a renewal comes after the end
		if l.Extend(sent, 2*ttl) || l.Extend(w.Now(), ttl) || l.Valid() {
			t.Error("an extension revived it")
		}
		l.End(errors.New("later"))
		if cause := context.Cause(l.Context()); cause != errExpired {
			t.Errorf("cause %v", cause)
		}
	})
}

func TestExtensionAfterTheEndIsRefusedAlsoWhenNobodyHasLooked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w, ahead := skewed(t.Context())
		l := lifetime.New(ctx, w.Now(), ttl, errExpired)
		ahead.Store(int64(time.Hour)) // as after a suspend: no timer has run
		if l.Extend(w.Now(), ttl) || l.Valid() || context.Cause(l.Context()) != errExpired {
			t.Error("an extension revived it")
		}
	})
}

func TestGrantThatHasRunOutOnArrivalIsWorthNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world.From(t.Context())
		sent := w.Now()
		time.Sleep(9 * time.Second)
		if l := lifetime.New(t.Context(), sent, ttl, errExpired); l.Valid() || l.Context().Err() == nil {
			t.Error("a lease that came too late is valid")
		}
		s := lifetime.Waiting(t.Context(), errExpired)
		if !s.Extend(sent, ttl) || s.Valid() || s.Begun() || s.Over() != nil {
			t.Error("a session that came too late has begun, or ended")
		}
		if !s.Extend(w.Now(), ttl) || !s.Valid() {
			t.Error("the next grant does not count")
		}
		s.End(errExpired)
	})
}

func TestInvalidMeansCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w, ahead := skewed(t.Context())
		l := lifetime.New(ctx, w.Now(), ttl, errExpired)
		child, cancel := context.WithCancel(l.Context())
		defer cancel()
		ahead.Store(int64(9 * time.Second)) // as after a suspend: no timer has run
		if l.Valid() {
			t.Fatal("valid past its end")
		}
		if context.Cause(child) != errExpired {
			t.Error("Valid was false before the context ended")
		}
	})
}

func TestSuspendedMachineIsNoticedByTheTimerWithinAGuard(t *testing.T) {
	for name, wait := range map[string]func(*lifetime.Lifetime) <-chan struct{}{
		"by who has its context": func(l *lifetime.Lifetime) <-chan struct{} { return l.Context().Done() },
		"by who is called": func(l *lifetime.Lifetime) <-chan struct{} {
			called := make(chan struct{})
			var once sync.Once
			l.OnEnd(func(error) { once.Do(func() { close(called) }) })
			return called
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, w, ahead := skewed(t.Context())
				ended := wait(lifetime.New(ctx, w.Now(), ttl, errExpired))
				time.Sleep(1100 * time.Millisecond)
				ahead.Store(int64(time.Hour))
				jump := time.Now()
				<-ended
				if took := time.Since(jump); took > lifetime.Guard(ttl) {
					t.Errorf("noticed after %v", took)
				}
			})
		})
	}
}

func TestWallClockSetBackDoesNotLengthen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, w, ahead := skewed(t.Context())
		start := time.Now()
		l := lifetime.New(ctx, w.Now(), ttl, errExpired)
		ahead.Store(int64(-time.Hour))
		<-l.Context().Done()
		if got := time.Since(start); got != 8898*time.Millisecond {
			t.Errorf("ended after %v", got)
		}
	})
}

func TestWaitingBeginsWithItsFirstGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := world.From(t.Context())
		l := lifetime.Waiting(t.Context(), errExpired)
		time.Sleep(time.Hour)
		if l.Valid() || l.Begun() || l.Over() != nil || l.Remaining() != 0 || l.Patience() < ttl {
			t.Fatal("it does not wait")
		}
		if !l.Extend(w.Now(), ttl) || !l.Valid() || !l.Begun() {
			t.Fatal("it has not begun")
		}
		<-l.Context().Done()
	})
}

func TestSessionIsSuspectWhenOnlyTheWallClockSaysItIsOver(t *testing.T) {
	begin := func(t *testing.T) (*world.World, *atomic.Int64, *lifetime.Lifetime, world.Instant) {
		ctx, w, ahead := skewed(t.Context())
		l := lifetime.Waiting(ctx, errExpired)
		l.Extend(w.Now(), ttl)
		time.Sleep(time.Second)
		before := w.Now()
		ahead.Store(int64(time.Hour))
		if l.Valid() || l.Remaining() != 0 {
			t.Fatal("valid past its end")
		}
		if l.Over() != nil || l.Context().Err() != nil {
			t.Fatal("over without having asked")
		}
		select {
		case <-l.Suspect():
		default:
			t.Fatal("nobody was told")
		}
		return w, ahead, l, before
	}
	t.Run("answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w, _, l, _ := begin(t)
			time.Sleep(900 * time.Millisecond)
			if got := l.Patience(); got != 100*time.Millisecond {
				t.Errorf("patience %v", got)
			}
			if !l.Extend(w.Now(), ttl) || !l.Valid() {
				t.Error("an answer does not make it valid")
			}
			time.Sleep(2 * time.Second)
			if !l.Valid() {
				t.Error("the doubt came back")
			}
			l.End(errExpired)
		})
	})
	t.Run("not answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, l, _ := begin(t)
			doubt := time.Now()
			<-l.Context().Done()
			if got := time.Since(doubt); got != lifetime.Guard(ttl) || context.Cause(l.Context()) != errExpired {
				t.Errorf("ended after %v: %v", got, context.Cause(l.Context()))
			}
		})
	})
	t.Run("answer from before", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, l, before := begin(t)
			if !l.Extend(before, ttl) {
				t.Error("it ended")
			}
			if l.Valid() {
				t.Error("what was sent before the doubt has removed it")
			}
			l.End(errExpired)
		})
	})
	t.Run("ended", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			_, _, l, _ := begin(t)
			ended := errors.New("ended")
			l.End(ended)
			if context.Cause(l.Context()) != ended {
				t.Errorf("cause %v", context.Cause(l.Context()))
			}
		})
	})
	t.Run("both clocks", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, w, ahead := skewed(t.Context())
			l := lifetime.Waiting(ctx, errExpired)
			l.Extend(w.Now(), ttl)
			time.Sleep(8800 * time.Millisecond)
			ahead.Store(int64(time.Hour))
			l.Valid()
			time.Sleep(98 * time.Millisecond)
			if l.Over() != errExpired {
				t.Error("not over although the monotonic clock says so")
			}
		})
	})
}

func TestEndsWithItsParent(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	l := lifetime.New(ctx, world.From(ctx).Now(), ttl, errExpired)
	stopped := errors.New("stopped")
	cancel(stopped)
	if l.Valid() || l.Over() != stopped {
		t.Errorf("over: %v", l.Over())
	}
}

func TestConcurrentUse(t *testing.T) {
	w := world.From(t.Context())
	l := lifetime.New(t.Context(), w.Now(), ttl, errExpired)
	var calls sync.WaitGroup
	for range 4 {
		calls.Go(func() {
			for range 1000 {
				l.Extend(w.Now(), ttl)
				l.Valid()
				l.Remaining()
				l.UntilDeadline()
			}
			l.End(errExpired)
			if l.Context().Err() == nil {
				t.Error("ended, and the context goes on")
			}
		})
	}
	calls.Wait()
}

func BenchmarkValid(b *testing.B) {
	w := world.From(b.Context())
	l := lifetime.New(b.Context(), w.Now(), time.Hour, errExpired)
	b.ReportAllocs()
	for b.Loop() {
		l.Valid()
	}
	l.End(errExpired)
}
