package election

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/internal/lifetime"
	"github.com/go-singleton/singleton/store/memstore"
)

func TestUntilDeadlineIsAGuardLongerThanRemaining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lease = 10 * time.Second
		e, err := New(memstore.New(), Config{Group: "g", Lease: lease})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Run(t.Context(), func(_ context.Context, term *Term) error {
			if d := term.UntilDeadline() - term.Remaining(); d != lifetime.Guard(lease) {
				t.Errorf("the deadline is %v after the end", d)
			}
			term.life.End(ErrExpired)
			if term.Remaining() != 0 || term.UntilDeadline() == 0 {
				t.Errorf("over: %v remain, %v to the deadline", term.Remaining(), term.UntilDeadline())
			}
			return ErrStop
		}); err != nil {
			t.Error(err)
		}
	})
}
