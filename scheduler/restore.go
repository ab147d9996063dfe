package scheduler

import (
	"maps"
	"slices"
	"time"

	"github.com/go-singleton/singleton/store"
)

// skipRestored is the reason of ticks that were dealt with before the store lost their records.
const skipRestored = "restored"

// restore raises the watermarks of an existing ledger to those of a memory that knows more.
func (l *leader) restore(from *recall, now time.Time) error {
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
	return b.flush()
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

// restoreRuns replaces the open runs of a ledger that has gone back by those of this leader's newer memory. They come back
// only to be closed, and those of which it knows that they had ended do not wait for an end that was lost.
func (l *leader) restoreRuns(from *recall, now time.Time) error {
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
		rec := b.runs[id]
		if _, open := from.Runs[id]; open || l.scheduler.runner.again(rec.claim()) {
			continue
		}
		if err := b.step(); err != nil {
			return err
		}
		j := b.jobs[rec.Job]
		if j != nil && j.problem == nil && !rec.waits() {
			e := entryOf(rec)
			e.Ended, e.Outcome, e.Detail = now, Interrupted, "the store has lost its end; not run again"
			b.enter(j, e)
		}
		b.closeRun(j, rec, time.Time{})
	}
	return b.flush()
}
