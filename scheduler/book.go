package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// book is the ledger as its leader sees it, for one term. Its methods change the book and gather the changes in a batch;
// flush brings them into the store. When a commit cannot be brought to a definite answer, the term is over and the book
// is thrown away. It belongs to one goroutine.
type book struct {
	store  store.Store
	group  string
	term   *election.Term
	log    *slog.Logger
	world  *world.World
	slots  int     // of each history ring
	memory *memory // nil until the book is what the store has

	number uint64 // of the last commit
	batch  batch
	jobs   map[string]*jobState
	runs   map[string]*runRecord      // open, by run ID
	seen   map[string]int64           // messages that were acted on, and when
	asked  map[string]json.RawMessage // the requests among them, until they are remembered
	pause  steering                   // the newest pause or resume of the whole group
}

// jobState is a job of the ledger.
type jobState struct {
	name    string
	record  jobRecord
	problem error       // the record cannot be read: it is left as it is
	def     *definition // nil where this binary lacks the job
	open    int         // runs that are open
	reowned bool        // no leader had the job until now
	next    time.Time   // when to look at it again; zero is never
	index   int         // in the agenda
}

// schedulable reports whether this leader can decide what becomes of the job's ticks.
func (j *jobState) schedulable() bool {
	return j.def != nil && j.problem == nil && j.record.Problem == ""
}

// put changes a record.
func (b *book) put(bucket, key string, value any) {
	b.batch.add(store.Change{Bucket: bucket, Key: key, Value: encode(value)})
}

func (b *book) delete(bucket, key string) {
	b.batch.add(store.Change{Bucket: bucket, Key: key, Delete: true})
}

// step makes room for one step, so that its changes go into one commit.
func (b *book) step() error {
	if b.batch.full() {
		return b.flush()
	}
	return nil
}

// flush commits the batch and then calls what waits for it. Commits of a term are numbered, and the next is not sent
// before the last has a definite answer: an attempt that is stuck in a socket can then never be applied after a later one.
// It goes on asking after ctx has ended, as long as the lease holds, so that the answer is known before the release.
func (b *book) flush() error {
	if b.batch.empty() {
		return nil
	}
	todo := b.batch
	b.batch = batch{}
	if len(todo.changes) > 0 {
		if err := b.commit(b.number+1, todo.changes); err != nil {
			todo.fail()
			return err
		}
		b.number++
		if b.memory != nil {
			b.memory.learn(b.position(), todo.changes)
		}
	}
	for _, h := range todo.hooks {
		h.done()
	}
	return nil
}

// position is how far this term has brought the ledger.
func (b *book) position() position { return position{b.term.Token(), b.number} }

// errTerm says that a commit had no definite answer while the term lasted.
var errTerm = errors.New("scheduler: the term ended before the store answered")

func (b *book) commit(number uint64, changes []store.Change) error {
	lease := b.term.Lease()
	attempt := attemptTime(lease.TTL)
	warned := false
	for {
		if !b.term.Valid() {
			return errTerm
		}
		ctx, cancel := context.WithTimeout(b.term.Context(), attempt)
		err := b.store.Commit(ctx, lease, number, changes)
		cancel()
		if err == nil || store.Definite(err) {
			return err
		}
		if !warned {
			b.log.Warn("commit is not answered, asking again", "number", number, "error", err)
			warned = true
		}
		if !world.Rest(b.term.Context(), b.world.Between(retryMin, retryMax), nil) {
			return errTerm
		}
	}
}

// The pause between attempts at the store is a random part of this range: short beside the shortest lease (500 ms), long
// enough that fifty replicas do not flood a store that is coming back.
const (
	retryMin = 50 * time.Millisecond
	retryMax = 200 * time.Millisecond
)

// attemptTime bounds one attempt: a fifth of the lease, so that several fit before it ends.
func attemptTime(lease time.Duration) time.Duration { return min(lease/5, 2*time.Second) }

// enter writes an entry into the history of a job, and with it the job's record. Consecutive skips for one reason are one
// entry.
func (b *book) enter(j *jobState, e Entry) {
	rec := &j.record
	e.Job = j.name
	if rec.Ring != b.slots {
		rec.Ring, rec.Row = b.slots, nil
	}
	if row := rec.Row; row != nil && e.Outcome == Skipped && row.Detail == e.Detail && !e.Tick.Before(row.LastTick) {
		e.Tick, e.Ticks, e.Sequence = row.Tick, row.Ticks+e.Ticks, row.Sequence
	} else {
		rec.Sequence++
		e.Sequence = rec.Sequence
	}
	b.put(historyBucket(j.name), historyKey(e.Sequence, rec.Ring), historyRecord{formatVersion, e})
	if e.Outcome == Skipped {
		rec.Row = &e
	} else {
		rec.Row = nil
		last := e
		last.shorten()
		rec.Last = &last
		if run := b.runs[e.RunID]; run != nil {
			b.sum(run, e)
		}
	}
	b.putJob(j)
}

// maxSummary bounds the copy of the newest attempt in the job's record.
const maxSummary = 256

// sum keeps what is known of a manual run with it, for the answer to whom has asked for it.
func (b *book) sum(rec *runRecord, last Entry) {
	if rec.Request != "" {
		last.shorten()
		rec.Last = &last
	}
}

// shorten makes an entry one that other records may hold a copy of.
func (e *Entry) shorten() { e.Detail, e.Note = clip(e.Detail, maxSummary), clip(e.Note, maxSummary) }

func (b *book) putJob(j *jobState) { b.put(bucketJob, j.name, &j.record) }

// skip passes over a row of ticks. It joins the newest entry only where nothing lies between: a tick that was claimed may
// not have ended yet, and must not look skipped. The log calls attention to the first row of an entry only.
func (b *book) skip(j *jobState, r row, now time.Time) {
	if last := j.record.Row; last != nil && last.LastTick.Unix() != j.record.Watermark {
		j.record.Row = nil
	}
	j.record.Watermark = r.last.Unix()
	b.enter(j, Entry{
		Tick:     r.first,
		LastTick: r.last,
		Ticks:    r.ticks,
		Token:    b.term.Token(),
		Ended:    now,
		Outcome:  Skipped,
		Detail:   r.reason,
	})
	level := slog.LevelWarn
	if j.record.Row.Ticks > r.ticks {
		level = slog.LevelDebug
	}
	b.log.Log(context.Background(), level, "ticks skipped", "job", j.name, "tick", r.first, "last_tick", r.last, "ticks", r.ticks, "reason", r.reason)
}

// take claims an attempt for a session of this replica; rec stands in the ledger from the next flush on.
func (b *book) take(j *jobState, rec *runRecord, replica string, session time.Duration, now time.Time) {
	rec.Version = formatVersion
	rec.Token, rec.Number = b.term.Token(), b.number+1
	rec.Replica, rec.Session = replica, session.Milliseconds()
	rec.Started, rec.NotBefore = now, time.Time{}
	if _, known := b.runs[rec.id()]; !known {
		j.open++
	}
	b.runs[rec.id()] = rec
	b.put(bucketRun, rec.id(), rec)
}

// closeRun ends a run for good; it was open until then.
func (b *book) closeRun(j *jobState, rec *runRecord, until time.Time) {
	b.delete(bucketRun, rec.id())
	delete(b.runs, rec.id())
	if rec.Request != "" {
		b.answerRun(rec)
	}
	if j == nil {
		return
	}
	j.open--
	if j.problem == nil && until.After(j.record.OpenUntil) {
		j.record.OpenUntil = until
		b.putJob(j)
	}
}

// wait leaves a run open for its next attempt, not before at.
func (b *book) wait(rec *runRecord, at time.Time) {
	rec.Replica, rec.Token, rec.Number = "", 0, 0
	rec.Attempt++
	rec.NotBefore = at
	b.put(bucketRun, rec.id(), rec)
}

// read reads a bucket under the lease, asking until it is answered or the term is over.
func (b *book) read(ctx context.Context, bucket string) ([]store.Record, error) {
	for first := true; ; first = false {
		records, err := b.readOnce(ctx, bucket)
		if err == nil || store.Definite(err) {
			return records, err
		}
		if first && ctx.Err() == nil {
			b.log.Warn("ledger is not to be had, asking again", "error", err)
		}
		if !world.Rest(ctx, b.world.Between(retryMin, retryMax), nil) {
			return nil, context.Cause(ctx)
		}
	}
}

// readOnce gives up when nothing has come for as long as an attempt may take, however many pages have come before.
func (b *book) readOnce(ctx context.Context, bucket string) (records []store.Record, err error) {
	lease := b.term.Lease()
	attempt, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(attemptTime(lease.TTL), cancel)
	defer late.Stop()
	for r, err := range b.store.Read(attempt, b.group, &lease, bucket) {
		if err != nil {
			return nil, err
		}
		records = append(records, r)
		late.Reset(attemptTime(lease.TTL))
	}
	return records, nil
}

// openRuns returns the open runs of a job, by ID.
func (b *book) openRuns(job string) []*runRecord {
	var all []*runRecord
	for _, id := range slices.Sorted(maps.Keys(b.runs)) {
		if b.runs[id].Job == job {
			all = append(all, b.runs[id])
		}
	}
	return all
}
