package election

import (
	"context"
	"time"

	"github.com/go-singleton/singleton/internal/world"
)

// keeper is the goroutine that refreshes a held session while no term's renewals do.
type keeper struct {
	session *Session
	cancel  context.CancelFunc
	done    chan struct{}
}

// tend starts a keeper where a session must be kept and nothing does it; mu is held.
func (e *Elector) tend() {
	s := e.session
	if e.renewing || e.keeper != nil || s.holds == 0 || s.life.Over() != nil {
		return
	}
	ctx, cancel := context.WithCancel(s.life.Context())
	k := &keeper{session: s, cancel: cancel, done: make(chan struct{})}
	e.keeper = k
	e.keeps.Go(func() {
		defer close(k.done)
		defer cancel()
		e.keep(ctx, s)
		e.mu.Lock()
		defer e.mu.Unlock()
		e.keeper = nil
		e.tend() // what it was started for may have come back
	})
}

// keep refreshes s, at once and then every third of a lease, until ctx ends or the store says that s has ended.
func (e *Elector) keep(ctx context.Context, s *Session) {
	lease := e.cfg.Lease
	p := pulse{world: world.From(ctx), trouble: trouble{log: e.log, call: "session"}}
	_ = p.beat(ctx, s.life, lease, 0, func(ctx context.Context, sent world.Instant) (time.Duration, error) {
		start, r := e.refresh(s)
		granted, err := e.ledger.Join(ctx, e.cfg.Group, r, lease, start)
		e.heard(s.id, err) // also that it has ended
		if err != nil {
			return 0, err
		}
		// No longer than what was asked for: an acquire that is granted later, unknown to us, sets the store's session to
		// one lease from then.
		granted = min(granted, lease)
		s.life.Extend(sent, granted)
		return granted, nil
	})
}

// keepAgain lets a keeper take over from the renewals of a term.
func (e *Elector) keepAgain() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.renewing = false
	e.tend()
}
