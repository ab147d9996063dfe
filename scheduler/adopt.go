package scheduler

import (
	"strings"
	"time"

	"github.com/go-singleton/singleton/schedule"
)

// adopt brings this binary's jobs into the ledger: new ones and changed ones start from now, those that the binary lacks
// are marked, and after a week dropped.
func (l *leader) adopt(now time.Time) error {
	defs, version := l.scheduler.definitions()
	due := now.Sub(l.cleaned) >= housekeeping || now.Before(l.cleaned)
	if version == l.adopted && !due {
		return nil
	}
	b := l.book
	for name := range b.jobs {
		b.jobs[name].def = nil
	}
	for _, def := range defs {
		if err := b.step(); err != nil {
			return err
		}
		j := b.jobs[def.Name]
		if j == nil {
			j = &jobState{name: def.Name, index: -1}
			b.jobs[def.Name] = j
			for _, rec := range b.runs {
				if rec.Job == def.Name {
					j.open++
				}
			}
			l.define(j, def, now)
			b.putJob(j)
			l.revisit(j)
			continue
		}
		j.def = def
		if j.problem != nil {
			continue
		}
		switch {
		case j.record.Key != def.key:
			l.redefine(j, def, now)
		case j.record.Unowned != 0 || j.record.Spec != def.Spec || j.record.Jitter != int64(def.Jitter):
			j.reowned = j.reowned || j.record.Unowned != 0
			j.record.Unowned, j.record.Spec, j.record.Jitter = 0, def.Spec, int64(def.Jitter)
			b.putJob(j)
		}
		l.revisit(j)
	}
	for _, j := range b.sorted() {
		if j.def != nil {
			continue
		}
		if err := b.step(); err != nil {
			return err
		}
		switch unowned := j.record.Unowned; {
		case unowned == 0:
			b.log.Warn("job is in the ledger, but this leader does not have it", "job", j.name)
			j.record.Unowned = now.Unix()
			b.putJob(j)
		case now.Sub(time.Unix(unowned, 0)) > keepUnowned:
			b.log.Warn("job is dropped: no leader has had it for a week", "job", j.name)
			if err := l.drop(j); err != nil {
				return err
			}
			continue
		}
		l.revisit(j)
	}
	if due {
		l.cleaned = now
		if err := l.forgetSeen(); err != nil {
			return err
		}
	}
	l.adopted = version
	return nil
}

// recognise gives the jobs of the ledger this binary's definitions, and changes nothing else: adopt comes after the runs
// have been looked at, and whether an interrupted one is run again is for the definition to say.
func (l *leader) recognise() {
	defs, _ := l.scheduler.definitions()
	for _, def := range defs {
		if j := l.book.jobs[def.Name]; j != nil {
			j.def = def
		}
	}
}

// define lets a job start from now.
func (l *leader) define(j *jobState, def *definition, now time.Time) {
	j.def = def
	rec := &j.record
	rec.Version = formatVersion
	rec.Spec, rec.Zone, rec.Key, rec.Jitter = def.Spec, def.zone, def.key, int64(def.Jitter)
	rec.Watermark = max(rec.Watermark, now.Unix())
	rec.Unowned = 0
	if rec.Ring == 0 {
		rec.Ring = l.book.slots
	}
}

// redefine lets a job whose ticks have changed start from now, and says what becomes of those it passes over.
func (l *leader) redefine(j *jobState, def *definition, now time.Time) {
	b := l.book
	b.log.Info("job has another schedule now; it starts from now", "job", j.name, "from", j.record.Spec, "to", def.Spec)
	j.record.Row = nil // its ticks were others
	l.pass(j, now, skipRedefined, now)
	l.define(j, def, now)
	b.putJob(j)
}

// table returns the schedule that a job's record was written for, or nil where nobody knows it.
func (j *jobState) table() *timetable {
	if j.def != nil && j.def.key == j.record.Key {
		return j.def.table
	}
	return j.record.table()
}

// table rebuilds the schedule that a record was written for; nil for a foreign one, and where the key cannot be read.
func (r *jobRecord) table() *timetable {
	if strings.HasPrefix(r.Key, foreignKey) {
		return nil
	}
	expr, err := schedule.Parse(r.Key, schedule.Options{Seconds: true})
	if err != nil {
		return nil
	}
	return &timetable{expr: expr}
}

// drop forgets a job, with its history.
func (l *leader) drop(j *jobState) error {
	b := l.book
	for _, rec := range b.openRuns(j.name) {
		if err := b.step(); err != nil {
			return err
		}
		b.closeRun(j, rec, time.Time{})
	}
	history, err := b.read(l.term.Context(), historyBucket(j.name))
	if err != nil {
		return err
	}
	for _, r := range history {
		if err := b.step(); err != nil {
			return err
		}
		b.delete(historyBucket(j.name), r.Key)
	}
	if err := b.step(); err != nil {
		return err
	}
	b.delete(bucketJob, j.name)
	delete(b.jobs, j.name)
	delete(l.waiting, j)
	l.file(j, time.Time{})
	return nil
}
