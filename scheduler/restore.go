package scheduler

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/go-singleton/singleton/store"
)

// skipRestored is the reason of ticks that were dealt with before the store lost their records.
const skipRestored = "restored"

// restore brings into an existing ledger what a memory knows more: later watermarks, and claims.
func (l *leader) restore(ctx context.Context, from *recall, now time.Time) error {
	b := l.book
	for _, name := range slices.Sorted(maps.Keys(from.Jobs)) {
		theirs, err := decodeJob(store.Record{Key: name, Value: from.Jobs[name]})
		if err != nil {
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
			l.raise(j, theirs, now)
		}
		l.revisit(j)
	}
	if err := l.restoreClaims(ctx, from); err != nil {
		return err
	}
	return l.closeEnded(from, now)
}

// raise passes over the ticks that another record of the job says were dealt with.
func (l *leader) raise(j *jobState, to *jobRecord, now time.Time) {
	from, until := j.record.watermark(), to.watermark()
	j.record.Sequence = max(j.record.Sequence, to.Sequence)
	j.record.Row = nil
	passed := row{first: from.Add(time.Second), last: until, reason: skipRestored}
	if table := j.table(); table != nil {
		if passed.last = table.newest(from, until); !passed.last.IsZero() {
			passed.first, passed.ticks = table.next(from), table.count(from, until)
		}
	}
	if passed.last.After(from) {
		l.book.skip(j, passed, now)
	}
	j.record.Watermark = to.Watermark
	l.book.putJob(j)
}

// restoreClaims brings back the open runs that were claimed after the ledger that this leader has found: their claims were
// lost, and they come back only to be closed. One whose end has come already stands in history.
func (l *leader) restoreClaims(ctx context.Context, from *recall) error {
	b := l.book
	for _, id := range slices.Sorted(maps.Keys(from.Runs)) {
		rec, err := decodeRun(store.Record{Key: id, Value: from.Runs[id]})
		if err != nil || rec.waits() || !l.found.before(rec.claimed()) || l.claimedNow(id) {
			continue
		}
		ended, _, err := b.find(ctx, rec.Job, func(h *Entry) bool {
			return h.RunID == id && h.Token == rec.Token && h.Number == rec.Number
		})
		if err != nil {
			return err
		}
		if ended != nil {
			continue
		}
		if err := b.step(); err != nil {
			return err
		}
		if j := b.jobs[rec.Job]; j != nil && b.runs[id] == nil {
			j.open++
		}
		b.runs[id] = rec
		b.put(bucketRun, id, rec)
	}
	return b.flush()
}

// closeEnded closes the open runs of which a memory, which is newer than the ledger, says that they had ended. Who executed
// them can tell how; where nobody can, they do not wait for an end that was lost, and are not run again.
func (l *leader) closeEnded(from *recall, now time.Time) error {
	b := l.book
	if !from.Whole || !l.found.before(from.position()) {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(b.runs)) {
		rec := b.runs[id]
		_, open := from.Runs[id]
		_, ended := l.scheduler.runner.owns(rec.claim())
		known := open || ended || from.position().before(rec.claimed()) || l.claimedNow(id)
		if known || l.scheduler.runner.again(rec.claim()) || l.alive[rec.Replica] {
			continue
		}
		if err := b.step(); err != nil {
			return err
		}
		j := b.jobs[rec.Job]
		if j != nil && j.problem == nil {
			e := entryOf(rec)
			e.Ended, e.Outcome, e.Detail = now, Interrupted, "the store has lost its end; not run again"
			b.enter(j, e)
		}
		b.closeRun(j, rec, time.Time{})
	}
	return b.flush()
}

// claimedNow reports whether the open run of that ID was claimed in this term.
func (l *leader) claimedNow(id string) bool {
	rec := l.book.runs[id]
	return rec != nil && rec.Token == l.term.Token()
}
