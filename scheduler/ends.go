package scheduler

import (
	"context"
	"strings"
	"time"
)

// maxInterrupts is how many attempts of a tick may be interrupted: a job that kills its process must not go through all
// replicas.
const maxInterrupts = 3

// rerunDelay is how long the attempt after the nth interruption waits.
func rerunDelay(n int) time.Duration { return time.Second << (n - 1) }

// end brings the end of an attempt into the ledger. An end closes a run only if the run still has that claim; the first
// outcome stands.
func (b *book) end(ctx context.Context, e Entry, now time.Time) error {
	j := b.jobs[e.Job]
	if j != nil && j.problem != nil {
		b.log.Error("end of a run cannot be recorded: the job's record cannot be read", "job", e.Job, "tick", e.Tick,
			"attempt", e.Attempt, "outcome", string(e.Outcome), "error", j.problem)
		if rec := b.runs[e.RunID]; rec != nil && rec.Token == e.Token && rec.Number == e.Number && e.Outcome != NotStarted {
			b.closeRun(j, rec, e.Ended)
		}
		return nil
	}
	rec := b.runs[e.RunID]
	if rec == nil || rec.waits() || rec.Token != e.Token || rec.Number != e.Number {
		return b.lateEnd(ctx, j, rec, e, now)
	}
	e.Attempt, e.Reason, e.Replica = rec.Attempt, rec.Reason, rec.Replica
	switch {
	case e.Outcome == NotStarted:
		b.enter(j, e)
		b.wait(rec, now)
	case e.Outcome == Interrupted:
		b.interrupted(j, rec, e, e.Ended, now)
	default:
		b.enter(j, e)
		b.closeRun(j, rec, e.Ended)
	}
	return nil
}

// interrupted records an attempt whose end is not known, and lets the run wait for another where the job wants it.
func (b *book) interrupted(j *jobState, rec *runRecord, e Entry, until, now time.Time) {
	rec.Interrupts++
	again := j.def != nil && j.def.OnInterrupt == InterruptRerun
	switch {
	case !again:
	case rec.Interrupts >= maxInterrupts:
		e.Detail = strings.TrimPrefix(e.Detail+"; not run again: its third interruption", "; ")
		again = false
	case now.Sub(rec.tick()) > j.def.Window:
		e.Detail = strings.TrimPrefix(e.Detail+"; not run again: older than the window", "; ")
		again = false
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

// lateEnd keeps an end whose run has another claim by now, or none.
func (b *book) lateEnd(ctx context.Context, j *jobState, rec *runRecord, e Entry, now time.Time) error {
	if j == nil {
		b.log.Warn("end of a run of an unknown job", "job", e.Job, "tick", e.Tick, "attempt", e.Attempt,
			"outcome", string(e.Outcome))
		return nil
	}
	known, err := b.findAttempt(ctx, j.name, e)
	if err != nil {
		return err
	}
	switch {
	case known == nil && e.Outcome == NotStarted:
		return nil // the ledger has never heard of the claim, and nothing was done
	case known == nil:
		e.Note = "the ledger did not know this attempt when its end came"
		b.enter(j, e)
	case known.Outcome == e.Outcome && known.Note == "":
		return nil // told twice
	case known.Note == "":
		known.Note = clip(strings.TrimSuffix("ended late: "+string(e.Outcome)+" at "+e.Ended.UTC().Format(time.RFC3339)+
			"; "+e.Detail, "; "), maxDetail)
		b.put(historyBucket(j.name), historyKey(known.Sequence, j.record.Ring), historyRecord{formatVersion, *known})
		if last := j.record.Last; last != nil && last.Sequence == known.Sequence {
			last.Note = clip(known.Note, maxSummary)
			b.putJob(j)
		}
	default:
		return nil
	}
	// A run that is known to have succeeded is not run again.
	if rec != nil && rec.waits() && e.Outcome == Succeeded {
		b.closeRun(j, rec, now)
	}
	return nil
}

// findAttempt looks in the history for the attempt that has the end's claim.
func (b *book) findAttempt(ctx context.Context, job string, end Entry) (*Entry, error) {
	if err := b.flush(); err != nil {
		return nil, err
	}
	records, err := b.read(ctx, historyBucket(job))
	if err != nil {
		return nil, err
	}
	for _, r := range records {
		e, err := decodeEntry(r)
		if err == nil && e.RunID == end.RunID && e.Token == end.Token && e.Number == end.Number {
			return e, nil
		}
	}
	return nil, nil
}
