package election

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

func TestTimeoutOfAnAttempt(t *testing.T) {
	const ms, lease = time.Millisecond, 15 * time.Second
	for _, c := range []struct {
		name      string
		replies   [5]time.Duration
		ttl, left time.Duration
		want      time.Duration
	}{
		{"nothing known", [5]time.Duration{}, lease, lease, 200 * ms},
		{"fast replies", [5]time.Duration{ms, 2 * ms, ms}, lease, lease, 200 * ms},
		{"four times the slowest", [5]time.Duration{ms, 100 * ms, ms}, lease, lease, 400 * ms},
		{"never more than a fifth", [5]time.Duration{time.Second}, lease, lease, 3 * time.Second},
		{"a fifth of a short lease", [5]time.Duration{}, 500 * ms, 500 * ms, 100 * ms},
		{"half of what is left", [5]time.Duration{}, lease, 300 * ms, 150 * ms},
		{"the last attempts", [5]time.Duration{}, lease, 12 * ms, 10 * ms},
		{"no end known", [5]time.Duration{}, lease, math.MaxInt64, 200 * ms},
	} {
		p := pulse{replies: c.replies}
		if got := p.timeout(c.ttl, c.left); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestAttemptsGrowUpToAStoreThatHasBecomeSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pulse{world: world.From(t.Context())}
		attempts := 0
		for err := context.DeadlineExceeded; err != nil; attempts++ {
			err = p.ask(t.Context(), p.timeout(15*time.Second, 13*time.Second), func(ctx context.Context) error {
				if !world.Rest(ctx, 2*time.Second, nil) {
					return ctx.Err()
				}
				return nil
			})
		}
		if attempts != 3 { // 200 ms, 800 ms, 3 s
			t.Errorf("%d attempts", attempts)
		}
		for range 5 { // a fast refusal is no reply
			_ = p.ask(t.Context(), time.Second, func(context.Context) error { return errors.New("refused") })
		}
		if got := p.timeout(15*time.Second, 13*time.Second); got != 3*time.Second {
			t.Errorf("next attempt %v", got)
		}
		for range 5 { // the slow ones are forgotten
			_ = p.ask(t.Context(), time.Second, func(context.Context) error { return store.ErrLost })
		}
		if got := p.timeout(15*time.Second, 13*time.Second); got != shortAttempt {
			t.Errorf("next attempt %v", got)
		}
	})
}

func TestPausesGrowAndStartAnew(t *testing.T) {
	p := pulse{world: world.From(t.Context())}
	for _, most := range []time.Duration{50, 100, 200, 200, 200} {
		most *= time.Millisecond
		if got := p.retry(longPause); got < most/2 || got >= most {
			t.Errorf("pause %v, want %v to %v", got, most/2, most)
		}
	}
	_ = p.ask(t.Context(), time.Second, func(context.Context) error { return nil })
	if got := p.retry(longPause); got >= firstPause {
		t.Errorf("pause %v after an answer", got)
	}
}

func TestAnswered(t *testing.T) {
	for _, err := range []error{nil, store.ErrLost, store.ErrEnded, store.ErrNoLeader, &store.HeldError{}} {
		if !answered(err) {
			t.Errorf("%v is an answer", err)
		}
	}
	for _, err := range []error{context.DeadlineExceeded, errors.New("reset"), store.Permanent("remedy", nil)} {
		if answered(err) {
			t.Errorf("%v is no answer", err)
		}
	}
}

func BenchmarkBeat(b *testing.B) {
	w := world.From(b.Context())
	l := lifetime.New(b.Context(), w.Now(), time.Hour, ErrExpired)
	defer l.End(ErrExpired)
	p := pulse{world: w}
	ctx, stop := context.WithCancel(b.Context())
	b.ReportAllocs()
	_ = p.beat(ctx, l, time.Hour, 0, func(ctx context.Context, sent world.Instant) (time.Duration, error) {
		if !b.Loop() {
			stop()
		}
		l.Extend(sent, time.Hour)
		return 600, nil // the next one is due at once
	})
}
