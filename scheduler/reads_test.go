package scheduler

import (
	"context"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

// readings is a store that notes what is read, and whether under a lease.
type readings struct {
	store.Store

	mu          sync.Mutex
	fenced      []string // buckets
	unprotected []string
}

func (s *readings) Read(ctx context.Context, group string, lease *store.Lease, bucket string) iter.Seq2[store.Record, error] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if lease != nil {
		s.fenced = append(s.fenced, bucket)
	} else {
		s.unprotected = append(s.unprotected, bucket)
	}
	return s.Store.Read(ctx, group, lease, bucket)
}

// A server that another has replaced must not serve old watermarks to the leader of the new one.
func TestS1LeaderReadsUnderItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		st := &readings{Store: memstore.New()}
		s, err := New(st, Config{Group: "g", Lease: 3 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		pass(10 * time.Second)
		st.mu.Lock()
		for _, bucket := range []string{bucketLedger, bucketJob, bucketRun, bucketSeen, store.InboxBucket} {
			if !slices.Contains(st.fenced, bucket) {
				t.Errorf("the leader has not read %s under its lease", bucket)
			}
		}
		if len(st.unprotected) > 0 {
			t.Errorf("the leader has read without its lease: %q", st.unprotected)
		}
		st.mu.Unlock()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
