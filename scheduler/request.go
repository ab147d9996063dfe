package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// Errors of requests; store.ErrNoLeader is another one.
var (
	ErrRefused  = errors.New("scheduler: request refused")       // the error says why
	ErrNoAnswer = errors.New("scheduler: request has no answer") // its answer is older than an hour, or the store has lost it
)

// Request is something that was asked of a group's leader, and lies in the store: whoever leads next finds it too. The
// leader acts on it once, however often it arrives, and refuses it when it is older than half an hour by then. Methods are
// safe for concurrent use.
type Request struct {
	ID string // a UUIDv7

	inspector *Inspector
}

// Request returns the request with that ID, to wait for its answer: Post may have been another process's.
func (i *Inspector) Request(id string) *Request { return &Request{ID: id, inspector: i} }

// Trigger asks for a run of a job as of now, or as if at an earlier tick: whole seconds, whether the schedule has such a
// tick or not; the zero time is now. The run's ID is "job@tick+request". It leaves the watermark and so all ticks alone,
// but counts for overlap: while a run of the job is open, OverlapSkip refuses it, OverlapQueue lets it wait, OverlapReplace
// ends that run first, OverlapAllow starts it. A paused job can be triggered.
func (i *Inspector) Trigger(ctx context.Context, job string, tick time.Time) (*Request, error) {
	return i.ask(ctx, order{Verb: verbTrigger, Job: job, Tick: seconds(tick)})
}

// Pause stops the ticks of a job, or with an empty name those of all jobs, also of those that come later. Runs that are open
// go on, with their further attempts; Cancel ends them. A second pause takes the place of the first.
func (i *Inspector) Pause(ctx context.Context, job string, p Pause) (*Request, error) {
	return i.ask(ctx, order{Verb: verbPause, Job: job, Reason: p.Reason, Until: seconds(p.Until)})
}

// Resume ends a pause: the job goes on from now, and what fell due meanwhile is skipped. With an empty name it ends that of
// all jobs; jobs that were paused by their name stay so. Where nothing is paused it is refused, and counts all the same: a
// pause that its author has asked for before, and that comes later, is refused, too.
func (i *Inspector) Resume(ctx context.Context, job string) (*Request, error) {
	return i.ask(ctx, order{Verb: verbResume, Job: job})
}

// Cancel ends an open run for good, on whatever replica it goes on: its context ends with the cause ErrCancelled, and no
// attempt follows. The answer comes when that is in the ledger; the run may go on until it heeds its context.
func (i *Inspector) Cancel(ctx context.Context, runID string) (*Request, error) {
	return i.ask(ctx, order{Verb: verbCancel, Run: runID})
}

// Resign asks the leader to step down, so that another replica leads; running jobs go on.
func (i *Inspector) Resign(ctx context.Context) (*Request, error) {
	return i.ask(ctx, order{Verb: verbResign})
}

// Forget drops a job, with its history. One that the leader's binary has is refused: it would come back at once.
func (i *Inspector) Forget(ctx context.Context, job string) (*Request, error) {
	return i.ask(ctx, order{Verb: verbForget, Job: job})
}

// Reset moves a job's watermark to now, never back: what has fallen due and was not started is skipped.
func (i *Inspector) Reset(ctx context.Context, job string) (*Request, error) {
	return i.ask(ctx, order{Verb: verbReset, Job: job})
}

// seconds is a time as records hold it; the zero time is 0. The one instant that would be taken for that has passed long
// ago, and becomes an impossible one.
func seconds(t time.Time) int64 {
	switch {
	case t.IsZero():
		return 0
	case t.Unix() == 0:
		return -1
	}
	return t.Unix()
}

// How long a request tries to reach the store.
const (
	postAttempt = 2 * time.Second
	postTime    = 10 * time.Second
)

// ask posts an order. It is asked again under the same ID until the store has answered: the leader acts on it once.
func (i *Inspector) ask(ctx context.Context, o order) (*Request, error) {
	w := world.From(ctx)
	o.Author, o.Posted = i.author, w.Wall().UnixMilli()
	if err := o.check(); err != nil {
		return nil, err
	}
	r := i.Request(w.ID())
	text := encode(message{Version: formatVersion, Kind: kindRequest, Request: &o})
	for began := time.Now(); ; {
		attempt, cancel := context.WithTimeout(ctx, postAttempt)
		err := i.store.Post(attempt, i.group, r.ID, text)
		cancel()
		switch {
		case err == nil:
			return r, nil
		case errors.Is(err, store.ErrFull):
			return nil, fmt.Errorf("scheduler: %s: nobody has read the messages of %s for long: %w", o.Verb, i.group, err)
		case store.Definite(err):
			return nil, fmt.Errorf("scheduler: %s in %s: %w", o.Verb, i.group, err)
		case time.Since(began) > postTime || !world.Rest(ctx, w.Between(retryMin, retryMax), nil):
			return nil, fmt.Errorf("scheduler: %s in %s: it is not known whether the store has it: %w", o.Verb, i.group, err)
		}
	}
}
