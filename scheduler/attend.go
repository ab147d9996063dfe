package scheduler

import (
	"context"
	"errors"
	"time"

	"github.com/go-singleton/singleton/store"
)

// attendant is what a replica does besides leading: it tells the leader how its runs have ended, compares the open runs
// under its name with its own, and watches for a ledger that has lost what it remembers. A replica that has never led, and
// so has run nothing, sends nothing.
type attendant struct {
	*Scheduler
	subscribed bool      // to news of the inbox
	troubled   bool      // the last call was not answered
	closed     uint64    // the term after which it last compared
	compareAt  time.Time // next
	watchAt    time.Time // next
}

// attend goes on until ctx ends.
func (s *Scheduler) attend(ctx context.Context) {
	a := &attendant{Scheduler: s}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ctx.Err() == nil {
		timer.Reset(max(a.round(ctx), time.Millisecond))
		select {
		case <-ctx.Done():
		case <-s.rounds:
		case <-timer.C:
		}
		s.world.WaitTurn()
	}
}

// round does what is due and returns how long nothing will be.
func (a *attendant) round(ctx context.Context) time.Duration {
	wait := maxSleep
	if !a.subscribe(ctx) {
		wait = a.retry()
	}
	if a.leading.Load() {
		return wait
	}
	if !a.postEnds(ctx) {
		wait = min(wait, a.retry())
	}
	if !a.memory.remembers() {
		return wait
	}
	if token, _ := a.runner.closedUpTo(); token != a.closed {
		a.closed, a.compareAt = token, time.Time{}
	}
	if time.Until(a.watchAt) <= 0 {
		a.watchLedger(ctx)
		a.watchAt = time.Now().Add(a.cfg.Lease / 2)
	}
	if every := a.compareEvery(); time.Until(a.compareAt) <= 0 {
		if !a.compare(ctx) {
			every = a.retry()
		}
		a.compareAt = time.Now().Add(every)
	}
	a.compareAt = earlier(a.compareAt, time.Now().Add(a.compareEvery()))
	return min(wait, time.Until(a.watchAt), time.Until(a.compareAt))
}

// compareEvery is how often a replica that has led compares its runs with the ledger's: at each refresh of its session
// while it has some, else once in a while, in case the store has lost their ends.
func (a *attendant) compareEvery() time.Duration {
	if a.runner.unsettled() {
		return a.cfg.Lease / 3
	}
	return maxSleep
}

func (a *attendant) retry() time.Duration { return a.world.Between(retryMin, retryMax) }

// ask calls the store once, and reports whether it has answered. The first of several failures in a row is logged; one
// that no retry heals ends Run.
func (a *attendant) ask(ctx context.Context, limit time.Duration, what string, call func(context.Context) error) bool {
	attempt, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := call(attempt)
	switch {
	case err == nil:
		a.troubled = false
		return true
	case ctx.Err() != nil:
	case errors.Is(err, store.ErrPermanent):
		a.fail(err)
	case !a.troubled:
		a.troubled = true
		a.log.Warn("store does not do what it is asked, trying again", "call", what, "error", err)
	}
	return false
}

// subscribe asks to be woken by messages; false when that has to be tried again.
func (a *attendant) subscribe(ctx context.Context) bool {
	if !a.subscribed {
		a.subscribed = a.ask(ctx, attemptTime(a.cfg.Lease), "watch", func(context.Context) error {
			return a.store.Watch(ctx, a.cfg.Group, store.InboxFilled, func() {
				a.inbox.Store(true)
				a.ring()
			})
		})
	}
	return a.subscribed
}

// postEnds posts the ends that are not in the inbox yet; false when it has to be tried again.
func (a *attendant) postEnds(ctx context.Context) bool {
	for _, rep := range a.runner.reports() {
		if rep.posted.IsZero() && !a.postEnd(ctx, rep) {
			return false
		}
	}
	return true
}

func (a *attendant) postEnd(ctx context.Context, rep *report) bool {
	if rep.message == "" {
		rep.message = a.world.ID()
	}
	if !a.post(ctx, rep.message, message{Version: formatVersion, Kind: kindEnd, End: &rep.entry}) {
		return false
	}
	a.runner.posted(rep)
	return true
}

// post puts a message into the inbox; false when it may not be there.
func (a *attendant) post(ctx context.Context, id string, m message) bool {
	return a.ask(ctx, attemptTime(a.cfg.Lease), "post", func(ctx context.Context) error {
		return a.store.Post(ctx, a.cfg.Group, id, encode(m))
	})
}

// compare reads the open runs and finds those under this replica's name: one that the leader wants to end is cancelled, one
// that has ended is told again, one that it does not know was claimed in a term whose commit was never answered, and is told
// as not started. It returns false when the store did not answer.
func (a *attendant) compare(ctx context.Context) bool {
	token, doubt := a.runner.closedUpTo()
	reports := a.runner.reports()
	gone, ok := a.gone(ctx, token, doubt) // before the read: no claim of that term comes after it
	if !ok {
		return false
	}
	var runs []*runRecord
	if !a.ask(ctx, a.cfg.Lease, "read", func(ctx context.Context) (err error) {
		runs, err = a.openRuns(ctx)
		return err
	}) {
		return false
	}
	open, unknown, lost := make(map[claimKey]bool), 0, false
	own := a.elector.ID()
	for _, rec := range runs {
		open[rec.claim()] = true
		a.runner.heed(rec)
		active, ended := a.runner.owns(rec.claim())
		switch {
		case active || ended || rec.Replica != own:
		case a.runner.again(rec.claim()):
			lost = true
		case rec.Token > token: // it may only be on its way
			unknown++
		default:
			unknown++
			a.log.Warn("run was claimed but never started", "job", rec.Job, "tick", rec.tick(), "attempt", rec.Attempt)
			a.runner.refuse(*rec, func() {})
		}
	}
	for _, rep := range reports {
		switch {
		case rep.posted.IsZero():
		case !open[rep.key()]:
			a.runner.settle(rep.key())
		case time.Since(rep.posted) >= a.cfg.Lease/3 && !a.postEnd(ctx, rep): // the leader has had its time
			return false
		}
	}
	if gone && unknown == 0 {
		a.runner.certain(token)
	}
	if lost { // before its ends: other attempts may have followed those
		a.tell(ctx)
	}
	return true
}

// gone reports whether the lease of a term, and of all before it, is over in the store, so that nothing it has sent can be
// applied any more; not ok when the store does not say. It asks only where there is a doubt.
func (a *attendant) gone(ctx context.Context, token uint64, doubt bool) (gone, ok bool) {
	if !doubt {
		return true, true
	}
	ok = a.ask(ctx, attemptTime(a.cfg.Lease), "leader", func(ctx context.Context) error {
		leader, err := a.store.Leader(ctx, a.cfg.Group)
		if errors.Is(err, store.ErrNoLeader) {
			err = nil
		}
		gone = leader.Token != token
		return err
	})
	return gone, ok
}

// openRuns reads the runs that are open and claimed.
func (a *attendant) openRuns(ctx context.Context) ([]*runRecord, error) {
	var runs []*runRecord
	for r, err := range a.store.Read(ctx, a.cfg.Group, nil, bucketRun) {
		if err != nil {
			return nil, err
		}
		if rec, err := decodeRun(r); err == nil && !rec.waits() {
			runs = append(runs, rec)
		}
	}
	return runs, nil
}

// watchLedger tells the leader what this replica remembers when the ledger is behind that.
func (a *attendant) watchLedger(ctx context.Context) {
	var at position
	if a.ask(ctx, attemptTime(a.cfg.Lease), "position", func(ctx context.Context) (err error) {
		at.token, at.number, err = a.store.Position(ctx, a.cfg.Group)
		return err
	}) && a.memory.lost(at) && !a.leading.Load() {
		a.log.Warn("the ledger has lost records", "found_token", at.token, "found_number", at.number)
		a.tell(ctx)
		a.compareAt = time.Time{} // ends of its runs may be among what was lost
	}
}

// tell posts what this replica remembers.
func (a *attendant) tell(ctx context.Context) {
	parts := a.memory.messages(a.world.ID)
	a.log.Warn("telling the leader what this replica remembers of the ledger", "messages", len(parts))
	for _, part := range parts {
		if !a.post(ctx, part.id, message{Version: formatVersion, Kind: kindMemory, Memory: part.recall}) {
			return
		}
	}
}
