package scheduler

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// maxInterrupts is how many attempts of a tick may be interrupted: a job that kills its process must not go through all
// replicas.
const maxInterrupts = 3

// notAgain begins why no attempt follows one that has not succeeded, in its entry.
const notAgain = "not run again: "

const (
	olderThanWindow = "older than the window"
	lostLater       = "the store has lost what came after it"
)

// rerunDelay is how long the attempt after the nth interruption waits.
func rerunDelay(n int) time.Duration { return time.Second << (n - 1) }

// end brings the end of an attempt into the ledger. An end closes a run only if the run still has that claim; the first
// outcome stands.
func (b *book) end(ctx context.Context, e Entry, now time.Time) error {
	// The clock of its replica may be days ahead, and nothing of the job starts that was due before the end.
	e.Ended = earlier(e.Ended, now)
	e.Started = earlier(e.Started, e.Ended)
	j, rec := b.jobs[e.Job], b.runs[e.RunID]
	ours := rec != nil && !rec.waits() && rec.Token == e.Token && rec.Number == e.Number
	switch {
	case j == nil || j.problem != nil:
		b.log.Error("end of a run cannot be recorded: the record of its job is missing or cannot be read", "job", e.Job,
			"tick", e.Tick, "attempt", e.Attempt, "outcome", string(e.Outcome))
		if ours {
			b.closeRun(j, rec, e.Ended)
		}
		return nil
	case !ours:
		return b.lateEnd(ctx, j, rec, e, now)
	}
	e.Attempt, e.Reason, e.Replica = rec.Attempt, rec.Reason, rec.Replica
	if e.Outcome == Cancelled && rec.Cancel != nil {
		e.Detail = clip(strings.TrimSuffix(rec.Cancel.String()+": "+e.Detail, ": "), maxDetail)
	}
	switch e.Outcome {
	case NotStarted:
		b.notStarted(j, rec, e, now)
	case Interrupted:
		b.interrupted(j, rec, e, e.Ended, now)
	case Failed, TimedOut:
		b.failed(j, rec, e, now)
	default:
		b.enter(j, e)
		b.closeRun(j, rec, e.Ended)
	}
	return nil
}

// notStarted records an attempt that has done nothing, and lets the run wait for another.
func (b *book) notStarted(j *jobState, rec *runRecord, e Entry, now time.Time) {
	why := rec.last()
	if why != "" {
		e.Detail = notAgain + why
	}
	b.enter(j, e)
	if why != "" {
		b.closeRun(j, rec, now)
		return
	}
	b.wait(rec, now)
}

// interrupted records an attempt whose end is not known, and lets the run wait for another where the job wants it.
func (b *book) interrupted(j *jobState, rec *runRecord, e Entry, until, now time.Time) {
	rec.Interrupts++
	again := j.def == nil || j.def.OnInterrupt == InterruptRerun
	why := rec.last()
	switch {
	case why != "" || !again:
	case j.def == nil:
		why = "the leader does not have the job"
	case rec.Interrupts >= maxInterrupts:
		why = "its third interruption"
	}
	if why != "" {
		again = false
		e.Detail = strings.TrimPrefix(e.Detail+"; "+notAgain+why, "; ")
	}
	b.enter(j, e)
	b.log.Warn("run interrupted", "job", e.Job, "tick", e.Tick, "attempt", e.Attempt, "replica", e.Replica, "rerun", again)
	if !again {
		b.closeRun(j, rec, until)
		return
	}
	rec.Reason = ReasonRerun
	b.wait(rec, now.Add(rerunDelay(rec.Interrupts)))
}

// endedLate begins what became known of an attempt after its outcome stood.
const endedLate = "ended late: "

// lateEnd keeps an end whose run has another claim by now, or none.
func (b *book) lateEnd(ctx context.Context, j *jobState, rec *runRecord, e Entry, now time.Time) error {
	known, slot, err := b.find(ctx, j.name, func(h *Entry) bool {
		return h.RunID == e.RunID && h.Token == e.Token && h.Number == e.Number
	})
	if err != nil {
		return err
	}
	switch {
	case known == nil && e.Outcome == NotStarted:
		return nil // the ledger has never heard of the claim, and nothing was done
	case known == nil:
		e.Note = "the ledger did not know this attempt when its end came"
		b.enter(j, e)
	case strings.Contains(known.Note, endedLate) || known.Outcome == e.Outcome:
		return nil // told twice
	default:
		what := fmt.Sprintf("%s%s at %s; %s", endedLate, e.Outcome, e.Ended.UTC().Format(time.RFC3339), e.Detail)
		b.amend(j, known, slot, strings.TrimPrefix(known.Note+"; "+strings.TrimSuffix(what, "; "), "; "))
	}
	if rec == nil || e.Outcome != Succeeded {
		return nil
	}
	// A run that is known to have succeeded is not run again.
	if rec.waits() {
		b.sum(rec, e)
		b.closeRun(j, rec, now)
	} else {
		rec.Succeeded = true
		b.put(bucketRun, rec.id(), rec)
	}
	return nil
}

// giveUp closes a run that waits for its next attempt, and says why in the entry of its last one.
func (b *book) giveUp(ctx context.Context, j *jobState, rec *runRecord, why string, now time.Time) error {
	b.log.Warn("run is not run again", "job", rec.Job, "tick", rec.tick(), "reason", why)
	if j != nil && j.problem == nil {
		last, slot, err := b.find(ctx, j.name, func(h *Entry) bool { return h.RunID == rec.id() && h.Attempt == rec.Attempt-1 })
		if err != nil {
			return err
		}
		if last != nil {
			b.amend(j, last, slot, strings.TrimPrefix(last.Note+"; "+notAgain+why, "; "))
			b.sum(rec, *last)
		}
	}
	b.closeRun(j, rec, now)
	return nil
}

// amend adds what has become known to an entry, in the slot where it stands: the ring may have had another size then.
func (b *book) amend(j *jobState, e *Entry, slot, note string) {
	e.Note = clip(note, maxDetail)
	b.put(historyBucket(j.name), slot, historyRecord{formatVersion, *e})
	if last := j.record.Last; last != nil && last.Sequence == e.Sequence {
		last.Note = clip(note, maxSummary)
		b.putJob(j)
	}
}

// find returns the first entry in the history of a job that is wanted, and its slot, or nil.
func (b *book) find(ctx context.Context, job string, wanted func(*Entry) bool) (e *Entry, slot string, err error) {
	if err := b.flush(); err != nil {
		return nil, "", err
	}
	records, err := b.read(ctx, historyBucket(job))
	if err != nil {
		return nil, "", err
	}
	for _, r := range records {
		if e, err := decodeEntry(job, r); err == nil && wanted(e) {
			return e, r.Key, nil
		}
	}
	return nil, "", nil
}
