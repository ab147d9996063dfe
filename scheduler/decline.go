package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// withoutScheduler is why a request to a leader without a Scheduler is refused.
const withoutScheduler = "whoever leads this group runs no jobs: it can be asked to resign, and nothing else"

// Decline answers the requests to a leader that has an elector and no Scheduler: it resigns when it is asked to, and
// refuses all else, so that nobody waits in vain for an answer. Lead calls it once, in a goroutine of its own; nobody else
// commits in that term. It returns nil when ctx or the term has ended, and an error when no retry helps. A nil log is
// silent.
func Decline(ctx context.Context, st store.Store, e *election.Elector, term *election.Term, log *slog.Logger) error {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	d := &decliner{store: st, lease: term.Lease(), elector: e, term: term, log: log, news: make(chan struct{}, 1)}
	for ctx.Err() == nil && term.Valid() {
		rest := maxSleep
		if err := d.look(ctx); err != nil {
			if store.Definite(err) && !errors.Is(err, store.ErrLost) {
				return err
			}
			rest = world.From(ctx).Between(retryMin, retryMax)
		}
		world.Rest(ctx, rest, d.news)
	}
	return nil
}

// decliner is one call of Decline.
type decliner struct {
	store   store.Store
	lease   store.Lease
	elector *election.Elector
	term    *election.Term
	log     *slog.Logger
	news    chan struct{} // something may have come
	watched bool          // the store tells
	number  uint64        // of the last commit
}

// look answers what lies in the inbox. It leaves alone what is no request: that is for a Scheduler.
func (d *decliner) look(ctx context.Context) error {
	if err := d.watch(ctx); err != nil {
		return err
	}
	inbox, err := d.read(ctx, store.InboxBucket)
	if err != nil || len(inbox) == 0 {
		return err
	}
	seen, err := d.read(ctx, bucketSeen)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(inbox)) {
		m, err := decodeMessage(inbox[id])
		if err != nil || m.Kind != kindRequest {
			continue
		}
		if err := d.answer(ctx, id, m.Request, seen); err != nil {
			return err
		}
	}
	return nil
}

// answer acts on a request in the commit that takes it out of the inbox.
func (d *decliner) answer(ctx context.Context, id string, o *order, seen map[string][]byte) error {
	taken := store.Change{Bucket: store.InboxBucket, Key: id, Delete: true}
	if _, known := seen[id]; known {
		return d.commit(ctx, taken)
	}
	now := d.term.StoreTime()
	answer, why := answerDone, o.outdated(now)
	if why == "" && o.Verb != verbResign {
		why = withoutScheduler
	}
	if why != "" {
		answer = answerRefused + why
	}
	note := seenRecord{Version: formatVersion, At: now.Unix(), Verb: o.Verb, Answer: answer}
	changes := append(outgrown(seen, now), taken, store.Change{Bucket: bucketSeen, Key: id, Value: encode(note)})
	if err := d.commit(ctx, changes...); err != nil {
		return err
	}
	d.log.Info("request answered", "request", string(o.Verb), "id", id, "author", o.Author, "answer", answer)
	if why == "" {
		resign(d.elector)
	}
	return nil
}

// outgrown returns what drops the IDs of messages that were acted on long ago, as far as that fits into a commit with a few
// others, and takes them out of seen.
func outgrown(seen map[string][]byte, now time.Time) (changes []store.Change) {
	limit := now.Add(-keepSeen).Unix()
	for _, id := range slices.Sorted(maps.Keys(seen)) {
		if rec, err := decodeSeen(seen[id]); err == nil && rec.At < limit && len(changes) < store.MaxChanges-stepChanges {
			changes = append(changes, store.Change{Bucket: bucketSeen, Key: id, Delete: true})
			delete(seen, id)
		}
	}
	return changes
}

// watch asks the store to tell what comes.
func (d *decliner) watch(ctx context.Context) error {
	if d.watched {
		return nil
	}
	err := d.store.Watch(ctx, d.lease.Group, store.InboxFilled, func() {
		select {
		case d.news <- struct{}{}:
		default:
		}
	})
	d.watched = err == nil
	return err
}

// read returns the records of a bucket, by key.
func (d *decliner) read(ctx context.Context, bucket string) (map[string][]byte, error) {
	records := make(map[string][]byte)
	for r, err := range d.store.Read(ctx, d.lease.Group, &d.lease, bucket) {
		if err != nil {
			return nil, err
		}
		records[r.Key] = r.Value
	}
	return records, nil
}

// commit asks until there is a definite answer, or ctx has ended: then nothing follows in this term.
func (d *decliner) commit(ctx context.Context, changes ...store.Change) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, attemptTime(d.lease.TTL))
		err := d.store.Commit(attempt, d.lease, d.number+1, changes)
		cancel()
		switch {
		case err == nil:
			d.number++
			return nil
		case store.Definite(err):
			return err
		}
		w := world.From(ctx)
		if !world.Rest(ctx, w.Between(retryMin, retryMax), nil) {
			return err
		}
	}
}
