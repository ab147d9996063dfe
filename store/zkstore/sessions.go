package zkstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/store"
)

// touch starts or refreshes a session by a write, which only a majority of the servers can answer, and returns the
// znode's state after it. In the book the session then ends no earlier than end.
func (s *Store) touch(ctx context.Context, l *link, g *group, r store.Replica, end time.Time, start bool) (*zk.Stat, error) {
	path := s.sessionPath(g.name, r.ID)
	h := s.session(g, r.ID)
	if h != nil && h.over() {
		if err := s.endSession(ctx, l, g, r.ID); err != nil {
			return nil, err
		}
		h = nil
	}
	info := r.Info
	switch {
	case h != nil && len(info) == 0:
		info = h.info
	case len(info) == 0: // it may be alive all the same
		data, _, err := get(ctx, l, path)
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return nil, err
		}
		info = data
	}
	if h != nil && h.end.After(end) {
		end = h.end
	}
	s.noteSession(g, r.ID, &hold{end: end, info: slices.Clone(info)})
	for {
		stat, err := call(ctx, l, func(c *zk.Conn) (*zk.Stat, error) { return c.Set(path, info, -1) })
		switch {
		case err == nil && stat.EphemeralOwner == l.session().id:
			return stat, nil
		case err == nil: // it lives on a session that no write of ours keeps alive
			_, err = multi(ctx, l, &zk.DeleteRequest{Path: path, Version: stat.Version}, s.ephemeral(path, info))
			if err == nil || errors.Is(err, zk.ErrNoNode) || errors.Is(err, zk.ErrBadVersion) {
				continue
			}
			return nil, err
		case !errors.Is(err, zk.ErrNoNode):
			return nil, err
		case !start:
			s.noteSession(g, r.ID, nil)
			return nil, store.ErrEnded
		}
		if err := s.ensure(ctx, l, g); err != nil {
			return nil, err
		}
		_, err = multi(ctx, l, s.ephemeral(path, info))
		switch {
		case errors.Is(err, zk.ErrNoNode): // the group has gone: the servers have lost their data
			s.know(g, false)
		case err != nil && !errors.Is(err, zk.ErrNodeExists):
			return nil, err
		}
	}
}

// ephemeral is the creation of a znode that ends with our ZooKeeper session.
func (s *Store) ephemeral(path string, data []byte) *zk.CreateRequest {
	return &zk.CreateRequest{Path: path, Data: data, Acl: s.cfg.ACL, Flags: zk.FlagEphemeral}
}

// Join implements store.Ledger.
func (s *Store) Join(ctx context.Context, name string, r store.Replica, ttl time.Duration, start bool) (time.Duration, error) {
	if err := store.CheckSession(name, r, ttl); err != nil {
		return 0, err
	}
	called := time.Now()
	var granted time.Duration
	err := s.change(ctx, "join", name, func(l *link, g *group) error {
		_, err := s.touch(ctx, l, g, r, called.Add(ttl.Truncate(time.Millisecond)), start)
		if err != nil {
			return err
		}
		granted = l.session().longest()
		if h := s.session(g, r.ID); h != nil {
			granted = min(granted, h.end.Sub(called).Truncate(time.Millisecond))
		}
		return nil
	})
	return granted, err
}

// Leave implements store.Ledger.
func (s *Store) Leave(ctx context.Context, name, replicaID string) error {
	if err := store.CheckName("group", name); err != nil {
		return err
	}
	if err := store.CheckName("replica", replicaID); err != nil {
		return err
	}
	return s.change(ctx, "leave", name, func(l *link, g *group) error { return s.endSession(ctx, l, g, replicaID) })
}

// Replicas implements store.Ledger.
func (s *Store) Replicas(ctx context.Context, name string) ([]store.Replica, error) {
	if err := store.CheckName("group", name); err != nil {
		return nil, err
	}
	replicas, err := s.replicas(ctx, name)
	return replicas, s.judge(ctx, "replicas", err)
}

func (s *Store) replicas(ctx context.Context, name string) (replicas []store.Replica, err error) {
	l, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	g := s.group(name)
	ids, err := children(ctx, l, s.sessionsPath(name))
	if err != nil {
		return nil, err
	}
	slices.Sort(ids)
	ids = slices.DeleteFunc(ids, func(id string) bool {
		h := s.session(g, id)
		return h != nil && h.over() || store.CheckName("replica", id) != nil
	})
	infos, err := each(ctx, l, ids, func(c *zk.Conn, id string) (node, error) {
		data, stat, err := c.Get(s.sessionPath(name, id))
		if errors.Is(err, zk.ErrNoNode) {
			return node{}, nil
		}
		return node{data, stat}, err
	})
	if err != nil {
		return nil, err
	}
	for i, id := range ids {
		if infos[i].stat != nil {
			replicas = append(replicas, store.Replica{ID: id, Info: infos[i].data})
		}
	}
	return replicas, nil
}
