package election

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// How long one attempt may take, and the pause after one that failed.
const (
	shortAttempt = 200 * time.Millisecond // at least, where the lease allows it
	lastAttempt  = 10 * time.Millisecond  // at least, however little is left
	firstPause   = 50 * time.Millisecond
	longPause    = 200 * time.Millisecond
)

// pulse asks the store again and again: it knows how long an attempt may take and when the next one is due. It belongs
// to one goroutine.
type pulse struct {
	world   *world.World
	replies [5]time.Duration // how long the last ones took, a ring
	oldest  int
	pause   time.Duration // after the last failure; 0 after an answer
	trouble trouble
}

// timeout returns how long one attempt may take while a lease or session of ttl has left before it ends. Four times the
// slowest of the last replies is enough for one that comes at all; the other bounds leave room for more attempts.
func (p *pulse) timeout(ttl, left time.Duration) time.Duration {
	d := min(max(shortAttempt, 4*slices.Max(p.replies[:])), ttl/5)
	return min(d, max(left/2, lastAttempt))
}

// interval returns how often a grant of ttl is asked for again: a third of the time until its deadline, which is a little
// less than a third of ttl. A follower that looks when the lease would end then finds it renewed, though three timers
// were late, and sleeps for a whole lease again; else each would ask three times in two leases.
func interval(ttl time.Duration) time.Duration { return (ttl - lifetime.Drift(ttl)) / 3 }

// retry returns how long to wait after an attempt without an answer: a random part of a pause that doubles up to most.
func (p *pulse) retry(most time.Duration) time.Duration {
	p.pause = min(max(2*p.pause, firstPause), most)
	return p.world.Between(p.pause/2, p.pause)
}

// ask makes one attempt of at most limit. An answer, also a refusal, ends the series of failures.
func (p *pulse) ask(ctx context.Context, limit time.Duration, call func(context.Context) error) error {
	attempt, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	sent := time.Now()
	err := call(attempt)
	// An attempt that ran out counts as a reply that took so long: otherwise the attempts would never grow up to a store
	// that has become slow.
	if answered(err) || attempt.Err() == context.DeadlineExceeded {
		p.replies[p.oldest] = time.Since(sent)
		p.oldest = (p.oldest + 1) % len(p.replies)
	}
	if answered(err) {
		p.pause = 0
		p.trouble.answered()
	} else if ctx.Err() == nil {
		p.trouble.unanswered(err)
	}
	return err
}

// beat asks every interval of what was granted, for the first time after wait, and sooner after an attempt without an
// answer or when life is suspect. It returns the refusal that ended it, or nil when ctx has ended.
func (p *pulse) beat(ctx context.Context, life *lifetime.Lifetime, ttl, wait time.Duration, call extension) (refusal error) {
	for refusal == nil && world.Rest(ctx, wait, life.Suspect()) {
		apart(func() { ttl, wait, refusal = p.extend(ctx, life, ttl, call) })
	}
	return refusal
}

// extension asks the store to go on granting something; sent is when.
type extension func(ctx context.Context, sent world.Instant) (granted time.Duration, err error)

// extend makes one attempt to have what life stands for granted again, which was granted for ttl. It returns for how long
// it is granted now, how long to wait before the next attempt, and the refusal if there was one. A permanent fault is no
// refusal: what was granted lives until its deadline.
func (p *pulse) extend(ctx context.Context, life *lifetime.Lifetime, ttl time.Duration, call extension) (granted, wait time.Duration, refusal error) {
	sent := p.world.Now()
	err := p.ask(ctx, p.timeout(ttl, life.Patience()), func(ctx context.Context) (err error) {
		granted, err = call(ctx, sent)
		return err
	})
	switch {
	case err == nil:
		elapsed, _ := p.world.Since(sent)
		return granted, interval(granted) - elapsed, nil
	case answered(err):
		return ttl, 0, err
	default:
		return ttl, p.retry(longPause), nil
	}
}

// answered reports whether the store has said yes or no, so that the outcome of the call is known. A permanent fault is
// no answer: it may be mended while the lease lasts.
func answered(err error) bool {
	return err == nil || store.Definite(err) && !errors.Is(err, store.ErrPermanent)
}
