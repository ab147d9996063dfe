package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// takeOver rebuilds the book from the store, in an order that matters: sessions, then the inbox, then jobs and runs. A
// replica posts its last end before it leaves, so an end that is missing from the inbox belongs to a session that was
// still alive when the sessions were read.
func (l *leader) takeOver(ctx context.Context) error {
	b := l.book
	at, err := l.position(ctx)
	if err != nil {
		return err
	}
	l.found = at
	if err := l.lookSessions(ctx); err != nil {
		return err
	}
	l.scheduler.inbox.Store(false)
	inbox, err := b.read(ctx, store.InboxBucket)
	if err != nil {
		return err
	}
	seen, err := b.read(ctx, bucketSeen)
	if err != nil {
		return err
	}
	jobs, err := b.read(ctx, bucketJob)
	if err != nil {
		return err
	}
	runs, err := b.read(ctx, bucketRun)
	if err != nil {
		return err
	}
	group, marked, err := b.foundation(ctx)
	if err != nil {
		return err
	}
	for _, r := range seen {
		rec, err := decodeSeen(r.Value)
		switch {
		case errors.Is(err, errVersion):
			return err
		case err != nil:
			rec = &seenRecord{At: l.term.StoreTime().Unix()}
		case rec.Verb != "":
			b.asked[r.Key] = r.Value
		}
		b.seen[r.Key] = rec.At
	}

	var lost *recall
	if l.scheduler.memory.lost(at) {
		lost = l.scheduler.memory.all() // what it has not told the store yet must outlive this term
		b.log.Error("the store has lost records; restoring what this replica remembers", "remembered_token", lost.Token,
			"remembered_number", lost.Number, "found_token", at.token, "found_number", at.number)
	}
	if group != nil {
		b.pause = group.Steering
	}
	if !marked {
		all, err := l.gather(ctx, lost, jobs, runs)
		if err != nil {
			return err
		}
		jobs, runs, l.found = records(all.Jobs), records(all.Runs), all.position()
		if err := l.restoreGroup(all); err != nil {
			return err
		}
	}
	if err := b.load(jobs, runs); err != nil {
		return err
	}
	l.recognise()
	now := l.now()
	if !marked {
		err = l.write(now)
	} else if lost != nil {
		err = l.restore(ctx, lost, now)
	}
	if err != nil {
		return err
	}
	b.remember(at, l.scheduler.memory)
	if err := l.takeReports(ctx, now); err != nil {
		return err
	}
	if !marked { // much has happened since those reads
		return l.lookAround(ctx)
	}
	if err := l.apply(ctx, inbox); err != nil {
		return err
	}
	return l.judgeRuns(ctx)
}

// remember makes a replica's memory the book, which is what the store has from now on.
func (b *book) remember(read position, m *memory) {
	at := read
	if b.number > 0 {
		at = b.position()
	}
	r := newRecall(at)
	r.Whole = true
	r.Group = encode(groupRecord{Version: formatVersion, Steering: b.pause})
	r.Asked, b.asked = b.asked, nil
	for _, j := range b.sorted() {
		r.Jobs[j.name] = encode(&j.record)
	}
	for id, rec := range b.runs {
		r.Runs[id] = encode(rec)
	}
	m.reset(r)
	b.memory = m
}

// load makes the book what the store has. A record of another version ends the term; one that cannot be read is reported
// and left alone, and all others count.
func (b *book) load(jobs, runs []store.Record) error {
	for _, r := range jobs {
		rec, err := decodeJob(r)
		switch {
		case errors.Is(err, errVersion):
			return err
		case err != nil:
			b.log.Error("job is left alone: its record cannot be read; forget it to start anew", "job", r.Key, "error", err)
			b.jobs[r.Key] = &jobState{name: r.Key, problem: err, index: -1}
			continue
		}
		rec.Problem = ""
		b.jobs[r.Key] = &jobState{name: r.Key, record: *rec, index: -1}
	}
	for _, r := range runs {
		rec, err := decodeRun(r)
		switch {
		case errors.Is(err, errVersion):
			return err
		case err != nil:
			b.log.Error("run is left alone: its record cannot be read", "run", r.Key, "error", err)
			continue
		}
		b.runs[r.Key] = rec
		if j := b.jobs[rec.Job]; j != nil {
			j.open++
		}
	}
	return nil
}

func (b *book) sorted() []*jobState {
	all := make([]*jobState, 0, len(b.jobs))
	for _, name := range slices.Sorted(maps.Keys(b.jobs)) {
		if b.jobs[name].problem == nil {
			all = append(all, b.jobs[name])
		}
	}
	return all
}

// position reads how far the ledger has got.
func (l *leader) position(ctx context.Context) (position, error) {
	var at position
	err := l.ask(ctx, func(ctx context.Context) (err error) {
		at.token, at.number, err = l.book.store.Position(ctx, l.book.group)
		return err
	})
	return at, err
}

// ask calls the store until it has a definite answer or the term is over.
func (l *leader) ask(ctx context.Context, call func(context.Context) error) error {
	for first := true; ; first = false {
		attempt, cancel := context.WithTimeout(ctx, attemptTime(l.term.Lease().TTL))
		err := call(attempt)
		cancel()
		if err == nil || store.Definite(err) {
			return err
		}
		if first && ctx.Err() == nil {
			l.book.log.Warn("ledger is not to be had, asking again", "error", err)
		}
		if !world.Rest(ctx, l.scheduler.world.Between(retryMin, retryMax), nil) {
			return context.Cause(ctx)
		}
	}
}

// foundation reads what is known of the group as a whole, nil where that is nothing, and whether there is a ledger. A
// marker that cannot be read counts as none: what else there is is kept, and a new one is made once replicas that remember
// more had their time to say so.
func (b *book) foundation(ctx context.Context) (group *groupRecord, marked bool, err error) {
	records, err := b.read(ctx, bucketLedger)
	if err != nil {
		return nil, false, err
	}
	for _, r := range records {
		err = nil
		switch r.Key {
		case markerKey:
			err = decode(r.Value, new(markerRecord))
			marked = err == nil
		case groupKey:
			group, err = decodeGroup(r.Value)
		}
		if errors.Is(err, errVersion) {
			return nil, false, fmt.Errorf("record %s of bucket %s: %w", r.Key, bucketLedger, err)
		}
		if err != nil {
			b.log.Error("a record of the ledger cannot be read; another one is made", "bucket", bucketLedger, "key", r.Key, "error", err)
		}
	}
	return group, marked, nil
}
