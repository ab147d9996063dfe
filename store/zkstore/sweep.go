package zkstore

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// How the sweep asks.
const (
	sweepLimit = 5 * time.Second        // for one group
	sweepPause = 100 * time.Millisecond // after a failure
)

// sweep deletes leases and sessions of this store that are over, until the store is closed.
func (s *Store) sweep() {
	for s.ctx.Err() == nil {
		groups, next := s.over()
		for _, g := range groups {
			if s.clear(g) != nil {
				next = time.Now().Add(sweepPause)
			}
		}
		timer := time.NewTimer(time.Until(next))
		select {
		case <-timer.C:
		case <-s.due:
		case <-s.ctx.Done():
		}
		timer.Stop()
	}
}

// over returns the groups in which something is over, and when the next thing will be.
func (s *Store) over() (groups []*group, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	next = time.Now().Add(time.Hour)
	for _, g := range s.groups {
		found := false
		look := func(h *hold) {
			if h.over() {
				found = true
			} else if h.end.Before(next) {
				next = h.end
			}
		}
		if g.lease != nil {
			look(g.lease)
		}
		for _, h := range g.sessions {
			look(h)
		}
		if found {
			groups = append(groups, g)
		}
	}
	return groups, next
}

// clear deletes what is over in g.
func (s *Store) clear(g *group) (err error) {
	ctx, cancel := context.WithTimeout(s.ctx, sweepLimit)
	defer cancel()
	l, err := s.begin(ctx)
	if err != nil {
		return err
	}
	if err := g.enter(ctx); err != nil {
		return err
	}
	defer func() { g.leave(err) }()
	s.mu.Lock()
	var ids []string
	for id, h := range g.sessions {
		if h.over() {
			ids = append(ids, id)
		}
	}
	s.mu.Unlock()
	for _, id := range ids {
		if err := s.endSession(ctx, l, g, id); err != nil {
			return err
		}
	}
	if h := s.lease(g); h != nil && h.over() {
		return s.endLease(ctx, l, g, h)
	}
	return nil
}

// endSession deletes a session, whoever has started it.
func (s *Store) endSession(ctx context.Context, l *link, g *group, id string) error {
	_, err := call(ctx, l, func(c *zk.Conn) (struct{}, error) {
		return struct{}{}, c.Delete(s.sessionPath(g.name, id), -1)
	})
	if err == nil || errors.Is(err, zk.ErrNoNode) {
		s.noteSession(g, id, nil)
		return nil
	}
	return err
}

// endLease deletes a lease of ours that is over.
func (s *Store) endLease(ctx context.Context, l *link, g *group, h *hold) error {
	st, err := s.look(ctx, l, g, false)
	if err != nil {
		return err
	}
	if st.lease != nil && st.lease.nonce == h.grant.nonce && st.lease.replica == h.grant.replica {
		_, err = multi(ctx, l, &zk.CheckVersionRequest{Path: s.fencePath(g.name), Version: st.version},
			&zk.DeleteRequest{Path: s.leasePath(g.name), Version: -1})
		if err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	s.noteLease(g, nil)
	return nil
}
