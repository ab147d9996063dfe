package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
)

// Times of the leader's loop.
const (
	maxSleep      = time.Minute            // it looks at the wall clock at least this often
	housekeeping  = time.Hour              // and for what has grown old
	keepSeen      = time.Hour              // how long a message that was acted on is known again
	keepUnowned   = 7 * 24 * time.Hour     // how long a job that no binary has is kept
	maxAhead      = 30 * time.Second       // how far a claim may lie ahead of the store's clock
	clockStep     = 2 * time.Second        // a wall clock that goes back by more is reported
	sessionRetry  = 100 * time.Millisecond // when to look again whether this replica's session is valid
	minStandstill = 2 * time.Minute        // S7
)

// leader is one term of this replica: its loop reads the ledger and from then on is the only one that writes it.
type leader struct {
	scheduler *Scheduler
	term      *election.Term
	book      *book
	agenda    agenda
	waiting   map[*jobState]bool
	requests  []asked // that were read from the inbox

	start   time.Time // of the term
	found   position  // how far the ledger had got before it
	wall    time.Time // the wall clock at the last step
	at      time.Time // what that step took for now
	adopted int       // version of the scheduler's jobs that the book has
	cleaned time.Time // last housekeeping
	looked  time.Time // last look at sessions and inbox; monotonic

	alive    map[string]bool      // who had a session at that look
	lastSeen map[string]time.Time // when a replica was last seen to have one, in this term
}

// lead is called by the elector for each term. The loop runs in a goroutine of its own, so that one that stands still
// can be left behind: what it still tries is refused by the store, and by the runner.
func (s *Scheduler) lead(ctx context.Context, term *election.Term) error {
	limit := max(minStandstill, 4*term.Lease().TTL)
	s.progress()
	s.leading.Store(true)
	defer func() {
		s.runner.close(term.Token())
		s.leading.Store(false)
		s.ringRounds()
	}()

	done := make(chan error, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				done <- fmt.Errorf("scheduler: the leader's loop panicked: %v\n%s", p, debug.Stack())
			}
		}()
		done <- s.newLeader(term).run(ctx)
	}()
	watch := time.NewTicker(limit / 8)
	defer watch.Stop()
	for {
		select {
		case err := <-done:
			return s.verdict(ctx, term, err)
		case <-watch.C:
			if s.standstill() > limit {
				return errStandstill // and not a word in a log that may be what stands still
			}
		}
	}
}

// verdict says what the end of a term's loop means for Run.
func (s *Scheduler) verdict(ctx context.Context, term *election.Term, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, store.ErrPermanent):
		s.fail(err)
		return err
	case errors.Is(err, store.ErrGap): // while the lease holds: whoever leads next must know before it claims anything
		a := &attendant{Scheduler: s}
		a.tell(term.Context())
	}
	s.log.Error("term ends", "token", term.Token(), "error", err)
	return err
}

func (s *Scheduler) newLeader(term *election.Term) *leader {
	l := &leader{
		scheduler: s,
		term:      term,
		waiting:   make(map[*jobState]bool),
		lastSeen:  make(map[string]time.Time),
		wall:      s.world.Wall().Round(0).UTC(),
		book: &book{
			store: s.store,
			group: s.cfg.Group,
			term:  term,
			log:   s.log.With("token", term.Token()),
			world: s.world,
			slots: s.cfg.History,
			jobs:  make(map[string]*jobState),
			runs:  make(map[string]*runRecord),
			seen:  make(map[string]int64),
			asked: make(map[string]json.RawMessage),
		},
	}
	l.start = l.now()
	return l
}

// run takes over and then does step after step until the term ends.
func (l *leader) run(ctx context.Context) error {
	defer l.book.batch.fail()
	if err := l.takeOver(ctx); err != nil {
		return err
	}
	l.book.log.Info("scheduling", "jobs", len(l.book.jobs), "runs", len(l.book.runs))
	for {
		l.scheduler.progress()
		if err := l.step(ctx); err != nil {
			return err
		}
		l.scheduler.progress()
		if !l.doze(ctx, l.sleep()) {
			return context.Cause(ctx)
		}
	}
}

// doze waits until something may have to be done; false when ctx has ended, whatever else has happened.
func (l *leader) doze(ctx context.Context, d time.Duration) bool {
	if ctx.Err() != nil {
		return false // and leaves the bell to the next term
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-l.scheduler.bell:
	case <-timer.C:
	}
	l.scheduler.world.WaitTurn()
	return ctx.Err() == nil
}

// now is the wall clock in UTC, but not so far ahead of the store's that a wrong clock could silence a job for days.
func (l *leader) now() time.Time {
	wall := l.scheduler.world.Wall().Round(0).UTC()
	if wall.Before(l.wall.Add(-clockStep)) {
		l.book.log.Warn("wall clock has gone back; ticks that were dealt with do not run again", "from", l.wall, "to", wall)
	}
	l.wall = wall
	l.at = earlier(wall, l.term.StoreTime().Add(maxAhead).UTC())
	return l.at
}

// step brings everything that has happened into the ledger and starts what is due.
func (l *leader) step(ctx context.Context) error {
	now := l.now()
	if err := l.takeReports(ctx, now); err != nil {
		return err
	}
	var err error
	if time.Since(l.looked) >= l.lookEvery() {
		err = l.lookAround(ctx)
	} else if l.scheduler.inbox.Swap(false) {
		err = l.readInbox(ctx)
	}
	if err != nil {
		return err
	}
	if err := l.adopt(now); err != nil {
		return err
	}
	if err := l.answer(); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := l.startReruns(ctx, now); err != nil {
		return err
	}
	if err := l.startDue(ctx, now); err != nil {
		return err
	}
	return l.book.flush()
}

// file has a job looked at then; the zero time is never.
func (l *leader) file(j *jobState, next time.Time) {
	j.next = next
	l.agenda.set(j)
}

// revisit has a job looked at in this step or the next.
func (l *leader) revisit(j *jobState) { l.file(j, l.at) }

// sleep returns how long nothing has to be done unless the bell rings.
func (l *leader) sleep() time.Duration {
	now := l.now()
	d := min(maxSleep, l.lookEvery()-time.Since(l.looked))
	if j := l.agenda.first(); j != nil {
		d = min(d, j.next.Sub(now))
	}
	heads := l.heads()
	for _, rec := range l.book.runs {
		switch wait := rec.NotBefore.Sub(now); {
		case !l.restartable(rec) || l.held(rec, heads):
		case wait > 0:
			d = min(d, wait)
		case l.free() > 0: // else an end will ring the bell
			d = min(d, sessionRetry)
		}
	}
	return max(d, time.Millisecond)
}

// lookEvery is how often the leader looks at sessions and the inbox without being woken: at each renewal while other
// replicas have runs, whose sessions may end; else once in a while, since a hint may be lost.
func (l *leader) lookEvery() time.Duration {
	own := l.scheduler.elector.ID()
	for _, rec := range l.book.runs {
		if !rec.waits() && rec.Replica != own {
			return l.term.Lease().TTL / 3
		}
	}
	return maxSleep
}
