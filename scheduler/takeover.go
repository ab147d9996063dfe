package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

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
	marker, err := b.read(ctx, bucketLedger)
	if err != nil {
		return err
	}
	for _, m := range marker {
		if err := decode(m.Value, new(markerRecord)); err != nil {
			return err
		}
	}
	for _, r := range seen {
		rec := new(seenRecord)
		if err := decode(r.Value, rec); err != nil && errors.Is(err, errVersion) {
			return err
		}
		b.seen[r.Key] = rec.At
	}

	var lost *recall
	if l.scheduler.memory.lost(at) {
		lost = l.scheduler.memory.all() // what it has not told the store yet must outlive this term
		b.log.Error("the store has lost records; restoring what this replica remembers", "remembered_token", lost.Token,
			"remembered_number", lost.Number, "found_token", at.token, "found_number", at.number)
	}
	if len(marker) == 0 {
		if jobs, runs, err = l.found(ctx, lost, jobs, runs); err != nil {
			return err
		}
	}
	if err := b.load(jobs, runs); err != nil {
		return err
	}
	l.recognise()
	if lost == nil {
		l.scheduler.memory.reset(at, jobs, runs)
	} else {
		l.scheduler.memory.fill(jobs)
	}
	now := l.now()
	if len(marker) == 0 {
		// The records first, the marker last: a ledger without a marker is one whose making was cut short.
		for _, j := range b.sorted() {
			if err := b.step(); err != nil {
				return err
			}
			b.putJob(j)
		}
		for _, id := range slices.Sorted(maps.Keys(b.runs)) {
			if err := b.step(); err != nil {
				return err
			}
			b.put(bucketRun, id, b.runs[id])
		}
		if err := l.adopt(now); err != nil {
			return err
		}
		if err := b.flush(); err != nil {
			return err
		}
		b.put(bucketLedger, markerKey, markerRecord{Version: formatVersion, Created: now})
		if err := b.flush(); err != nil {
			return err
		}
		return l.lookAround(ctx)
	}
	if lost != nil {
		if err := l.restore(lost, now); err != nil {
			return err
		}
		if err := l.restoreRuns(lost); err != nil {
			return err
		}
	}
	if err := l.takeReports(ctx, now); err != nil {
		return err
	}
	if err := l.apply(ctx, inbox); err != nil {
		return err
	}
	return l.judgeRuns(ctx)
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
	for {
		attempt, cancel := context.WithTimeout(ctx, attemptTime(l.term.Lease().TTL))
		err := call(attempt)
		cancel()
		if err == nil || definite(err) {
			return err
		}
		if !pause(ctx, l.scheduler.world.Between(retryMin, retryMax)) {
			return context.Cause(ctx)
		}
	}
}

// found waits, where there is no ledger, for what other replicas may remember of one: those who have led look at the
// ledger's position at least every half lease. It returns the records of the new ledger.
func (l *leader) found(ctx context.Context, lost *recall, jobs, runs []store.Record) (newJobs, newRuns []store.Record, err error) {
	b := l.book
	all := &recall{Jobs: make(map[string]json.RawMessage), Runs: make(map[string]json.RawMessage)}
	for _, r := range jobs {
		all.Jobs[r.Key] = r.Value
	}
	for _, r := range runs {
		all.Runs[r.Key] = r.Value
	}
	if lost != nil {
		all.merge(lost)
	}
	wait := l.longestLease(ctx) + time.Second
	b.log.Info("no ledger found; waiting for replicas that remember one", "wait", wait)
	for end := time.Now().Add(wait); ; {
		l.scheduler.progress()
		l.scheduler.inbox.Store(false)
		inbox, err := b.read(ctx, store.InboxBucket)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range inbox {
			if m, err := decodeMessage(r.Value); err == nil && m.Kind == kindMemory {
				all.merge(m.Memory)
			}
		}
		left := time.Until(end)
		if left <= 0 {
			break
		}
		if !l.doze(ctx, min(left, l.lookEvery())) {
			return nil, nil, context.Cause(ctx)
		}
	}
	return records(all.Jobs), records(all.Runs), nil
}

func records(from map[string]json.RawMessage) []store.Record {
	var all []store.Record
	for _, k := range slices.Sorted(maps.Keys(from)) {
		all = append(all, store.Record{Key: k, Value: from[k]})
	}
	return all
}

// longestLease returns the longest lease of the replicas that are alive.
func (l *leader) longestLease(ctx context.Context) time.Duration {
	longest := l.term.Lease().TTL
	var replicas []store.Replica
	err := l.ask(ctx, func(ctx context.Context) (err error) {
		replicas, err = l.book.store.Replicas(ctx, l.book.group)
		return err
	})
	if err != nil {
		return longest
	}
	for _, r := range replicas {
		longest = max(longest, min(readInfo(r.Info).lease(), time.Hour))
	}
	return longest
}

// skipRestored is the reason of ticks that were dealt with before the store lost their records.
const skipRestored = "restored"

// restore raises the watermarks of an existing ledger to those of a memory that knows more, and where this leader's own
// memory is newer than the ledger, brings back the open runs: they come back only to be closed.
func (l *leader) restore(from *recall, now time.Time) error {
	b := l.book
	for _, name := range slices.Sorted(maps.Keys(from.Jobs)) {
		theirs := new(jobRecord)
		if decode(from.Jobs[name], theirs) != nil || store.CheckName("job", name) != nil {
			continue
		}
		if err := b.step(); err != nil {
			return err
		}
		j := b.jobs[name]
		switch {
		case j == nil:
			j = &jobState{name: name, record: *theirs, index: -1}
			b.jobs[name] = j
			b.putJob(j)
		case j.problem != nil || j.record.Watermark >= theirs.Watermark:
			continue
		default:
			r := row{first: j.record.watermark().Add(time.Second), last: theirs.watermark(), reason: skipRestored}
			if table, err := j.record.table(); err == nil {
				if r.ticks = table.count(j.record.watermark(), r.last); r.ticks > 0 {
					r.first = table.next(j.record.watermark())
				}
			}
			j.record.Sequence = max(j.record.Sequence, theirs.Sequence)
			j.record.Row = nil
			b.skip(j, r, now)
		}
		l.revisit(j)
	}
	return b.flush()
}

// restoreRuns replaces the open runs of a ledger that has gone back by those of a newer memory.
func (l *leader) restoreRuns(from *recall) error {
	b := l.book
	for _, id := range slices.Sorted(maps.Keys(from.Runs)) {
		rec, err := decodeRun(store.Record{Key: id, Value: from.Runs[id]})
		if err != nil || b.runs[id] != nil {
			continue
		}
		if err := b.step(); err != nil {
			return err
		}
		b.runs[id] = rec
		b.put(bucketRun, id, rec)
		if j := b.jobs[rec.Job]; j != nil {
			j.open++
		}
	}
	for _, id := range slices.Sorted(maps.Keys(b.runs)) {
		if _, open := from.Runs[id]; open {
			continue
		}
		if err := b.step(); err != nil {
			return err
		}
		b.closeRun(b.jobs[b.runs[id].Job], b.runs[id], time.Time{})
	}
	return b.flush()
}
