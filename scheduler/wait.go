package scheduler

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// Wait returns once the leader has done what was asked, and for a trigger once its run has ended: with its last attempt,
// however that has ended; with Retry or InterruptRerun attempts may follow each other for long. Other requests have an empty
// entry. ErrRefused: the leader has not done it, and says why. store.ErrNoLeader: nobody has led for as long as the longest
// lease of the replicas (5 s where there are none); the request still waits for a leader, and Wait may be called again.
// ErrNoAnswer: nobody will answer any more. It ends with ctx, too. A job that waits for a run of its own waits for itself.
func (r *Request) Wait(ctx context.Context) (Entry, error) { return r.follow(ctx, true) }

// Accepted is Wait, but returns for a trigger once its run is in the ledger: with the run as far as it is known.
func (r *Request) Accepted(ctx context.Context) (Entry, error) { return r.follow(ctx, false) }

// How often the answer to a request is looked for: soon at first, then less and less often.
const (
	lookMin   = 20 * time.Millisecond
	lookMax   = time.Second
	lookLimit = 5 * time.Second // of one look
	searches  = 5 * time.Second // how often to see whether the request itself is still there

	nobodyThere = 5 * time.Second // how long to wait for a leader of a group without replicas
)

// waiting is one wait for an answer.
type waiting struct {
	*Request
	end        bool      // of the run of a trigger
	leaderless time.Time // since when nobody leads; zero while somebody does
	patience   time.Duration
	accepted   bool      // its run was open when the answers were read last
	searched   time.Time // when the request itself was looked for last
}

func (r *Request) follow(ctx context.Context, end bool) (Entry, error) {
	w := &waiting{Request: r, end: end, searched: time.Now()}
	random := world.From(ctx)
	for every := lookMin; ; every = min(every*3/2, lookMax) {
		look, cancel := context.WithTimeout(ctx, lookLimit)
		e, over, err := w.look(look)
		cancel()
		if over {
			return e, err
		}
		if !world.Rest(ctx, random.Between(every/2, every), nil) {
			return e, fmt.Errorf("scheduler: waiting for the answer to request %s: %w", r.ID, context.Cause(ctx))
		}
	}
}

// look asks the store once; over reports that there is nothing more to wait for. What the store does not say now it may
// say later.
//
// A request goes from the inbox to the open runs, and from there to the answers, each time in one step. So it is lost when
// it is not found where it was, and the answers, read after that, say no more of it than before.
func (w *waiting) look(ctx context.Context) (e Entry, over bool, err error) {
	i := w.inspector
	gone, was := false, w.accepted
	if time.Since(w.searched) >= searches {
		there, err := w.search(ctx)
		if err != nil {
			return e, false, err
		}
		gone, w.searched = !there, time.Now()
	}
	answers, err := i.answers(ctx, gone)
	if err != nil {
		return e, errors.Is(err, store.ErrPermanent), err
	}
	value, known := answers[w.ID]
	if known {
		rec, err := decodeSeen(value)
		if err != nil {
			return e, true, fmt.Errorf("%w: that of %s cannot be read: %w", ErrNoAnswer, w.ID, err)
		}
		e, err = rec.reply()
		if rec.final() || !w.end {
			return e, true, err
		}
	}
	w.accepted = known
	if gone && known == was {
		return e, true, fmt.Errorf("%w: %s is unknown, or the store has lost it", ErrNoAnswer, w.ID)
	}
	if err := w.lead(ctx); err != nil {
		return e, true, err
	}
	return e, false, nil
}

// lead returns an error when nobody has led for as long as a lease lasts.
func (w *waiting) lead(ctx context.Context) error {
	i := w.inspector
	_, err := i.store.Leader(ctx, i.group)
	switch {
	case err == nil:
		w.leaderless = time.Time{}
		return nil
	case !errors.Is(err, store.ErrNoLeader):
		return nil // it is not known
	case w.leaderless.IsZero():
		w.leaderless, w.patience = time.Now(), nobodyThere
		replicas, err := i.store.Replicas(ctx, i.group)
		if err == nil && len(replicas) > 0 {
			w.patience = min(longest(replicas), time.Hour)
		}
		return nil
	case time.Since(w.leaderless) < w.patience:
		return nil
	}
	return fmt.Errorf("scheduler: nobody has led %s for %v; request %s waits for a leader for half an hour: %w",
		i.group, w.patience, w.ID, err)
}

// search reports whether the request lies in the inbox, or its run is open. One that was accepted is not in the inbox.
func (w *waiting) search(ctx context.Context) (bool, error) {
	i := w.inspector
	bucket := store.InboxBucket
	if w.accepted {
		bucket = bucketRun
	}
	for r, err := range i.store.Read(ctx, i.group, nil, bucket) {
		if err != nil {
			return false, err
		}
		if strings.HasSuffix(r.Key, w.ID) {
			return true, nil
		}
	}
	return false, nil
}

// lookout lets all who wait for answers at the same time share one look at the store.
type lookout struct {
	mu     sync.Mutex
	flight *flight // that goes on, or nil
}

type flight struct {
	done    chan struct{} // closed when the rest is there
	answers map[string][]byte
	err     error
}

// answers returns what became of the messages of the last hour, by their IDs. One look may have begun before the call,
// unless the answers are to be fresh.
func (i *Inspector) answers(ctx context.Context, fresh bool) (map[string][]byte, error) {
	for {
		i.lookout.mu.Lock()
		f := i.lookout.flight
		if f == nil {
			f = &flight{done: make(chan struct{})}
			i.lookout.flight = f
			i.lookout.mu.Unlock()
			return i.fly(ctx, f)
		}
		i.lookout.mu.Unlock()
		select {
		case <-f.done:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if !fresh {
			return f.answers, f.err
		}
		fresh = false // the next one begins now
	}
}

// fly reads the answers for all who wait for them.
func (i *Inspector) fly(ctx context.Context, f *flight) (map[string][]byte, error) {
	f.answers = make(map[string][]byte)
	for r, err := range i.store.Read(ctx, i.group, nil, bucketSeen) {
		if err != nil {
			f.err = err
			break
		}
		f.answers[r.Key] = r.Value
	}
	i.lookout.mu.Lock()
	i.lookout.flight = nil
	i.lookout.mu.Unlock()
	close(f.done)
	return f.answers, f.err
}
