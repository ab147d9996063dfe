package world

import (
	"context"
	"time"
)

// Rest waits for d, a signal (nil is none), or the end of ctx, and reports whether ctx lives.
func Rest(ctx context.Context, d time.Duration, signal <-chan struct{}) bool {
	if d > 0 && ctx.Err() == nil {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-signal:
		}
	}
	From(ctx).WaitTurn()
	return ctx.Err() == nil
}
