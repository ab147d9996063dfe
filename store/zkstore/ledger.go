package zkstore

import (
	"context"
	"errors"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/internal/values"
	"github.com/go-singleton/singleton/store"
)

// parallel is how many requests of one call are under way at once. A renewal waits behind their answers.
const parallel = 8

// each calls do for all items, some at once, and returns the results in order.
func each[I, T any](ctx context.Context, l *link, items []I, do func(*zk.Conn, I) (T, error)) ([]T, error) {
	results, errs := make([]T, len(items)), make([]error, len(items))
	var workers sync.WaitGroup
	for w := range min(parallel, len(items)) {
		workers.Go(func() {
			for i := w; i < len(items); i += parallel {
				results[i], errs[i] = call(ctx, l, func(c *zk.Conn) (T, error) { return do(c, items[i]) })
				if errs[i] != nil {
					return
				}
			}
		})
	}
	workers.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	return results, nil
}

// Commit implements store.Ledger.
func (s *Store) Commit(ctx context.Context, lease store.Lease, number uint64, changes []store.Change) error {
	if err := store.CheckCommit(lease, number, changes); err != nil {
		return err
	}
	l, err := s.begin(ctx)
	if err == nil {
		g := s.group(lease.Group)
		err = s.commit(ctx, l, g, lease, number, changes, false)
		for err != nil && ctx.Err() == nil && (errors.Is(err, errAgain) || errors.Is(err, store.ErrLost)) {
			final := errors.Is(err, store.ErrLost) // what was seen may have been old: an earlier send may have been applied
			if err = s.commit(ctx, l, g, lease, number, changes, true); final {
				break
			}
		}
	}
	return s.judge(ctx, "commit", err)
}

// commit commits once. With sync it looks at what any server knows; without, at what this one does, for which errAgain
// and ErrLost are no last word.
func (s *Store) commit(ctx context.Context, l *link, g *group, lease store.Lease, number uint64, changes []store.Change, sync bool) error {
	at, version, err := s.position(ctx, l, g, sync)
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
	}
	fence, err := s.stands(ctx, l, g, lease, sync)
	switch {
	case err != nil:
		return err
	case number > last+1 && sync:
		return store.ErrGap
	case number > last+1:
		return errAgain
	}
	if err := s.ensure(ctx, l, g); err != nil {
		return err
	}
	parts := []any{
		&zk.CheckVersionRequest{Path: s.fencePath(g.name), Version: fence},
		&zk.CheckVersionRequest{Path: s.leasePath(g.name), Version: -1},
		&zk.SetDataRequest{Path: s.ledgerPath(g.name), Data: []byte(values.Position{Token: lease.Token, Number: number}.Encode()), Version: version},
	}
	more, err := s.parts(ctx, l, g, changes)
	if err != nil {
		return err
	}
	_, err = multi(ctx, l, append(parts, more...)...)
	if f, ok := errors.AsType[*failed](err); ok {
		switch {
		case errors.Is(f, zk.ErrNoNode): // the ledger's may be missing, for somebody has deleted it
			s.know(g, false)
			return errAgain
		case errors.Is(f, zk.ErrBadVersion), errors.Is(f, zk.ErrNodeExists):
			return errAgain
		}
	}
	return err
}

// stands returns the version of the fence while lease stands, or ErrLost.
func (s *Store) stands(ctx context.Context, l *link, g *group, lease store.Lease, sync bool) (int32, error) {
	h := s.lease(g)
	if !sync && h != nil && h.grant.of(lease) && !h.over() && h.fence >= 0 {
		return h.fence, nil
	}
	st, err := s.look(ctx, l, g, sync)
	switch {
	case err != nil:
		return 0, err
	case st.lease == nil || !st.lease.of(lease) || s.leader(l, g, st.lease) == nil:
		return 0, store.ErrLost
	}
	return st.version, nil
}

// parts turns changes into parts of a multi: ZooKeeper tells creating from setting, and only we change records while our
// lease stands.
func (s *Store) parts(ctx context.Context, l *link, g *group, changes []store.Change) (parts []any, err error) {
	paths, index := []string{}, map[string]int{}
	place := func(path string) {
		if _, there := index[path]; !there {
			index[path] = len(paths)
			paths = append(paths, path)
		}
	}
	for _, c := range changes {
		place(s.bucketPath(g.name, c.Bucket))
		place(s.recordPath(g.name, c.Bucket, c.Key))
	}
	there, err := each(ctx, l, paths, func(c *zk.Conn, path string) (bool, error) {
		there, _, err := c.Exists(path)
		return there, err
	})
	if err != nil {
		return nil, err
	}
	for _, c := range changes {
		bucket, path := s.bucketPath(g.name, c.Bucket), s.recordPath(g.name, c.Bucket, c.Key)
		exists := there[index[path]]
		switch {
		case c.Delete && exists:
			parts = append(parts, &zk.DeleteRequest{Path: path, Version: -1})
		case c.Delete:
		case exists:
			parts = append(parts, &zk.SetDataRequest{Path: path, Data: c.Value, Version: -1})
		default:
			if !there[index[bucket]] {
				there[index[bucket]] = true
				parts = append(parts, &zk.CreateRequest{Path: bucket, Acl: s.cfg.ACL})
			}
			parts = append(parts, &zk.CreateRequest{Path: path, Data: c.Value, Acl: s.cfg.ACL})
		}
	}
	return parts, nil
}

// Position implements store.Ledger.
func (s *Store) Position(ctx context.Context, name string) (token, number uint64, err error) {
	if err := store.CheckName("group", name); err != nil {
		return 0, 0, err
	}
	var at values.Position
	l, err := s.begin(ctx)
	if err == nil {
		at, _, err = s.position(ctx, l, s.group(name), true)
	}
	return at.Token, at.Number, s.judge(ctx, "position", err)
}

// position returns the ledger's, and the version of its znode.
func (s *Store) position(ctx context.Context, l *link, g *group, sync bool) (at values.Position, version int32, err error) {
	path := s.ledgerPath(g.name)
	if sync {
		if err := catchUp(ctx, l, path); err != nil {
			return at, 0, err
		}
	}
	data, stat, err := get(ctx, l, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return at, 0, nil
	case err != nil:
		return at, 0, err
	}
	if at, err = values.DecodePosition(data); err != nil {
		return at, 0, foreign(path, err)
	}
	return at, stat.Version, nil
}

// Post implements store.Ledger. Messages that come at the same instant may fill an inbox a little beyond its limit.
func (s *Store) Post(ctx context.Context, name, id string, message []byte) error {
	if err := store.CheckMessage(name, id, message); err != nil {
		return err
	}
	l, err := s.begin(ctx)
	for err == nil {
		if err = s.post(ctx, l, s.group(name), id, message); !errors.Is(err, errAgain) || ctx.Err() != nil {
			break
		}
		err = nil
	}
	return s.judge(ctx, "post", err)
}

func (s *Store) post(ctx context.Context, l *link, g *group, id string, message []byte) error {
	if err := s.ensure(ctx, l, g); err != nil {
		return err
	}
	inbox, path := s.inboxPath(g.name), s.recordPath(g.name, store.InboxBucket, id)
	exists := func(path string) (*zk.Stat, error) {
		return call(ctx, l, func(c *zk.Conn) (*zk.Stat, error) {
			there, stat, err := c.Exists(path)
			if !there {
				stat = nil
			}
			return stat, err
		})
	}
	stat, err := exists(inbox)
	switch {
	case err != nil:
		return err
	case stat == nil:
		s.know(g, false)
		return errAgain
	case stat.NumChildren >= store.MaxInbox:
		if stat, err = exists(path); err == nil && stat == nil {
			err = store.ErrFull
		}
		return err
	}
	_, err = multi(ctx, l, &zk.CreateRequest{Path: path, Data: message, Acl: s.cfg.ACL},
		&zk.SetDataRequest{Path: inbox, Version: -1}) // rings for those who watch
	switch {
	case errors.Is(err, zk.ErrNodeExists):
		return nil
	case errors.Is(err, zk.ErrNoNode):
		s.know(g, false)
		return errAgain
	}
	return err
}
