package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"

	"github.com/cenkalti/backoff/v4"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/world"
)

// runner executes the runs of this replica and remembers their ends until the ledger has them. It outlives terms: a run
// lives on its replica's session, not on the lease under which it was claimed.
type runner struct {
	log   *slog.Logger
	world *world.World
	base  context.Context // of runs; ends with nothing
	ring  func()          // wakes whoever takes ends to the ledger

	mu     sync.Mutex
	active map[claimKey]*activeRun
	ended  map[claimKey]*report
	past   []*report // ends that the ledger had, the newest last: it may lose them
	closed uint64    // claims of terms up to this token are never started any more
	doubt  bool      // the ledger may hold claims of ours that were never started
	halted bool      // nothing is started any more
	gaveUp bool
}

// activeRun is a run that is being executed.
type activeRun struct {
	cancel  context.CancelCauseFunc
	release func() // lets the session go
}

func newRunner(base context.Context, log *slog.Logger, ring func()) *runner {
	return &runner{
		log:    log,
		world:  world.From(base),
		base:   base,
		ring:   ring,
		active: make(map[claimKey]*activeRun),
		ended:  make(map[claimKey]*report),
	}
}

// start executes a claim that is in the ledger on session; release is called when the session is not needed any more.
// Where it may not start, it reports that it never did.
func (r *runner) start(def *definition, rec runRecord, session *election.Session, release func()) {
	key := rec.claim()
	ctx, cancel := context.WithCancelCause(session.Context())
	r.mu.Lock()
	if rec.Token <= r.closed || r.halted || !session.Valid() {
		r.mu.Unlock()
		cancel(nil)
		r.refuse(rec, release)
		return
	}
	r.active[key] = &activeRun{cancel: cancel, release: release}
	r.mu.Unlock()

	go func() {
		defer cancel(nil)
		run := ctx
		if def.Timeout > 0 {
			limited, stop := context.WithTimeout(ctx, def.Timeout)
			defer stop()
			run = limited
		}
		entry := entryOf(&rec)
		entry.Started = r.world.Wall().UTC()
		r.log.Info("run started", "run", entry.RunID, "job", entry.Job, "tick", entry.Tick, "attempt", entry.Attempt,
			"reason", string(entry.Reason), "token", entry.Token)
		entry.Outcome, entry.Detail, entry.Permanent = r.call(run, def.Do, Run{
			Job:     rec.Job,
			Tick:    rec.tick(),
			Attempt: rec.Attempt,
			Reason:  rec.Reason,
			Token:   rec.Token,
			Replica: rec.Replica,
			Request: rec.Request,
			valid:   session.Valid,
		})
		entry.Ended = r.world.Wall().UTC()
		r.finish(key, entry)
	}()
}

// call runs the job's work in a goroutine of its own, so that a panic or runtime.Goexit in it, or in the error it returns,
// ends nothing else.
func (r *runner) call(ctx context.Context, do Func, run Run) (outcome Outcome, detail string, permanent bool) {
	done := make(chan struct{})
	go func() {
		outcome, detail = Failed, "the job ended its goroutine by runtime.Goexit"
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				outcome, detail = Failed, clip(fmt.Sprintf("panic: %v\n%s", p, debug.Stack()), maxDetail)
				r.log.Error("job panicked", "job", run.Job, "tick", run.Tick, "attempt", run.Attempt, "error", detail)
			}
		}()
		err := do(ctx, run)
		outcome, detail = judge(err, context.Cause(ctx))
		_, permanent = errors.AsType[*backoff.PermanentError](err)
	}()
	<-done
	return outcome, detail, permanent
}

// judge turns what a job returned, and why its context ended, into an outcome. A job that finished its work in spite of
// all has succeeded. One that had to stop because its replica did, or lost its session, is interrupted: OnInterrupt says
// what comes next.
func judge(err, cause error) (Outcome, string) {
	switch {
	case err == nil:
		return Succeeded, ""
	case errors.Is(cause, context.DeadlineExceeded):
		return TimedOut, clip(err.Error(), maxDetail)
	case errors.Is(cause, ErrCancelled) || errors.Is(cause, ErrReplaced):
		if errors.Is(err, cause) || errors.Is(err, context.Canceled) {
			return Cancelled, "" // the ledger knows why
		}
		return Cancelled, clip(err.Error(), maxDetail)
	case errors.Is(err, cause):
		return Interrupted, clip(err.Error(), maxDetail)
	case cause != nil:
		return Interrupted, clip(fmt.Sprintf("%v: %v", cause, err), maxDetail)
	case errors.Is(err, ErrStopping): // the job was told by somebody else that its replica stops
		return Interrupted, clip(err.Error(), maxDetail)
	default:
		return Failed, clip(err.Error(), maxDetail)
	}
}

// close makes sure that no claim of a term up to token starts any more, once that term's loop has returned.
func (r *runner) close(token uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = max(r.closed, token)
	r.doubt = true
}

// owns says what this replica knows of a claim under its name: whether it is executing it, or has its end to tell.
func (r *runner) owns(key claimKey) (active, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, active = r.active[key]
	_, ended = r.ended[key]
	return active, ended
}

// running returns how many runs are executed now.
func (r *runner) running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.active)
}

// unsettled reports whether the ledger holds, or may come to hold, runs under this replica's name.
func (r *runner) unsettled() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.doubt || len(r.active) > 0 || len(r.ended) > 0
}

// closedUpTo returns the token of the newest term whose loop has returned, and whether claims of it may still come to
// light.
func (r *runner) closedUpTo() (token uint64, doubt bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.closed, r.doubt
}

// certain ends the doubt that the close of terms up to token has raised.
func (r *runner) certain(token uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed == token {
		r.doubt = false
	}
}

// halt makes sure that nothing is started any more, and returns how many runs go on.
func (r *runner) halt() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.halted = true
	return len(r.active)
}

// stop cancels all runs.
func (r *runner) stop(cause error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range r.active {
		a.cancel(cause)
	}
}

// giveUp lets all sessions go although runs may still be executed, and returns how many are; their ends are not told.
func (r *runner) giveUp() int {
	r.mu.Lock()
	r.gaveUp = true
	var release []func()
	for _, a := range r.active {
		release = append(release, a.release)
		a.release = func() {}
	}
	for _, rep := range r.ended {
		release = append(release, rep.release)
		rep.release = func() {}
	}
	n := len(r.active)
	r.mu.Unlock()
	for _, f := range release {
		f()
	}
	return n
}
