package scheduler

import (
	"context"
	"errors"
	"time"
)

// attend is what this replica does while it does not lead: it tells the leader how its runs have ended, compares the open
// runs under its name with its own, and watches for a ledger that has lost what it remembers. A replica that has never
// led, and so has run nothing, sends nothing.
func (s *Scheduler) attend(ctx context.Context) {
	var (
		closed          uint64 // the term after which it last compared
		compareAt       time.Time
		watchAt         time.Time
		timer           = time.NewTimer(0)
		every, halfTerm = s.cfg.Lease / 3, s.cfg.Lease / 2
	)
	defer timer.Stop()
	for {
		wait := maxSleep
		if !s.leading.Load() {
			if !s.postEnds(ctx) {
				wait = s.world.Between(retryMin, retryMax)
			}
			if token := s.runner.closedUpTo(); token != closed {
				closed, compareAt = token, time.Time{}
			}
			if s.runner.unsettled() {
				if time.Until(compareAt) <= 0 {
					compareAt = time.Now().Add(every)
					if !s.compare(ctx) {
						compareAt = time.Now().Add(s.world.Between(retryMin, retryMax))
					}
				}
				wait = min(wait, time.Until(compareAt))
			}
			if s.memory.remembers() {
				if time.Until(watchAt) <= 0 {
					s.watchLedger(ctx)
					watchAt = time.Now().Add(halfTerm)
				}
				wait = min(wait, time.Until(watchAt))
			}
		}
		timer.Reset(max(wait, time.Millisecond))
		select {
		case <-ctx.Done():
			return
		case <-s.rounds:
		case <-timer.C:
		}
	}
}

// postEnds posts the ends that are not in the inbox yet; false when it has to be tried again.
func (s *Scheduler) postEnds(ctx context.Context) bool {
	for _, rep := range s.runner.reports() {
		if rep.posted {
			continue
		}
		if !s.post(ctx, rep.message, message{Version: formatVersion, Kind: kindEnd, End: &rep.entry}) {
			return false
		}
		s.runner.posted(rep)
	}
	return true
}

// post puts a message into the inbox; false when it may not be there.
func (s *Scheduler) post(ctx context.Context, id string, m message) bool {
	attempt, cancel := context.WithTimeout(ctx, attemptTime(s.cfg.Lease))
	defer cancel()
	err := s.store.Post(attempt, s.cfg.Group, id, encode(m))
	if err != nil && ctx.Err() == nil {
		s.log.Warn("message could not be posted", "kind", m.Kind, "error", err)
	}
	return err == nil
}

// compare reads the open runs and finds those under this replica's name: one that has ended is told again, one that it
// does not know was claimed in a term whose commit was never answered, and is told as not started. It returns false when
// the store did not answer.
func (s *Scheduler) compare(ctx context.Context) bool {
	token := s.runner.closedUpTo()
	reports := s.runner.reports()
	attempt, cancel := context.WithTimeout(ctx, s.cfg.Lease)
	defer cancel()
	open := make(map[claimKey]bool)
	var unknown []runRecord
	own := s.elector.ID()
	for r, err := range s.store.Read(attempt, s.cfg.Group, nil, bucketRun) {
		if err != nil {
			return false
		}
		rec, err := decodeRun(r)
		if err != nil || rec.waits() {
			continue
		}
		open[rec.claim()] = true
		if active, ended := s.runner.owns(rec.claim()); rec.Replica == own && !active && !ended {
			unknown = append(unknown, *rec)
		}
	}
	for _, rep := range reports {
		if !rep.posted {
			continue
		}
		if !open[rep.key()] {
			s.runner.settle(rep.key())
		} else if !s.post(ctx, rep.message, message{Version: formatVersion, Kind: kindEnd, End: &rep.entry}) {
			return false
		}
	}
	for _, rec := range unknown {
		if rec.Token <= token { // a claim of a term that still goes on may only be on its way
			s.log.Warn("run was claimed but never started", "job", rec.Job, "tick", rec.tick(), "attempt", rec.Attempt)
			s.runner.refuse(rec)
		}
	}
	if len(unknown) == 0 {
		s.runner.certain(token)
	}
	return true
}

// watchLedger tells the leader what this replica remembers when the ledger is behind that.
func (s *Scheduler) watchLedger(ctx context.Context) {
	attempt, cancel := context.WithTimeout(ctx, attemptTime(s.cfg.Lease))
	defer cancel()
	token, number, err := s.store.Position(attempt, s.cfg.Group)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			s.log.Debug("ledger's position is not known", "error", err)
		}
		return
	}
	if !s.memory.lost(position{token, number}) || s.leading.Load() {
		return
	}
	s.log.Warn("the ledger has lost records; telling the leader what this replica remembers",
		"found_token", token, "found_number", number)
	for _, part := range s.memory.messages(s.world.ID) {
		if !s.post(ctx, part.id, message{Version: formatVersion, Kind: kindMemory, Memory: part.recall}) {
			return
		}
	}
}
