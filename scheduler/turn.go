package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// turn is a short term that a Once has the lease for: it reads the ledger and makes one commit.
type turn struct {
	store store.Store
	lease store.Lease
	sent  world.Instant
	now   time.Time // the store's clock when the lease was granted
	book  *book
	alive map[string]bool // who has a session
}

// errTurn says that a turn was over before the store had answered; another one sees what has become of it.
var errTurn = errors.New("scheduler: no turn in time")

// take waits for a turn, calls f, and gives the turn up. What is not known after one turn is looked at in another. The log
// says once what it waits for, and what it wants.
func (p *participant) take(ctx context.Context, wants string, f func(context.Context, *turn) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, onceLimit, errTurn)
	defer cancel()
	began, told := time.Now(), false
	tells := func() bool {
		tell := !told && time.Since(began) >= onceQuiet
		told = told || tell
		return tell
	}
	log := p.Logger.With("wants", wants, "gives_up_after", onceLimit)
	var last error // what the store has said
	for {
		t, err := p.acquire(ctx, func(holder string) {
			if tells() {
				log.Warn("waiting for another replica that claims", "replica", holder)
			}
		})
		if err == nil {
			err = f(ctx, t)
			p.release(ctx, t.lease)
		}
		_, claimed := errors.AsType[*ClaimedError](err)
		switch {
		case err == nil || claimed || errors.Is(err, store.ErrPermanent) || errors.Is(err, ErrLed) || errors.Is(err, ErrNotOnce):
			return err
		case !errors.Is(err, errTurn) && !errors.Is(err, errUnknown) && !store.Definite(err) && ctx.Err() == nil:
			return err // of the ledger
		case last == nil || ctx.Err() == nil:
			last = err
		}
		if tells() {
			log.Warn("the store does not answer, trying again", "error", err)
		}
		if !world.Rest(ctx, p.world.Between(retryMin, retryMax), nil) {
			if cause := context.Cause(ctx); !errors.Is(cause, errTurn) {
				return cause
			}
			if errors.Is(last, errUnknown) {
				return last
			}
			return fmt.Errorf("%w: %w", errTurn, last)
		}
	}
}

// The pause between two looks whether it is one's turn: the others hold the lease for a few milliseconds each.
const (
	turnMin = 5 * time.Millisecond
	turnMax = 50 * time.Millisecond
)

// errUnknown is what an error of the store is, besides itself, that leaves open whether a call was done.
var errUnknown = errors.New("scheduler: not known")

type unknownError struct{ error }

// Unwrap returns both.
func (e unknownError) Unwrap() []error { return []error{errUnknown, e.error} }

// acquire asks for the lease until it is granted; meanwhile waits learns who has it. Somebody who has it for longer than a turn
// may take leads the group.
func (p *participant) acquire(ctx context.Context, waits func(holder string)) (*turn, error) {
	c := store.Candidate{Replica: store.Replica{ID: p.id}, Nonce: p.world.Secret(), TTL: onceLease, Session: onceLease}
	var holder store.Leader // as it was first seen, with the time
	var since time.Time
	for {
		c.Start = !p.started
		sent := p.world.Now()
		attempt, cancel := context.WithTimeout(ctx, onceAttempt)
		lease, err := p.store.Acquire(attempt, p.Group, c)
		cancel()
		held, isHeld := errors.AsType[*store.HeldError](err)
		p.started = p.started || err == nil || isHeld
		switch {
		case err == nil:
			return p.newTurn(lease, sent), nil
		case isHeld:
			if held.Leader.Token != holder.Token {
				holder, since = held.Leader, time.Now()
			}
			// A store may grant more than was asked for, but hardly twice as much; who is there when that is over renews.
			if held.Leader.Remaining > 2*onceLease || time.Since(since) > max(onceLease, holder.Remaining)+onceAttempt {
				return nil, fmt.Errorf("%w (%s does)", ErrLed, holder.Replica)
			}
			waits(holder.Replica)
		case errors.Is(err, store.ErrEnded):
			p.started = false // nothing lives on it
		case store.Definite(err):
			return nil, err
		default:
			p.release(ctx, store.Lease{Group: p.Group, Replica: p.id, Nonce: c.Nonce})
			return nil, unknownError{err}
		}
		if !world.Rest(ctx, p.world.Between(turnMin, turnMax), nil) {
			return nil, err
		}
	}
}

func (p *participant) newTurn(lease store.Lease, sent world.Instant) *turn {
	return &turn{
		store: p.store, lease: lease, sent: sent, now: lease.Time.UTC(),
		book: &book{
			store: p.store, group: p.Group, log: slog.New(slog.DiscardHandler), world: p.world, slots: p.Keep,
			jobs: make(map[string]*jobState), runs: make(map[string]*runRecord),
		},
	}
}

// release gives a lease up, also one that may have been granted without an answer.
func (p *participant) release(ctx context.Context, l store.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), onceAttempt)
	defer cancel()
	_ = p.store.Release(ctx, l) // it lapses otherwise
}

// over reports whether the lease may have ended.
func (t *turn) over() bool {
	elapsed, _ := t.book.world.Since(t.sent)
	return elapsed >= lifetime.Span(t.lease.TTL)
}

// load reads the ledger, and notes in the coming commit that there is one.
func (t *turn) load(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lifetime.Span(t.lease.TTL))
	defer cancel()
	replicas, err := t.store.Replicas(ctx, t.lease.Group)
	if err != nil {
		return unknown(err)
	}
	t.alive = make(map[string]bool, len(replicas))
	for _, r := range replicas {
		t.alive[r.ID] = true
	}
	buckets := make(map[string][]store.Record)
	for _, bucket := range []string{bucketJob, bucketRun, bucketLedger} {
		for r, err := range t.store.Read(ctx, t.lease.Group, &t.lease, bucket) {
			if err != nil {
				return unknown(err)
			}
			buckets[bucket] = append(buckets[bucket], r)
		}
	}
	if err := t.book.load(buckets[bucketJob], buckets[bucketRun]); err != nil {
		return err
	}
	if len(buckets[bucketLedger]) == 0 {
		t.book.put(bucketLedger, markerKey, markerRecord{Version: formatVersion, Created: t.now})
	}
	return nil
}

// commit brings the changes into the store; the first of a term has the number 1.
func (t *turn) commit(ctx context.Context) error {
	for !t.over() {
		attempt, cancel := context.WithTimeout(ctx, onceAttempt)
		err := t.store.Commit(attempt, t.lease, 1, t.book.batch.changes)
		cancel()
		if err == nil || store.Definite(err) {
			return err
		}
		if !world.Rest(ctx, t.book.world.Between(retryMin, retryMax), nil) {
			break
		}
	}
	return errTurn
}

// unknown marks an error of the store after which to ask again.
func unknown(err error) error {
	if store.Definite(err) {
		return err
	}
	return unknownError{err}
}

// onceClaim is the newest claim of a job that has no schedule.
type onceClaim struct {
	Run     string    `json:"run"` // its ID
	Replica string    `json:"replica"`
	At      time.Time `json:"at"` // by the store's clock
}

// check returns an error unless c can be a claim of the job: a store's data may come from anywhere.
func (c *onceClaim) check(job string) error {
	if err := store.CheckName("replica", c.Replica); err != nil {
		return err
	}
	if len(c.Run) > len(job)+64 {
		return fmt.Errorf("scheduler: claim of %s has impossible values", job)
	}
	return nil
}
