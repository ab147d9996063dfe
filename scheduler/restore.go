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
		case j.problem != nil:
			continue
		default:
			if s := newer(j.record.Steering, theirs.Steering); s != j.record.Steering {
				j.record.Steering = s
				b.putJob(j)
			}
			if j.record.Watermark < theirs.Watermark {
				l.raise(j, theirs, now)
			}
		}
		l.revisit(j)
	}
	if err := l.restoreGroup(from); err != nil {
		return err
	}
	if err := l.restoreClaims(ctx, from); err != nil {
		return err
	}
	return l.closeEnded(ctx, from, now)
}

// restoreGroup brings back what is known of the group as a whole, and that requests were acted on.
func (l *leader) restoreGroup(from *recall) error {
	b := l.book
	if rec, err := decodeGroup(from.Group); err == nil {
		if s := newer(&b.pause, &rec.Steering); *s != b.pause {
			b.pause = *s
			b.putGroup()
			for _, j := range b.sorted() {
				l.revisit(j)
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(from.Asked)) {
		rec, err := decodeSeen(from.Asked[id])
		if _, known := b.seen[id]; known || err != nil || rec.Verb == "" {
			continue
		}
		if err := b.step(); err != nil {
			return err
		}
		b.seen[id] = rec.At
		b.put(bucketSeen, id, rec)
		if b.asked != nil {
			b.asked[id] = from.Asked[id]
		}
	}
	return nil
}

// raise passes over the ticks that another record of the job says were dealt with.
func (l *leader) raise(j *jobState, to *jobRecord, now time.Time) {
	j.record.Sequence = max(j.record.Sequence, to.Sequence)
	j.record.Row = nil
	l.pass(j, to.watermark(), skipRestored, now)
}

// restoreClaims brings back the open runs that were claimed after the ledger that this leader has found: their claims were
// lost, and they come back only to be closed. One whose end has come already stands in history. A run that has failed since
// waits for the attempt that the memory says, so that none is claimed again.
func (l *leader) restoreClaims(ctx context.Context, from *recall) error {
	b := l.book
	for _, id := range slices.Sorted(maps.Keys(from.Runs)) {
		rec, err := decodeRun(store.Record{Key: id, Value: from.Runs[id]})
		if err != nil || l.claimedNow(id) {
			continue
		}
		if rec.waits() {
			if old := b.runs[id]; old == nil || old.Attempt >= rec.Attempt || !l.found.before(from.position()) {
				continue
			}
		} else {
			if !l.found.before(rec.claimed()) {
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
// them can tell how, but perhaps of an attempt that others have followed: none follows now. Where nobody can, they do not
// wait for an end that was lost.
func (l *leader) closeEnded(ctx context.Context, from *recall, now time.Time) error {
	b := l.book
	if !from.Whole || !l.found.before(from.position()) {
		return nil
	}
	for _, id := range slices.Sorted(maps.Keys(b.runs)) {
		rec := b.runs[id]
		if _, open := from.Runs[id]; open || from.position().before(rec.claimed()) || l.claimedNow(id) {
			continue
		}
		if err := b.step(); err != nil {
			return err
		}
		j := b.jobs[rec.Job]
		_, ended := l.scheduler.runner.owns(rec.claim())
		switch {
		case rec.waits():
			if err := b.giveUp(ctx, j, rec, lostLater, now); err != nil {
				return err
			}
		case ended || l.scheduler.runner.again(rec.claim()) || l.alive[rec.Replica]:
			rec.Lost = true
			b.put(bucketRun, id, rec)
		default:
			if j != nil && j.problem == nil {
				e := entryOf(rec)
				e.Ended, e.Outcome, e.Detail = now, Interrupted, "the store has lost its end; not run again"
				b.enter(j, e)
			}
			b.closeRun(j, rec, time.Time{})
		}
	}
	return b.flush()
}

// claimedNow reports whether the open run of that ID was claimed in this term.
func (l *leader) claimedNow(id string) bool {
	rec := l.book.runs[id]
	return rec != nil && rec.Token == l.term.Token()
}
