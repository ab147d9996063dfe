package etcdstore

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// An endpoint that hangs is left after one request that got no answer: what it answered before that, also to the same call,
// says nothing, and what it answered to others says that it serves only while it goes on to.
func TestAnEndpointThatAnswersNobodyAnyMoreIsLeft(t *testing.T) {
	for _, c := range []struct {
		name  string
		heard time.Duration // before the request was given up
		kept  bool
	}{
		{"before the request was sent", 3 * time.Second, false},
		{"just after it was sent, and nothing since", 1900 * time.Millisecond, false},
		{"a moment ago", 100 * time.Millisecond, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New(Config{Endpoints: []string{"a", "b"}})
				defer func() { _ = s.Close() }()
				l := &link{endpoint: "a", idle: make(chan struct{})}
				s.link = l
				time.Sleep(time.Minute)
				l.heard = time.Now().Add(patience - c.heard)
				_, err := ask(t.Context(), l, func(ctx context.Context) (int, error) {
					<-ctx.Done()
					return 0, ctx.Err()
				})
				s.abandon(l, fmt.Errorf("renewing: %w", err))
				if kept := s.link == l; kept != c.kept {
					t.Errorf("kept: %v", kept)
				}
				s.link = nil
			})
		})
	}
}
