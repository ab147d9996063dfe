package scheduler

import (
	"context"
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
func (l *leader) startReruns(now time.Time) error {
	var due []*runRecord
	for _, rec := range l.book.runs {
		if rec.waits() && !rec.NotBefore.After(now) {
			due = append(due, rec)
		}
	}
	slices.SortFunc(due, func(a, b *runRecord) int { return strings.Compare(a.id(), b.id()) })
	for _, rec := range due {
		j := l.book.jobs[rec.Job]
		if j == nil || j.def == nil || j.problem != nil {
			continue
		}
		if err := l.book.step(); err != nil {
			return err
		}
		if rec.Interrupts > 0 && now.Sub(rec.tick()) > j.def.Window {
			l.book.log.Warn("run is not run again: older than the window", "job", rec.Job, "tick", rec.tick())
			l.book.closeRun(j, rec, now)
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

// startDue decides what becomes of the ticks that are due, claims those to be started, and starts them once the claims
// are in the store.
func (l *leader) startDue(now time.Time) error {
	for j := l.agenda.first(); j != nil && !j.next.After(now); j = l.agenda.first() {
		if err := l.decide(j, now); err != nil {
			return err
		}
	}
	var again []*jobState
	for j := range l.waiting {
		if j.open == 0 || j.def != nil && j.def.Overlap == OverlapAllow {
			again = append(again, j)
		}
	}
	slices.SortFunc(again, func(a, b *jobState) int { return strings.Compare(a.name, b.name) })
	for _, j := range again {
		if err := l.decide(j, now); err != nil {
			return err
		}
	}
	return nil
}

// decide applies the policy to one job and files it under its next tick.
func (l *leader) decide(j *jobState, now time.Time) error {
	delete(l.waiting, j)
	j.next = time.Time{}
	if j.def == nil || j.problem != nil || j.record.Problem != "" {
		l.agenda.set(j)
		return nil
	}
	p := j.def.decide(situation{
		now:       now,
		termStart: l.start,
		watermark: j.record.watermark(),
		openUntil: j.openUntil,
		open:      j.open > 0,
		free:      l.free(),
		unowned:   j.reowned,
	})
	if err := j.def.table.broken; err != nil {
		l.book.log.Error("job is not scheduled any more", "job", j.name, "error", err)
		j.record.Problem = clip(err.Error(), maxSummary)
		l.book.putJob(j)
		l.agenda.set(j)
		return nil
	}
	if !p.waiting {
		j.reowned = false
	}
	claims := p.claims
	for _, r := range p.rows {
		for len(claims) > 0 && claims[0].tick.Before(r.first) {
			if ok, err := l.start1(j, claims[0], now); !ok || err != nil {
				return err
			}
			claims = claims[1:]
		}
		if err := l.book.step(); err != nil {
			return err
		}
		l.book.skip(j, r, now)
	}
	for _, c := range claims {
		if ok, err := l.start1(j, c, now); !ok || err != nil {
			return err
		}
	}
	if p.waiting {
		l.waiting[j] = true
	}
	j.next = j.def.table.next(later(j.record.watermark(), now))
	l.agenda.set(j)
	return nil
}

// start1 claims the first attempt of a tick; false when this replica cannot start anything now.
func (l *leader) start1(j *jobState, c claim, now time.Time) (bool, error) {
	if err := l.book.step(); err != nil {
		return false, err
	}
	if _, open := l.book.runs[runID(j.name, c.tick)]; open { // a restored ledger may know the run but not the watermark
		j.record.Watermark = max(j.record.Watermark, c.tick.Unix())
		l.book.putJob(j)
		return true, nil
	}
	rec := &runRecord{Job: j.name, Tick: c.tick.Unix(), Attempt: 1, Reason: c.reason}
	if !l.claim(j, rec, now) {
		l.waiting[j] = true
		j.next = now.Add(sessionRetry)
		l.agenda.set(j)
		return false, nil
	}
	j.record.Watermark = max(j.record.Watermark, c.tick.Unix())
	l.book.putJob(j)
	return true, nil
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
		return maxCatchUpMax
	}
	return l.scheduler.cfg.MaxRunning - l.scheduler.runner.running() - int(l.scheduler.claimed.Load())
}
