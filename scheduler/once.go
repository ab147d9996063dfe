package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// Once is work that many processes start at about the same time and one of them does: the same line in the crontab of many
// machines. Nobody has to lead: each process takes a short lease, looks in the ledger whether the work has been claimed, and
// if not claims it in the same term. Runs stand in the history of the job as those of a Scheduler do. Its group must be one in
// which no Scheduler runs.
type Once struct {
	Group string        // required
	Job   string        // required; as store.CheckName
	ID    string        // as election.Config.ID
	Per   time.Duration // how often all of them start it, at least 2 s; 1 h by default
	Keep  int           // entries of history, as Config.History; 100 by default

	Logger *slog.Logger // what it waits for, after two seconds; nil is silent
}

// ClaimedError says who has claimed the work of a Once less than half of Per ago, and so has done it, does it, or has died
// over it.
type ClaimedError struct {
	Job     string
	Replica string
	At      time.Time     // by the store's clock
	Ago     time.Duration // less than half of Per; negative where the store's clock was set back
}

// Error says who and when.
func (e *ClaimedError) Error() string {
	return fmt.Sprintf("scheduler: job %s was claimed by %s at %s", e.Job, e.Replica, e.At.UTC().Format(time.RFC3339))
}

// Errors of a Once that a group of its own heals.
var (
	ErrLed     = errors.New("scheduler: somebody leads the group, and a Once needs one without a Scheduler")
	ErrNotOnce = errors.New("scheduler: the job is one of a Scheduler; give this work another name, or a group of its own")
)

// ErrUnrecorded is joined to what the work of a Once has returned where its end could not be brought into the ledger.
var ErrUnrecorded = errors.New("scheduler: the end of the run could not be recorded")

// OnceLease is how long a process that dies while it claims holds the others up.
const OnceLease = 5 * time.Second

// Bounds of a Once.
const (
	defaultPer   = time.Hour
	minPer       = 2 * time.Second
	onceLease    = OnceLease
	onceLimit    = 20 * time.Second // for a turn: four that have died
	onceAttempt  = time.Second
	onceQuiet    = 2 * time.Second  // of a turn, before the log says what it waits for
	onceSession  = 30 * time.Second // how long a run is open after its process has died
	onceInterval = onceSession / 3
)

// complete fills in the defaults and returns all problems, joined.
func (o *Once) complete(st store.Store) (id string, err error) {
	var problems []error
	if o.Per == 0 {
		o.Per = defaultPer
	}
	if o.Keep == 0 {
		o.Keep = defaultHistory
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.Logger = o.Logger.With("group", o.Group, "job", o.Job)
	if o.Per < minPer {
		problems = append(problems, fmt.Errorf("scheduler: once per %v is too often: at least %v", o.Per, minPer))
	}
	if o.Keep < 1 || o.Keep > maxHistory {
		problems = append(problems, fmt.Errorf("scheduler: history of %d entries is out of range 1-%d", o.Keep, maxHistory))
	}
	if err := store.CheckName("job", o.Job); err != nil {
		problems = append(problems, err)
	}
	elector, err := election.New(st, election.Config{Group: o.Group, ID: o.ID}) // for the ID alone
	if err != nil {
		problems = append(problems, err)
	} else {
		id = elector.ID()
	}
	return id, errors.Join(problems...)
}

// Run claims the work and calls do, unless somebody has claimed it less than half of Per ago: then it returns a
// *ClaimedError. Any other error that comes without a call of do says that the work was not claimed, as far as this process
// knows, and why. Of two processes that call Run within half of Per, by the store's clock, one calls do; when that dies over
// it, nobody does before half of Per has passed.
//
// The context of do is ctx: nothing that happens to the store ends it. Valid is true for half of Per. Where its end cannot be
// brought into the ledger ErrUnrecorded is joined to the error of do, and the history calls the run interrupted.
func (o Once) Run(ctx context.Context, st store.Store, do Func) error {
	id, err := o.complete(st)
	if err != nil {
		return err
	}
	p := &participant{Once: o, store: st, world: world.From(ctx), id: id}
	defer p.leave(ctx)
	asked := p.world.Now()
	rec, err := p.claim(ctx)
	if err != nil {
		return err
	}
	keeping, stop := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() { p.keep(keeping) })
	entry := entryOf(rec)
	entry.Started = rec.Started
	err = do(ctx, Run{
		Job: rec.Job, Tick: rec.tick(), Attempt: rec.Attempt, Reason: rec.Reason, Token: rec.Token, Replica: rec.Replica,
		valid: func() bool { elapsed, _ := p.world.Since(asked); return elapsed < o.Per/2 },
	})
	entry.Outcome, entry.Detail = judge(err, context.Cause(ctx))
	elapsed, _ := p.world.Since(asked)
	entry.Ended = rec.Started.Add(elapsed) // by the store's clock, as its start
	stop()
	keeper.Wait()
	if failed := p.end(context.WithoutCancel(ctx), rec, entry); failed != nil {
		return errors.Join(err, fmt.Errorf("%w: %w", ErrUnrecorded, failed))
	}
	return err
}

// participant is one Run of a Once.
type participant struct {
	Once
	store   store.Store
	world   *world.World
	id      string
	started bool // the store has answered for id
}

// onceKey begins the key of a job that has no schedule.
const onceKey = foreignKey + "UTC once"

// claim claims the work in a turn of its own.
func (p *participant) claim(ctx context.Context) (rec *runRecord, err error) {
	err = p.take(ctx, "claim", func(ctx context.Context, t *turn) error {
		rec, err = p.decide(ctx, t)
		return err
	})
	return rec, err
}

// decide looks whether the work has been claimed, and if not claims it.
func (p *participant) decide(ctx context.Context, t *turn) (*runRecord, error) {
	b := t.book
	if err := t.load(ctx); err != nil {
		return nil, err
	}
	j := b.jobs[p.Job]
	switch {
	case j == nil:
		j = &jobState{name: p.Job, index: -1}
		b.jobs[p.Job] = j
	case j.problem != nil:
		return nil, fmt.Errorf("scheduler: the record of job %s cannot be read: %w", p.Job, j.problem)
	case j.record.Once == nil:
		return nil, fmt.Errorf("%w: %s", ErrNotOnce, p.Job)
	case j.record.Once.Replica == p.id: // the answer to the commit was lost
		return b.runs[j.record.Once.Run], nil
	default:
		last := j.record.Once
		if ago := t.now.Sub(last.At); ago.Abs() < p.Per/2 {
			return nil, &ClaimedError{Job: p.Job, Replica: last.Replica, At: last.At, Ago: ago}
		}
	}
	p.closeDead(j, t)

	rec := &runRecord{
		Version: formatVersion, Job: p.Job, Tick: t.now.Unix(), Attempt: 1, Reason: ReasonOnce, Token: t.lease.Token, Number: 1,
		Replica: p.id, Started: t.now, Session: onceSession.Milliseconds(),
	}
	for b.runs[rec.id()] != nil { // the store's clock has been set back
		rec.Tick++
	}
	r := &j.record
	r.Version, r.Spec, r.Zone, r.Key, r.Ring, r.Unowned = formatVersion, "once per "+short(p.Per), "UTC", onceKey, p.Keep, 0
	r.Watermark = max(r.Watermark, rec.Tick)
	r.Once = &onceClaim{Run: rec.id(), Replica: p.id, At: t.now}
	b.put(bucketRun, rec.id(), rec)
	b.putJob(j)
	return rec, t.commit(ctx)
}

// short is a duration as people write it: "1h" rather than "1h0m0s".
func short(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// closeDead ends the runs whose process has died.
func (p *participant) closeDead(j *jobState, t *turn) {
	const most = 8 // in one commit; the others come next time
	b := t.book
	for i, rec := range b.openRuns(p.Job) {
		if t.alive[rec.Replica] {
			continue
		}
		if i == most {
			return
		}
		e := entryOf(rec)
		e.Started, e.Ended, e.Outcome, e.Detail = rec.Started, t.now, Interrupted, "its replica's session ended"
		b.enter(j, e)
		b.closeRun(j, rec, t.now)
	}
}

// end brings the end of a run into the ledger.
func (p *participant) end(ctx context.Context, rec *runRecord, e Entry) error {
	return p.take(ctx, "end", func(ctx context.Context, t *turn) error {
		b := t.book
		if err := t.load(ctx); err != nil {
			return err
		}
		j, open := b.jobs[p.Job], b.runs[rec.id()]
		if j == nil || j.problem != nil {
			return errors.New("the record of its job is missing or cannot be read")
		}
		if last := j.record.Last; last != nil && last.RunID == e.RunID && last.Token == e.Token && last.Outcome == e.Outcome {
			return nil // the answer to the commit was lost
		}
		if open == nil || open.Token != rec.Token {
			e.Note = "its end came after it was taken for interrupted"
			b.enter(j, e)
		} else {
			b.enter(j, e)
			b.closeRun(j, open, e.Ended)
		}
		return t.commit(ctx)
	})
}

// keep keeps the session, so that nobody takes the run for interrupted, until ctx ends.
func (p *participant) keep(ctx context.Context) {
	ticker := time.NewTicker(onceInterval)
	defer ticker.Stop()
	for {
		attempt, cancel := context.WithTimeout(ctx, onceInterval)
		_, err := p.store.Join(attempt, p.Group, store.Replica{ID: p.id}, onceSession, false)
		cancel()
		if errors.Is(err, store.ErrEnded) || errors.Is(err, store.ErrPermanent) {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// leave ends the session; it lapses otherwise.
func (p *participant) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), onceAttempt)
	defer cancel()
	if p.started {
		_ = p.store.Leave(ctx, p.Group, p.id)
	}
}
