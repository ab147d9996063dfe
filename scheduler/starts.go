package scheduler

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"
)

// takeReports brings the ends of this replica's own runs into the ledger.
func (l *leader) takeReports(ctx context.Context, now time.Time) error {
	for _, rep := range l.scheduler.runner.reports() {
		if err := l.book.step(); err != nil {
			return err
		}
		if err := l.book.end(ctx, rep.entry, now); err != nil {
			return err
		}
		l.book.batch.hooks = append(l.book.batch.hooks, hook{
			done:   func() { l.scheduler.runner.settle(rep.key()) },
			failed: func() {},
		})
	}
	return l.book.flush()
}

// startReruns claims the next attempts of runs that wait for one.
func (l *leader) startReruns(ctx context.Context, now time.Time) error {
	heads := l.heads()
	var due []*runRecord
	for _, rec := range l.book.runs {
		if l.restartable(rec) && !rec.NotBefore.After(now) && !l.held(rec, heads) {
			due = append(due, rec)
		}
	}
	slices.SortFunc(due, func(a, b *runRecord) int { return strings.Compare(a.id(), b.id()) })
	for _, rec := range due {
		j := l.book.jobs[rec.Job]
		if err := l.book.step(); err != nil {
			return err
		}
		if l.replaced(j, now) {
			continue
		}
		if rec.Interrupts+rec.Failures > 0 && j.def.late(rec, now) {
			if err := l.book.giveUp(ctx, j, rec, olderThanWindow, now); err != nil {
				return err
			}
			l.revisit(j)
			continue
		}
		if l.free() <= 0 {
			return nil
		}
		if !l.claim(j, rec, now) {
			return nil
		}
	}
	return nil
}

// replaced reports whether a tick is due that takes the place of the job's open runs.
func (l *leader) replaced(j *jobState, now time.Time) bool {
	return j.def.Overlap == OverlapReplace && j.schedulable() && !j.def.jitter.newest(j.record.watermark(), now).IsZero()
}

// replace has the open runs of a job end, so that a newer tick can start.
func (l *leader) replace(ctx context.Context, j *jobState, by, now time.Time) error {
	for _, rec := range l.book.openRuns(j.name) {
		if err := l.book.step(); err != nil {
			return err
		}
		if err := l.cancelRun(ctx, j, rec, cancelMark{Cause: causeReplaced, By: by.Format(time.RFC3339)}, now); err != nil {
			return err
		}
	}
	return nil
}

// heads returns, by job, the manual run that is the next to begin where runs must not overlap; none where a run of the job
// goes on, or waits for a further attempt.
func (l *leader) heads() map[string]*runRecord {
	next, busy := make(map[string]*runRecord), make(map[string]bool)
	for id, rec := range l.book.runs {
		switch first := next[rec.Job]; {
		case rec.Request == "" || !rec.waits() || rec.Attempt > 1:
			busy[rec.Job] = true
		case first == nil || id < first.id():
			next[rec.Job] = rec
		}
	}
	for job := range busy {
		delete(next, job)
	}
	return next
}

// held reports whether a manual run has to wait for its turn among heads.
func (l *leader) held(rec *runRecord, heads map[string]*runRecord) bool {
	return rec.Request != "" && rec.Attempt == 1 && l.book.jobs[rec.Job].def.Overlap != OverlapAllow && heads[rec.Job] != rec
}

// restartable reports whether a run waits for its next attempt and this binary has the job.
func (l *leader) restartable(rec *runRecord) bool {
	j := l.book.jobs[rec.Job]
	return rec.waits() && j != nil && j.def != nil && j.problem == nil
}

// startDue decides what becomes of the ticks that are due, claims those to be started, and starts them once the claims
// are in the store. The oldest come first, so that no job keeps others from the few runs that MaxRunning allows.
func (l *leader) startDue(ctx context.Context, now time.Time) error {
	var due []*jobState
	for j := l.agenda.first(); j != nil && !j.next.After(now); j = l.agenda.first() {
		due = append(due, j)
		delete(l.waiting, j)
		l.file(j, time.Time{})
	}
	if l.free() > 0 {
		for j := range l.waiting {
			if j.open == 0 || j.def != nil && j.def.Overlap == OverlapAllow {
				due = append(due, j)
			}
		}
	}
	slices.SortFunc(due, func(a, b *jobState) int {
		return cmp.Or(cmp.Compare(a.record.Watermark, b.record.Watermark), strings.Compare(a.name, b.name))
	})
	for _, j := range due {
		if err := l.decide(ctx, j, now); err != nil {
			return err
		}
	}
	return nil
}

// decide applies the policy to one job and files it under its next tick.
func (l *leader) decide(ctx context.Context, j *jobState, now time.Time) error {
	delete(l.waiting, j)
	if !j.schedulable() {
		l.file(j, time.Time{})
		return nil
	}
	p := j.def.decide(situation{
		now:       now,
		termStart: l.start,
		watermark: j.record.watermark(),
		openUntil: j.record.OpenUntil,
		open:      j.open > 0,
		pausedTo:  pausedTo(now, j.record.Steering, &l.book.pause),
		free:      l.free(),
		unowned:   j.reowned,
	})
	next := j.def.jitter.next(p.watermark, now)
	if err := j.def.table.fault(); err != nil { // the plan may be wrong
		l.book.log.Error("job is not scheduled any more", "job", j.name, "error", err)
		j.record.Problem = clip(err.Error(), maxSummary)
		l.book.putJob(j)
		l.file(j, time.Time{})
		return nil
	}
	l.file(j, next)
	if p.waiting {
		l.waiting[j] = true
	} else {
		j.reowned = false
	}
	if !p.replaces.IsZero() {
		return l.replace(ctx, j, p.replaces, now)
	}
	return l.follow(j, p, now)
}

// follow does what a plan says, in the order of the ticks.
func (l *leader) follow(j *jobState, p plan, now time.Time) error {
	claims, rows := p.claims, p.rows
	for len(claims)+len(rows) > 0 {
		if err := l.book.step(); err != nil {
			return err
		}
		if len(rows) > 0 && (len(claims) == 0 || rows[0].first.Before(claims[0].tick)) {
			l.book.skip(j, rows[0], now)
			rows = rows[1:]
			continue
		}
		if !l.startTick(j, claims[0], now) { // what is left is decided again
			l.waiting[j] = true
			l.file(j, now.Add(sessionRetry))
			return nil
		}
		claims = claims[1:]
	}
	return nil
}

// startTick claims the first attempt of a tick; false when this replica cannot start anything now.
func (l *leader) startTick(j *jobState, c claim, now time.Time) bool {
	// A restored ledger may know the run but not the watermark.
	if _, open := l.book.runs[runID(j.name, c.tick, "")]; !open {
		rec := &runRecord{Job: j.name, Tick: c.tick.Unix(), Attempt: 1, Reason: c.reason}
		if !l.claim(j, rec, now) {
			return false
		}
	}
	j.record.Watermark = c.tick.Unix()
	l.book.putJob(j)
	return true
}

// claim takes an attempt for this replica's session and has it started once the claim is in the store; false when the
// session is not valid, which a refresh is about to decide.
func (l *leader) claim(j *jobState, rec *runRecord, now time.Time) bool {
	s := l.scheduler
	session, release, err := s.elector.Hold()
	if err != nil || !session.Valid() {
		release()
		return false
	}
	l.book.take(j, rec, session.ID(), l.term.Lease().TTL, now)
	claimed, def := *rec, j.def
	s.claimed.Add(1)
	l.book.batch.hooks = append(l.book.batch.hooks, hook{
		done: func() {
			s.claimed.Add(-1)
			s.runner.start(def, claimed, session, release)
		},
		failed: func() {
			s.claimed.Add(-1)
			release()
		},
	})
	return true
}

// free returns how many runs this replica may start.
func (l *leader) free() int {
	if l.scheduler.cfg.MaxRunning == 0 {
		return math.MaxInt
	}
	return l.scheduler.cfg.MaxRunning - l.scheduler.runner.running() - int(l.scheduler.claimed.Load())
}
