package scheduler

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Whoever waits for a turn says for what, once, and not before two seconds.
func TestOnceSaysWhatItWaitsFor(t *testing.T) {
	for _, tt := range []struct {
		name  string
		until time.Duration // the store does not answer
		held  bool          // by one that has died
		want  string
	}{
		{"nothing", 0, false, ""},
		{"the store, for a moment", time.Second, false, ""},
		{"the store", 10 * time.Second, false, `msg="the store does not answer, trying again" group=g job=a wants=claim gives_up_after=20s error=`},
		{"another replica", 0, true, `msg="waiting for another replica that claims" group=g job=a wants=claim gives_up_after=20s replica=dead`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				if tt.held {
					if _, err := c.store.Acquire(t.Context(), "g", store.Candidate{
						Replica: store.Replica{ID: "dead"}, Nonce: "n", TTL: onceLease, Session: onceLease, Start: true,
					}); err != nil {
						t.Fatal(err)
					}
				}
				began := time.Now()
				c.script.follow(func(call) fate { return fate{lost: time.Since(began) < tt.until} })
				var machine sync.WaitGroup
				defer machine.Wait()
				machine.Go(func() {
					if err := c.attempt("m1", func(context.Context, Run) error { return nil }); err != nil {
						t.Error(err)
					}
				})
				pass(onceQuiet - 10*time.Millisecond)
				if got := c.log(); got != "" {
					t.Errorf("it speaks at once: %s", got)
				}
				pass(20 * time.Second)
				if got := c.log(); strings.Count(got, "\n") > 1 || !strings.Contains(got, tt.want) || (got == "") != (tt.want == "") {
					t.Errorf("the log is %q, want one line with %q", got, tt.want)
				}
			})
		})
	}
}
