package election

import (
	"context"
	"iter"

	"github.com/go-singleton/singleton/store"
)

// Watch yields the leader of a group now and at each change of its replica or token, without campaigning; the zero
// Leader means nobody. It ends with ctx. Transient faults are retried; a permanent one is yielded and is the last.
func Watch(ctx context.Context, leases store.Leases, group string) iter.Seq2[store.Leader, error] {
	return func(yield func(store.Leader, error) bool) {}
}
