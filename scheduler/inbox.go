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
	l.alive = make(map[string]bool, len(replicas))
	for _, r := range replicas {
		l.alive[r.ID] = true
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
		answer := "done"
		m, err := decodeMessage(r.Value)
		switch {
		case err != nil:
			answer = clip("refused: "+err.Error(), maxSummary)
			b.log.Warn("message refused", "message", r.Key, "error", err)
		case m.Kind == kindEnd:
			err = b.end(ctx, *m.End, now)
		case m.Kind == kindMemory:
			b.log.Warn("a replica remembers records that the ledger lacks", "remembered_token", m.Memory.Token)
			err = l.restore(m.Memory, now)
		}
		if err != nil && definite(err) {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b.delete(store.InboxBucket, r.Key)
		b.seen[r.Key] = now.Unix()
		b.put(bucketSeen, r.Key, seenRecord{Version: formatVersion, At: now.Unix(), Answer: answer})
	}
	if err := l.forgetSeen(now); err != nil {
		return err
	}
	return b.flush()
}

// forgetSeen drops the IDs of messages that were acted on long ago.
func (l *leader) forgetSeen(now time.Time) error {
	old := now.Add(-keepSeen).Unix()
	for _, id := range slices.Sorted(maps.Keys(l.book.seen)) {
		if l.book.seen[id] >= old {
			continue
		}
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
		if ended || active && rec.Replica == own || !active && rec.Replica != own && l.alive[rec.Replica] {
			continue
		}
		j := b.jobs[rec.Job]
		if err := b.step(); err != nil {
			return err
		}
		e := entryOf(rec)
		e.Ended = now
		switch {
		case j == nil || j.problem != nil:
			b.log.Error("run interrupted; its job's record is missing or cannot be read", "job", rec.Job, "tick", rec.tick())
			b.closeRun(j, rec, now)
		case rec.Replica == own:
			e.Outcome = NotStarted
			if err := b.end(ctx, e, now); err != nil {
				return err
			}
		default:
			e.Outcome, e.Detail = Interrupted, "its replica's session ended"
			e.Started = rec.Started
			// Nobody knows when the replica stopped. It was alive when it claimed, and when the job was last dealt with if it
			// led; its session can have outlived that by no more than the session's length.
			until := later(rec.Started, j.record.watermark()).Add(time.Duration(rec.Session) * time.Millisecond)
			b.interrupted(j, rec, e, earlier(until, now), now)
		}
		if j != nil {
			l.revisit(j)
		}
	}
	return b.flush()
}
