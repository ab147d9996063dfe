package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/go-singleton/singleton/store"
)

func TestDefinite(t *testing.T) {
	for _, err := range []error{
		store.ErrLost, store.ErrNoLeader, store.ErrEnded, store.ErrStale, store.ErrGap, store.ErrTooLarge, store.ErrFull,
		store.Permanent("remedy", nil), &store.HeldError{}, fmt.Errorf("a method: %w", store.ErrLost),
	} {
		if !store.Definite(err) {
			t.Errorf("%v: the call was not done", err)
		}
	}
	for _, err := range []error{nil, context.DeadlineExceeded, errors.New("connection reset")} {
		if store.Definite(err) {
			t.Errorf("%v: nobody knows", err)
		}
	}
}
