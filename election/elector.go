package election

import (
	"context"
	"errors"

	"github.com/go-singleton/singleton/store"
)

// Causes of a term's end, read with context.Cause; ErrStop is for lead functions.
var (
	ErrLost       = store.ErrLost // the store says that the lease is not ours
	ErrExpired    = errors.New("election: lease could not be renewed in time")
	ErrResigned   = errors.New("election: resigned")
	ErrOverdue    = errors.New("election: work goes on after its lease has ended") // from Check
	ErrStop       = errors.New("election: stop")                                   // lead returns it to end Run with nil
	ErrNotRunning = errors.New("election: Run is not running")                     // from Hold
)

// Elector campaigns for a group; its methods are safe for concurrent use.
type Elector struct {
	leases store.Leases
	cfg    Config
}

// New returns an elector that campaigns once Run is called. Its errors are about cfg.
func New(leases store.Leases, cfg Config) (*Elector, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	return &Elector{leases: leases, cfg: cfg}, nil
}

// Run campaigns, calls lead while this replica leads, and starts over. It returns nil once ctx has ended or lead has
// returned ErrStop, and an error only for a fault that no retry can heal (store.ErrPermanent); in either case the work
// has returned by then, and every Hold has been released.
//
// The context of lead ends, with its cause, guard before anyone else can lead, and when ctx ends or Resign is called; in
// the latter two the lease goes on being renewed until lead has returned. An error, a panic or a runtime.Goexit of lead
// while its context lives ends the term and is followed by a cool-down that grows from one such end to the next; so does
// nil, which is a voluntary end.
//
// Run may be called again after it has returned; a second one at the same time is an error.
func (e *Elector) Run(ctx context.Context, lead func(context.Context, *Term) error) error {
	return ErrNotRunning // being built
}

// Resign ends the current term with the cause ErrResigned, waits until its work has returned and the lease has been
// released, and lets another replica lead first: this one campaigns again after a cool-down. It returns nil at once when
// this replica does not lead, and the cause of ctx when that ends first; the term ends all the same. Lead itself must not
// call it: it would wait for itself.
func (e *Elector) Resign(ctx context.Context) error { return nil }

// Term returns the current term, or nil while this replica does not lead.
func (e *Elector) Term() *Term { return nil }

// Leader asks the store who leads; store.ErrNoLeader when nobody does.
func (e *Elector) Leader(ctx context.Context) (store.Leader, error) {
	return e.leases.Leader(ctx, e.cfg.Group)
}

// ID returns the replica's unique ID. It changes when the replica needs another session: at a second Run, and when the
// one it had has ended.
func (e *Elector) ID() string { return e.cfg.ID }

// Check returns nil while all is well: use it for liveness. It returns an error that wraps ErrOverdue when work goes on
// past its lease, and another one when Run's loop stands still. That the store does not answer is no failure: a restart
// of this process would not heal it.
func (e *Elector) Check() error { return nil }
