package scheduler

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/go-singleton/singleton/store"
)

// gather waits, where there is no ledger, for what other replicas may remember of one: those who have led look at the
// ledger's position at least every half lease. It returns what the new ledger is to hold.
func (l *leader) gather(ctx context.Context, lost *recall, jobs, runs []store.Record) (*recall, error) {
	b := l.book
	all := newRecall(position{})
	for _, r := range jobs {
		all.Jobs[r.Key] = r.Value
	}
	for _, r := range runs {
		all.Runs[r.Key] = r.Value
	}
	if lost != nil {
		all.merge(lost)
	}
	b.log.Info("no ledger found; waiting for replicas that remember one")
	longest := l.term.Lease().TTL
	for began := time.Now(); ; {
		l.scheduler.progress()
		longest = max(longest, l.longestLease(ctx)) // replicas come back one by one
		l.scheduler.inbox.Store(false)
		inbox, err := b.read(ctx, store.InboxBucket)
		if err != nil {
			return nil, err
		}
		for _, r := range inbox {
			if m, err := decodeMessage(r.Value); err == nil && m.Kind == kindMemory {
				all.merge(m.Memory)
			}
		}
		left := longest + time.Second - time.Since(began)
		if left <= 0 {
			return all, nil
		}
		if !l.doze(ctx, min(left, l.term.Lease().TTL/3)) {
			return nil, context.Cause(ctx)
		}
	}
}

func records(from map[string]json.RawMessage) []store.Record {
	var all []store.Record
	for _, k := range slices.Sorted(maps.Keys(from)) {
		all = append(all, store.Record{Key: k, Value: from[k]})
	}
	return all
}

// write makes a ledger of the book: the records first, the marker last. A ledger without a marker is one whose making was
// cut short.
func (l *leader) write(now time.Time) error {
	b := l.book
	for _, j := range b.sorted() {
		if err := b.step(); err != nil {
			return err
		}
		b.putJob(j)
	}
	for _, id := range slices.Sorted(maps.Keys(b.runs)) {
		if err := b.step(); err != nil {
			return err
		}
		b.put(bucketRun, id, b.runs[id])
	}
	if err := l.adopt(now); err != nil {
		return err
	}
	if err := b.flush(); err != nil {
		return err
	}
	b.put(bucketLedger, markerKey, markerRecord{Version: formatVersion, Created: now})
	return b.flush()
}

// longestLease returns the longest lease of the replicas that are alive.
func (l *leader) longestLease(ctx context.Context) time.Duration {
	var replicas []store.Replica
	err := l.ask(ctx, func(ctx context.Context) (err error) {
		replicas, err = l.book.store.Replicas(ctx, l.book.group)
		return err
	})
	if err != nil {
		return 0
	}
	return min(longest(replicas), time.Hour)
}

// longest returns the longest lease that replicas tell of.
func longest(replicas []store.Replica) (lease time.Duration) {
	for _, r := range replicas {
		lease = max(lease, readInfo(r.Info).lease())
	}
	return lease
}
