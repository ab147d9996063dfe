package etcdstore

import (
	"context"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/client/v3"
)

// entry is a key as it was read: revision is 0 where there is none.
type entry struct {
	key      string
	revision int64 // of its last change
	lease    clientv3.LeaseID
	value    []byte
}

func (e entry) exists() bool { return e.revision != 0 }

// unchanged guards a transaction: the key has not been changed since.
func (e entry) unchanged() clientv3.Cmp {
	return clientv3.Compare(clientv3.ModRevision(e.key), "=", e.revision)
}

// look reads keys, all of one instant, as a majority of the members knows them.
func look(ctx context.Context, l *link, keys ...string) ([]entry, error) {
	ops := make([]clientv3.Op, len(keys))
	for i, key := range keys {
		ops[i] = clientv3.OpGet(key)
	}
	answer, err := l.txn(ctx, nil, ops, nil)
	if err != nil {
		return nil, err
	}
	return entries(answer, keys...), nil
}

// entries are those that the reads of a transaction have found.
func entries(answer *clientv3.TxnResponse, keys ...string) []entry {
	found := make([]entry, len(keys))
	for i, key := range keys {
		found[i] = newEntry(key, answer.Responses[i].GetResponseRange().Kvs)
	}
	return found
}

func newEntry(key string, kvs []*mvccpb.KeyValue) entry {
	if len(kvs) == 0 {
		return entry{key: key}
	}
	return entry{key: key, revision: kvs[0].ModRevision, lease: clientv3.LeaseID(kvs[0].Lease), value: kvs[0].Value}
}

// hanging decodes what an entry holds that must hang on an etcd lease, if it exists.
func hanging[T any](e entry, decode func([]byte) (T, error)) (value T, err error) {
	if e.exists() && e.lease == clientv3.NoLease {
		return value, foreign(e.key, errEndure)
	}
	return read(e, decode)
}

// read decodes what an entry holds, if it exists.
func read[T any](e entry, decode func([]byte) (T, error)) (value T, err error) {
	if !e.exists() {
		return value, nil
	}
	if value, err = decode(e.value); err != nil {
		return value, foreign(e.key, err)
	}
	return value, nil
}
