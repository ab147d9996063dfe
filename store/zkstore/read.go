package zkstore

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/store"
)

// page is how many records Read fetches between two looks at the lease.
const page = 100

// Read implements store.Ledger.
func (s *Store) Read(ctx context.Context, name string, lease *store.Lease, bucket string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		if err := store.CheckRead(name, lease, bucket); err != nil {
			yield(store.Record{}, err)
			return
		}
		err := s.read(ctx, name, lease, bucket, func(r store.Record) bool { return yield(r, nil) })
		if err != nil {
			yield(store.Record{}, s.judge(ctx, "read", err))
		}
	}
}

func (s *Store) read(ctx context.Context, name string, lease *store.Lease, bucket string, yield func(store.Record) bool) error {
	l, err := s.begin(ctx)
	if err != nil {
		return err
	}
	g, path := s.group(name), s.bucketPath(name, bucket)
	holds := func() error {
		if lease == nil {
			return nil
		}
		_, err := s.stands(ctx, l, g, *lease, true)
		return err
	}
	if err := holds(); err != nil {
		return err
	}
	names, err := children(ctx, l, path)
	if err != nil {
		return err
	}
	keys := make([]string, len(names))
	for i, n := range names {
		if keys[i], err = unescape(n); err != nil {
			return foreign(path, err)
		}
	}
	slices.SortFunc(keys, strings.Compare)
	for chunk := range slices.Chunk(keys, page) {
		nodes, err := each(ctx, l, chunk, func(c *zk.Conn, key string) (node, error) {
			data, stat, err := c.Get(s.recordPath(name, bucket, key))
			if errors.Is(err, zk.ErrNoNode) {
				return node{}, nil // it has gone meanwhile
			}
			return node{data, stat}, err
		})
		if err != nil {
			return err
		}
		if err := holds(); err != nil {
			return err
		}
		for i, n := range nodes {
			if n.stat != nil && !yield(store.Record{Key: chunk[i], Value: n.data}) {
				return nil
			}
		}
	}
	return nil
}

// children returns the names of a znode's children as they were when it was called, none where there is no such znode.
func children(ctx context.Context, l *link, path string) ([]string, error) {
	if err := catchUp(ctx, l, path); err != nil {
		return nil, err
	}
	names, err := call(ctx, l, func(c *zk.Conn) ([]string, error) {
		names, _, err := c.Children(path)
		return names, err
	})
	if errors.Is(err, zk.ErrNoNode) {
		return nil, nil
	}
	return names, err
}
