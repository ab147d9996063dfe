package spell_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/go-singleton/singleton/internal/spell"
)

func TestAnAlarmIsLoggedOncePerSpellAndMethod(t *testing.T) {
	var text strings.Builder
	log := slog.New(slog.NewTextHandler(&text, nil))
	var s spell.Spells
	for range 3 { // spells
		for range 5 {
			s.Alarm(t.Context(), log, "commit", errors.New("disk full"), "free space")
			s.End("renew") // another method goes well meanwhile
		}
		s.End("commit")
	}
	s.Alarm(t.Context(), log, "commit", errors.New("disk full"), "free space")
	s.Alarm(t.Context(), log, "commit", errors.New("out of memory"), "raise maxmemory") // another one
	s.Alarm(t.Context(), log, "post", errors.New("out of memory"), "raise maxmemory")   // of another method
	if n := strings.Count(text.String(), "level=ERROR"); n != 6 {
		t.Errorf("%d lines, want 6:\n%s", n, text.String())
	}
	if s.Begin("post", "raise maxmemory") || !s.Begin("post", "something else") {
		t.Error("an alarm is new when it is another")
	}
}
