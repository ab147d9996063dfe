package scheduler

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-singleton/singleton/election"
)

func TestOutcomesFollowTheErrorAndTheCause(t *testing.T) {
	failed := errors.New("no such host")
	for _, c := range []struct {
		err, cause error
		want       Outcome
	}{
		{nil, nil, Succeeded},
		{nil, ErrStopping, Succeeded},
		{failed, nil, Failed},
		{failed, context.DeadlineExceeded, TimedOut},
		{failed, ErrStopping, Interrupted},
		{failed, election.ErrExpired, Interrupted},
		{nil, ErrReplaced, Succeeded},
		{ErrReplaced, ErrReplaced, Cancelled},
		{context.Canceled, ErrCancelled, Cancelled},
		{failed, ErrCancelled, Cancelled},
		{fmt.Errorf("killed: %w", ErrStopping), nil, Interrupted},
	} {
		if got, _ := judge(c.err, c.cause); got != c.want {
			t.Errorf("judge(%v, %v) is %s; want %s", c.err, c.cause, got, c.want)
		}
	}
}
