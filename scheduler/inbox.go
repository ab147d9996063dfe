package scheduler

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/go-singleton/singleton/store"
)

// lookAround reads sessions, then the inbox, and finds the runs whose replica is gone.
func (l *leader) lookAround(ctx context.Context) error {
	if err := l.lookSessions(ctx); err != nil {
		return err
	}
	if err := l.readInbox(ctx); err != nil {
		return err
	}
	return l.judgeRuns(ctx)
}

func (l *leader) lookSessions(ctx context.Context) error {
	var replicas []store.Replica
	err := l.ask(ctx, func(ctx context.Context) (err error) {
		replicas, err = l.book.store.Replicas(ctx, l.book.group)
		return err
	})
	if err != nil {
		return err
	}
	now := l.now()
	l.alive = make(map[string]bool, len(replicas))
	for _, r := range replicas {
		l.alive[r.ID], l.lastSeen[r.ID] = true, now
	}
	l.looked = time.Now()
	return nil
}

func (l *leader) readInbox(ctx context.Context) error {
	l.scheduler.inbox.Store(false)
	inbox, err := l.book.read(ctx, store.InboxBucket)
	if err != nil {
		return err
	}
	return l.apply(ctx, inbox)
}

// apply acts on messages, in the order of their IDs. The commit that acts on a message deletes it and keeps its ID, so
// that a late duplicate changes nothing.
func (l *leader) apply(ctx context.Context, inbox []store.Record) error {
	b := l.book
	now := l.now()
	for _, r := range inbox {
		if err := b.step(); err != nil {
			return err
		}
		if _, known := b.seen[r.Key]; known {
			b.delete(store.InboxBucket, r.Key)
			continue
		}
		answer := answerDone
		m, err := decodeMessage(r.Value)
		switch {
		case err != nil:
			answer = clip(answerRefused+err.Error(), maxSummary)
			b.log.Warn("message refused", "message", r.Key, "error", err)
		case m.Kind == kindRequest: // once the ends have been told, and the jobs are known
			l.requests = append(l.requests, asked{r.Key, m.Request})
			continue
		default:
			if err := l.act(ctx, m, now); err != nil {
				return err
			}
		}
		b.delete(store.InboxBucket, r.Key)
		b.note(r.Key, seenRecord{Answer: answer})
	}
	if err := l.forgetSeen(); err != nil {
		return err
	}
	return b.flush()
}

// act does what a message asks for.
func (l *leader) act(ctx context.Context, m *message, now time.Time) error {
	if m.Kind == kindEnd {
		return l.book.end(ctx, *m.End, now)
	}
	l.book.log.Warn("a replica remembers records of the ledger", "remembered_token", m.Memory.Token,
		"remembered_number", m.Memory.Number)
	return l.restore(ctx, m.Memory, now)
}

// forgetSeen drops the IDs of messages that were acted on long ago.
func (l *leader) forgetSeen() error {
	var old []string
	limit := l.term.StoreTime().Add(-keepSeen).Unix()
	for id, at := range l.book.seen {
		if at < limit {
			old = append(old, id)
		}
	}
	slices.Sort(old)
	for _, id := range old {
		if err := l.book.step(); err != nil {
			return err
		}
		delete(l.book.seen, id)
		l.book.delete(bucketSeen, id)
	}
	return nil
}

// judgeRuns finds the open runs that nobody executes: those of replicas whose session is gone are interrupted, and those
// under this replica's own name that it does not know were never started.
func (l *leader) judgeRuns(ctx context.Context) error {
	b := l.book
	own := l.scheduler.elector.ID()
	now := l.now()
	for _, id := range slices.Sorted(maps.Keys(b.runs)) {
		rec := b.runs[id]
		if rec.waits() {
			continue
		}
		active, ended := l.scheduler.runner.owns(rec.claim())
		switch {
		case ended:
			continue
		case rec.Replica == own:
			l.scheduler.runner.heed(rec) // an earlier leader may have marked it
			if active || l.scheduler.runner.again(rec.claim()) {
				continue
			}
		case l.alive[rec.Replica]:
			continue
		}
		if err := b.step(); err != nil {
			return err
		}
		e := entryOf(rec)
		e.Ended = now
		j := b.jobs[rec.Job]
		switch {
		case rec.Replica == own:
			e.Outcome = NotStarted
			if err := b.end(ctx, e, now); err != nil {
				return err
			}
		case j == nil || j.problem != nil:
			b.log.Error("run interrupted; the record of its job is missing or cannot be read", "job", rec.Job, "tick", rec.tick())
			b.closeRun(j, rec, now)
		default:
			e.Outcome, e.Detail = Interrupted, "its replica's session ended"
			e.Started = rec.Started
			b.interrupted(j, rec, e, l.sessionEnd(rec, now), now)
		}
		if j != nil {
			l.revisit(j)
		}
	}
	return b.flush()
}

// sessionEnd returns when the session of a run ended at the latest. Nobody knows when its replica stopped: it was alive
// when it claimed, when this leader last saw it, and when the job was last dealt with if it led; the session can have
// outlived that by its length.
func (l *leader) sessionEnd(rec *runRecord, now time.Time) time.Time {
	alive := later(rec.Started, l.lastSeen[rec.Replica])
	if j := l.book.jobs[rec.Job]; j != nil {
		alive = later(alive, j.record.watermark())
	}
	return earlier(alive.Add(time.Duration(rec.Session)*time.Millisecond), now)
}
