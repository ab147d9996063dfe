package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Causes of a run's end that somebody has asked for, read with context.Cause.
var (
	ErrCancelled = errors.New("scheduler: run was cancelled by request")
	ErrReplaced  = errors.New("scheduler: run was replaced by a newer tick")
)

// The causes of a cancelMark.
const (
	causeCancelled = "cancelled"
	causeReplaced  = "replaced"
)

// cancelMark says in the record of a run that its attempt is to end, and that none follows, however it ends. The mark is in
// the ledger before any context ends, so that a leader that takes over goes on with it.
type cancelMark struct {
	Cause string `json:"cause"`
	By    string `json:"by,omitempty"` // who has asked for it, or the tick that takes the run's place
}

// err is the cause with which the run's context ends.
func (m *cancelMark) err() error {
	if m.Cause == causeReplaced {
		return ErrReplaced
	}
	return ErrCancelled
}

func (m *cancelMark) String() string {
	switch {
	case m.By == "":
		return m.Cause
	case m.Cause == causeReplaced:
		return "replaced by the tick of " + m.By
	default:
		return m.Cause + " by " + m.By
	}
}

// check makes the mark harmless: a store's data may come from anywhere.
func (m *cancelMark) check() error {
	if m.Cause != causeCancelled && m.Cause != causeReplaced {
		return fmt.Errorf("scheduler: run is to end for the unknown cause %.40q", m.Cause)
	}
	m.By = clip(m.By, maxSummary)
	return nil
}

// cancelRun ends an open run for good. Where an attempt is being executed, its record is marked, and its context ends once
// the mark is in the ledger: at once on this replica, on another when it looks at its runs again, at the latest after a
// third of its lease. The run stays open until its end is told. A run that waits for its next attempt is closed, and the
// entry of its last one says why. Who comes second changes nothing.
func (l *leader) cancelRun(ctx context.Context, j *jobState, rec *runRecord, mark cancelMark, now time.Time) error {
	b := l.book
	if rec.Cancel != nil {
		return nil
	}
	b.log.Info("run is to end", "job", rec.Job, "tick", rec.tick(), "attempt", rec.Attempt, "reason", mark.String())
	if rec.waits() && rec.Attempt == 1 { // a manual run that has not begun
		if j != nil && j.problem == nil {
			e := entryOf(rec)
			e.Ended, e.Outcome, e.Detail = now, Cancelled, mark.String()
			b.enter(j, e)
			l.revisit(j)
		}
		b.closeRun(j, rec, now)
		return nil
	}
	if rec.waits() {
		if err := b.giveUp(ctx, j, rec, mark.String(), now); err != nil {
			return err
		}
		if j != nil {
			l.revisit(j)
		}
		return nil
	}
	rec.Cancel = &mark
	b.put(bucketRun, rec.id(), rec)
	key := rec.claim()
	b.batch.hooks = append(b.batch.hooks, hook{
		done:   func() { l.scheduler.runner.cancel(key, mark.err()) },
		failed: func() {}, // whoever executes it finds the mark, if it is there
	})
	return nil
}

// cancel ends the context of a run that this replica executes.
func (r *runner) cancel(key claimKey, cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if a := r.active[key]; a != nil {
		a.cancel(cause)
	}
}

// heed ends the context of a run whose record is marked; a run of another replica is left alone.
func (r *runner) heed(rec *runRecord) {
	if rec.Cancel != nil {
		r.cancel(rec.claim(), rec.Cancel.err())
	}
}
