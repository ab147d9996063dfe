package scheduler

import (
	"context"
	"fmt"
	"time"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// createLease is how long Create may take.
const createLease = 5 * time.Second

// Create makes the ledger of a group that the caller knows to be new, such as that of a test or of a store in memory. The
// first leader of a group without a ledger otherwise waits for one lease and a second, in case that there was one and
// the store has lost it. A ledger that exists is left as it is. While somebody leads it is a *store.HeldError.
func Create(ctx context.Context, st store.Store, group string) (err error) {
	w := world.From(ctx)
	lease, err := st.Acquire(ctx, group, store.Candidate{
		Replica: store.Replica{ID: "create-" + w.Suffix()},
		Nonce:   w.Secret(),
		TTL:     createLease,
		Session: createLease,
		Start:   true,
	})
	if err != nil {
		return fmt.Errorf("scheduler: create ledger of %s: %w", group, err)
	}
	defer func() {
		clean, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
		defer cancel()
		if e := st.Release(clean, lease); e != nil && err == nil {
			err = fmt.Errorf("scheduler: create ledger of %s: %w", group, e)
		}
		_ = st.Leave(clean, group, lease.Replica) // it lapses otherwise
	}()
	for _, err := range st.Read(ctx, group, &lease, bucketLedger) {
		return err // there is one, or it is not known
	}
	marker := encode(markerRecord{Version: formatVersion, Created: w.Wall().UTC()})
	return st.Commit(ctx, lease, 1, []store.Change{{Bucket: bucketLedger, Key: markerKey, Value: marker}})
}
