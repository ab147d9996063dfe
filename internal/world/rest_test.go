package world

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

func TestRestEndsWithTimeSignalOrContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended, end := context.WithCancel(t.Context())
		end()
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		signal := make(chan struct{}, 1)
		for _, c := range []struct {
			name   string
			ctx    context.Context
			d      time.Duration
			signal bool
			took   time.Duration
			lives  bool
		}{
			{"the end of a context", soon, time.Minute, false, time.Second, false},
			{"time", t.Context(), time.Minute, false, time.Minute, true},
			{"no time", t.Context(), 0, false, 0, true},
			{"a signal", t.Context(), time.Minute, true, 0, true},
			{"an ended context", ended, time.Minute, false, 0, false},
			{"an ended context and no time", ended, -1, false, 0, false},
		} {
			if c.signal {
				signal <- struct{}{}
			}
			began := time.Now()
			if lives := Rest(c.ctx, c.d, signal); lives != c.lives || time.Since(began) != c.took {
				t.Errorf("%s: %v after %v, want %v after %v", c.name, lives, time.Since(began), c.lives, c.took)
			}
		}
	})
}
