package etcdstore

import (
	"context"
	"iter"
	"strings"

	"go.etcd.io/etcd/client/v3"

	"github.com/go-singleton/singleton/store"
)

// pageSize is how many keys come in one answer.
const pageSize = 100

// page is what is left to read of a range.
type page struct {
	from, end string // from is "" when nothing is left
	guards    []clientv3.Cmp
}

// next reads the next page, in one step with the check of the guards: store.ErrLost when they do not hold.
func (p *page) next(ctx context.Context, l *link) ([]entry, error) {
	answer, err := l.txn(ctx, p.guards, []clientv3.Op{clientv3.OpGet(p.from, clientv3.WithRange(p.end), clientv3.WithLimit(pageSize))}, nil)
	switch {
	case err != nil:
		return nil, err
	case !answer.Succeeded:
		return nil, store.ErrLost
	}
	found := answer.Responses[0].GetResponseRange()
	entries := make([]entry, len(found.Kvs))
	for i, kv := range found.Kvs {
		entries[i] = newEntry(string(kv.Key), found.Kvs[i:])
	}
	p.from = ""
	if found.More {
		p.from = after(entries[len(entries)-1].key)
	}
	return entries, nil
}

// Read implements store.Ledger. Each page is as a majority of the members knows it when it is asked for.
func (s *Store) Read(ctx context.Context, group string, lease *store.Lease, bucket string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := store.CheckRead(group, lease, bucket); err != nil {
			yield(store.Record{}, err)
			return
		}
		prefix := s.bucketPrefix(group, bucket)
		p := page{from: prefix, end: clientv3.GetPrefixRangeEnd(prefix)}
		if lease != nil {
			p.guards = []clientv3.Cmp{s.stands(*lease)}
		}
		for p.from != "" {
			var found []entry
			err := s.call(ctx, "read", func(ctx context.Context, l *link) (err error) {
				found, err = p.next(ctx, l)
				return err
			})
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			for _, e := range found {
				if !yield(store.Record{Key: strings.TrimPrefix(e.key, prefix), Value: e.value}, nil) {
					return
				}
			}
		}
	}
}

// stands guards a transaction: the lease is held.
func (s *Store) stands(l store.Lease) clientv3.Cmp {
	return clientv3.Compare(clientv3.Value(s.leaseKey(l.Group)), "=", grantOf(l).encode())
}
