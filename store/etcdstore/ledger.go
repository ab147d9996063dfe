package etcdstore

import (
	"context"

	"go.etcd.io/etcd/client/v3"

	"github.com/go-singleton/singleton/internal/values"
	"github.com/go-singleton/singleton/store"
)

// Commit implements store.Ledger.
func (s *Store) Commit(ctx context.Context, lease store.Lease, number uint64, changes []store.Change) error {
	if err := store.CheckCommit(lease, number, changes); err != nil {
		return err
	}
	return s.call(ctx, "commit", func(ctx context.Context, l *link) error { return s.commit(ctx, l, lease, number, changes) })
}

// commit applies the changes in one transaction that is guarded by the lease and by the ledger's position: first the one
// that is to be expected, then, where it is another, the one that was found.
func (s *Store) commit(ctx context.Context, l *link, lease store.Lease, number uint64, changes []store.Change) error {
	ledger, held := s.ledgerKey(lease.Group), s.leaseKey(lease.Group)
	then := []clientv3.Op{clientv3.OpPut(ledger, values.Position{Token: lease.Token, Number: number}.Encode())}
	for _, c := range changes {
		key := s.recordKey(lease.Group, c.Bucket, c.Key)
		if c.Delete {
			then = append(then, clientv3.OpDelete(key))
		} else {
			then = append(then, clientv3.OpPut(key, string(c.Value)))
		}
	}
	expected := entry{key: ledger}.unchanged() // there is none yet
	if number > 1 {
		expected = clientv3.Compare(clientv3.Value(ledger), "=", values.Position{Token: lease.Token, Number: number - 1}.Encode())
	}
	for {
		answer, err := l.txn(ctx, []clientv3.Cmp{s.stands(lease), expected}, then, []clientv3.Op{clientv3.OpGet(held), clientv3.OpGet(ledger)})
		if err != nil || answer.Succeeded {
			return err
		}
		seen := entries(answer, held, ledger)
		at, err := read(seen[1], values.DecodePosition)
		if err != nil {
			return err
		}
		last := uint64(0) // of this lease
		if at.Token == lease.Token {
			last = at.Number
		}
		switch {
		case number == last:
			return nil
		case number < last:
			return store.ErrStale
		case string(seen[0].value) != grantOf(lease).encode():
			return store.ErrLost
		case number > last+1:
			return store.ErrGap
		}
		expected = seen[1].unchanged()
	}
}

// Position implements store.Ledger.
func (s *Store) Position(ctx context.Context, group string) (token, number uint64, err error) {
	if err := store.CheckName("group", group); err != nil {
		return 0, 0, err
	}
	var at values.Position
	err = s.call(ctx, "position", func(ctx context.Context, l *link) error {
		seen, err := look(ctx, l, s.ledgerKey(group))
		if err != nil {
			return err
		}
		at, err = read(seen[0], values.DecodePosition)
		return err
	})
	return at.Token, at.Number, err
}

// Post implements store.Ledger. Messages that come at the same instant may fill an inbox a little beyond its limit.
func (s *Store) Post(ctx context.Context, group, id string, message []byte) error {
	if err := store.CheckMessage(group, id, message); err != nil {
		return err
	}
	return s.call(ctx, "post", func(ctx context.Context, l *link) error {
		inbox, key := s.bucketPrefix(group, store.InboxBucket), s.recordKey(group, store.InboxBucket, id)
		answer, err := l.txn(ctx, nil, []clientv3.Op{
			clientv3.OpGet(key, clientv3.WithKeysOnly()), clientv3.OpGet(inbox, clientv3.WithPrefix(), clientv3.WithCountOnly()),
		}, nil)
		if err != nil {
			return err
		}
		message := clientv3.OpPut(key, string(message))
		switch there := entries(answer, key)[0]; {
		case there.exists():
			return nil
		case answer.Responses[1].GetResponseRange().Count >= store.MaxInbox:
			return store.ErrFull
		default:
			return l.change(ctx, []clientv3.Cmp{there.unchanged()}, message)
		}
	})
}
