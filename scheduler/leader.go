package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/election"
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

	start    time.Time // of the term
	wall     time.Time // the wall clock at the last step
	at       time.Time // what that step took for now
	adopted  int       // version of the scheduler's jobs that the book has
	cleaned  time.Time // last housekeeping
	looked   time.Time // last look at sessions and inbox; monotonic
	alive    map[string]bool
	inboxDue bool
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
				done <- fmt.Errorf("scheduler: the leader's loop panicked: %v", p)
			}
		}()
		done <- s.newLeader(term).run(ctx)
	}()
	watch := time.NewTicker(limit / 8)
	defer watch.Stop()
	for {
		select {
		case err := <-done:
			return s.verdict(ctx, err)
		case <-watch.C:
			if s.standstill() > limit {
				s.log.Error("scheduling loop stands still, leadership is given up", "token", term.Token(), "limit", limit)
				return errStandstill
			}
		}
	}
}

// verdict says what the end of a term's loop means for Run.
func (s *Scheduler) verdict(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case isPermanent(err):
		s.fail(err)
		return election.ErrStop
	}
	s.log.Error("term ends", "error", err)
	return err
}

func (s *Scheduler) newLeader(term *election.Term) *leader {
	return &leader{
		scheduler: s,
		term:      term,
		waiting:   make(map[*jobState]bool),
		start:     s.world.Wall().UTC(),
		wall:      s.world.Wall().UTC(),
		book: &book{
			store:  s.store,
			group:  s.cfg.Group,
			term:   term,
			log:    s.log.With("token", term.Token()),
			world:  s.world,
			slots:  s.cfg.History,
			memory: s.memory,
			jobs:   make(map[string]*jobState),
			runs:   make(map[string]*runRecord),
			seen:   make(map[string]int64),
		},
	}
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
		timer := time.NewTimer(l.sleep())
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-l.scheduler.bell:
		case <-timer.C:
		}
		timer.Stop()
	}
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
	if l.lookDue() {
		if err := l.lookAround(ctx); err != nil {
			return err
		}
	} else if l.scheduler.inbox.Swap(false) || l.inboxDue {
		if err := l.readInbox(ctx); err != nil {
			return err
		}
	}
	if err := l.adopt(now); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := l.startReruns(now); err != nil {
		return err
	}
	if err := l.startDue(now); err != nil {
		return err
	}
	return l.book.flush()
}

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

// revisit has a job looked at in this step or the next.
func (l *leader) revisit(j *jobState) {
	j.next = l.at
	l.agenda.set(j)
}

// sleep returns how long nothing has to be done unless the bell rings.
func (l *leader) sleep() time.Duration {
	now := l.now()
	d := maxSleep
	if j := l.agenda.first(); j != nil {
		d = min(d, j.next.Sub(now))
	}
	waits, foreign := false, false
	for _, rec := range l.book.runs {
		switch {
		case rec.waits():
			if j := l.book.jobs[rec.Job]; j != nil && j.def != nil {
				d = min(d, max(rec.NotBefore.Sub(now), sessionRetry/10))
				waits = true
			}
		case rec.Replica != l.scheduler.elector.ID():
			foreign = true
		}
	}
	if waits && l.free() <= 0 { // an end will ring the bell
		d = max(d, sessionRetry)
	}
	if foreign {
		d = min(d, l.lookEvery()-time.Since(l.looked))
	}
	if l.inboxDue {
		d = 0
	}
	return max(d, time.Millisecond)
}

// lookEvery is how often the leader looks for runs whose session has ended, while other replicas have some: at each
// renewal.
func (l *leader) lookEvery() time.Duration { return l.term.Lease().TTL / 3 }

func (l *leader) lookDue() bool {
	if time.Since(l.looked) < l.lookEvery() {
		return false
	}
	own := l.scheduler.elector.ID()
	for _, rec := range l.book.runs {
		if !rec.waits() && rec.Replica != own {
			return true
		}
	}
	return false
}
