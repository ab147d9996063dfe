package election

import (
	"errors"
	"log/slog"
	"time"

	"github.com/go-singleton/singleton/store"
)

// How often a store that does not answer is complained about: a new reason soon, the same spell once in a while.
const (
	otherReason = 10 * time.Second
	sameReason  = time.Minute
)

// trouble logs a spell of calls without an answer: its begin, its reasons now and then, and its end. It belongs to one
// goroutine; the zero value logs nothing.
type trouble struct {
	log   func() *slog.Logger
	call  string // what is asked, for the log
	spell *spell // the one that goes on; nil is none
}

type spell struct {
	since time.Time // when it was logged first
	last  time.Time // when something was logged of it
	said  string
}

// unanswered notes a call without an answer. A fault that no retry heals is not said to be tried again: it is the error
// of Run, or of the term's end.
func (t *trouble) unanswered(err error) {
	if t.log == nil || errors.Is(err, store.ErrPermanent) {
		return
	}
	now, text := time.Now(), err.Error()
	switch {
	case t.spell == nil:
		t.spell = &spell{since: now}
	case text != t.spell.said && now.Sub(t.spell.last) >= otherReason, now.Sub(t.spell.last) >= sameReason:
	default:
		return
	}
	t.spell.last, t.spell.said = now, text
	t.log().Warn("store does not answer, trying again", "call", t.call, "error", err)
}

// answered ends a spell.
func (t *trouble) answered() {
	if t.spell == nil {
		return
	}
	t.log().Info("store answers again", "call", t.call, "after", time.Since(t.spell.since))
	t.spell = nil
}
