package store

import (
	"errors"
	"fmt"
)

// Errors that callers branch on.
var (
	ErrLost      = errors.New("store: not held")
	ErrNoLeader  = errors.New("store: no leader")
	ErrEnded     = errors.New("store: session has ended")
	ErrStale     = errors.New("store: a later commit of this lease has been applied")
	ErrGap       = errors.New("store: records have been lost")
	ErrTooLarge  = errors.New("store: over a limit")
	ErrFull      = errors.New("store: inbox full")
	ErrPermanent = errors.New("store: asking again will not help") // wrapped by errors that say what to do
)

// Definite reports whether err says that a call was surely not done. After any other error, nil aside, nobody knows: ask
// again.
func Definite(err error) bool {
	if _, held := errors.AsType[*HeldError](err); held {
		return true
	}
	for _, e := range []error{ErrLost, ErrNoLeader, ErrEnded, ErrStale, ErrGap, ErrTooLarge, ErrFull, ErrPermanent} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// HeldError says who holds the lease.
type HeldError struct {
	Leader   Leader
	Replicas int // that have a session, who asks among them; 0 where the store does not say

	// Taken reports whether the lease of a later term is known to have been granted, without asking anyone: like hints, it
	// may be late or never say so. It is safe for concurrent use, and nil where the store hears of no such thing.
	Taken func() bool
}

// Error names the leader.
func (e *HeldError) Error() string {
	return fmt.Sprintf("store: lease is held by %s for at most %v", e.Leader.Replica, e.Leader.Remaining)
}

// Permanent wraps err, which may be nil, as one that no retry heals; remedy tells a person what to do.
func Permanent(remedy string, err error) error { return &permanentError{remedy: remedy, cause: err} }

type permanentError struct {
	remedy string
	cause  error
}

// Error says what happened and what to do about it.
func (e *permanentError) Error() string {
	if e.cause == nil {
		return e.remedy
	}
	return e.cause.Error() + ": " + e.remedy
}

// Unwrap lets errors.Is find ErrPermanent and the cause.
func (e *permanentError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrPermanent}
	}
	return []error{ErrPermanent, e.cause}
}
