package zkstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/internal/values"
	"github.com/go-singleton/singleton/store"
)

// state is what a group's fence and lease are.
type state struct {
	exists  bool // the group has a fence
	fence   values.Fence
	version int32  // of the fence
	lease   *grant // nil when nobody holds it
}

// look reads a group's fence and lease, the fence first: a multi that checks the fence's version stands on both. With sync
// the server that is asked catches up with the others before.
func (s *Store) look(ctx context.Context, l *link, g *group, sync bool) (st state, err error) {
	path := s.fencePath(g.name)
	if sync {
		if err := catchUp(ctx, l, path); err != nil {
			return st, err
		}
	}
	data, stat, err := get(ctx, l, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return st, nil
	case err != nil:
		return st, err
	}
	if st.fence, err = values.DecodeFence(data); err != nil {
		return st, foreign(path, err)
	}
	st.exists, st.version = true, stat.Version
	path = s.leasePath(g.name)
	data, stat, err = get(ctx, l, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return st, nil
	case err != nil:
		return st, err
	}
	lease, err := leaseOf(path, data, stat)
	if err != nil {
		return st, err
	}
	st.lease = &lease
	return st, nil
}

// ensure creates the znodes of a group where they are missing.
func (s *Store) ensure(ctx context.Context, l *link, g *group) error {
	s.mu.Lock()
	known := g.known
	s.mu.Unlock()
	if known {
		return nil
	}
	type missing struct {
		path string
		data []byte
	}
	var nodes []missing
	var path strings.Builder
	for name := range strings.SplitSeq(strings.TrimPrefix(s.groupPath(g.name), "/"), "/") {
		path.WriteString("/" + name)
		nodes = append(nodes, missing{path.String(), nil})
	}
	nodes = append(nodes,
		missing{s.fencePath(g.name), []byte(values.Fence{}.Encode())}, missing{s.ledgerPath(g.name), []byte(values.Position{}.Encode())},
		missing{s.inboxPath(g.name), nil}, missing{s.sessionsPath(g.name), nil})
	there, err := each(ctx, l, nodes, func(c *zk.Conn, n missing) (bool, error) {
		there, _, err := c.Exists(n.path)
		return there, err
	})
	if err != nil {
		return err
	}
	for i, n := range nodes {
		if there[i] {
			continue // where a user may not create, all is well
		}
		_, err := call(ctx, l, func(c *zk.Conn) (string, error) { return c.Create(n.path, n.data, 0, s.cfg.ACL) })
		if err != nil && !errors.Is(err, zk.ErrNodeExists) {
			return fmt.Errorf("creating %s: %w", n.path, err)
		}
	}
	s.know(g, true)
	return nil
}

// know notes whether the znodes of a group have been created.
func (s *Store) know(g *group, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.known = known
}

type node struct {
	data []byte
	stat *zk.Stat
}

func get(ctx context.Context, l *link, path string) ([]byte, *zk.Stat, error) {
	n, err := call(ctx, l, func(c *zk.Conn) (node, error) {
		data, stat, err := c.Get(path)
		return node{data, stat}, err
	})
	return n.data, n.stat, err
}

// catchUp makes the server that is asked next know what any server knew when it was called.
func catchUp(ctx context.Context, l *link, path string) error {
	_, err := call(ctx, l, func(c *zk.Conn) (string, error) { return c.Sync(path) })
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	return err
}

// failed is the error of a multi: of the part that was refused.
type failed struct {
	error
	part int
}

// Unwrap returns the client's error.
func (f *failed) Unwrap() error { return f.error }

// multi does all parts or none, and returns the znode's state after each part that sets data.
func multi(ctx context.Context, l *link, parts ...any) ([]*zk.Stat, error) {
	size := 0
	for _, p := range parts {
		size += 100
		switch p := p.(type) {
		case *zk.CreateRequest:
			size += len(p.Path) + len(p.Data)
			for _, a := range p.Acl {
				size += len(a.ID) + 50
			}
		case *zk.SetDataRequest:
			size += len(p.Path) + len(p.Data)
		case *zk.DeleteRequest:
			size += len(p.Path)
		case *zk.CheckVersionRequest:
			size += len(p.Path)
		}
	}
	if size > maxPacket {
		return nil, fmt.Errorf("%w: a request of %d bytes, of which ZooKeeper takes %d", store.ErrTooLarge, size, maxPacket)
	}
	answers, err := call(ctx, l, func(c *zk.Conn) ([]zk.MultiResponse, error) { return c.Multi(parts...) })
	if err != nil {
		for i, a := range answers {
			if a.Error != nil && errors.Is(err, a.Error) {
				return nil, &failed{err, i}
			}
		}
		return nil, err
	}
	stats := make([]*zk.Stat, len(answers))
	for i, a := range answers {
		stats[i] = a.Stat
	}
	return stats, nil
}
