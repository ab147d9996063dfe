// Package spell has a log say once what lasts: a store whose calls fail for the same reason, one after another, is in a
// spell, which ends with a call that does not.
package spell

import (
	"context"
	"log/slog"
	"sync"
)

// Spells are those of one store, by method. The zero value has none. Its methods are safe for concurrent use.
type Spells struct {
	mu     sync.Mutex
	alarms map[string]string
}

// Begin notes which alarm a method is in, and tells whether it is a new one.
func (s *Spells) Begin(method, alarm string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.alarms[method] == alarm {
		return false
	}
	if s.alarms == nil {
		s.alarms = map[string]string{}
	}
	s.alarms[method] = alarm
	return true
}

// End notes that a method is in none.
func (s *Spells) End(method string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.alarms, method)
}

// Alarm logs, once in a spell, that a store cannot keep what a method gives it, and what would help.
func (s *Spells) Alarm(ctx context.Context, log *slog.Logger, method string, err error, remedy string) {
	if s.Begin(method, remedy) {
		log.ErrorContext(ctx, "the store cannot keep what it is given; it is asked again",
			slog.Any("error", err), slog.String("remedy", remedy))
	}
}
