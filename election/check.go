package election

import (
	"fmt"
	"log/slog"
	"time"
)

// slack is how late the loop may be before Check says so, or one lease where that is longer.
const slack = 10 * time.Second

// Check returns nil while all is well: use it for liveness. It returns an error that wraps ErrOverdue when work goes on
// past its lease, and another one when Run's loop stands still. That the store does not answer is no failure: a restart
// of this process would not heal it.
func (e *Elector) Check() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.overdue != nil {
		return fmt.Errorf("%w: group %s, token %d", ErrOverdue, e.cfg.Group, e.overdue.Token())
	}
	if late := time.Since(e.due); !e.due.IsZero() && late > 0 {
		return fmt.Errorf("election: the loop of group %s has stood still for %v too long", e.cfg.Group, late.Round(time.Second))
	}
	return nil
}

// expect says that the loop moves on within d.
func (e *Elector) expect(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.due = e.within(d)
}

// within returns when a loop that is expected to move on within d is late.
func (e *Elector) within(d time.Duration) time.Time {
	return time.Now().Add(d + max(slack, e.cfg.Lease))
}

// log returns the logger of this replica.
func (e *Elector) log() *slog.Logger {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.logger
}
