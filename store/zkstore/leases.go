package zkstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/store"
)

// Acquire implements store.Leases.
func (s *Store) Acquire(ctx context.Context, name string, c store.Candidate) (store.Lease, error) {
	if err := store.CheckCandidate(name, c); err != nil {
		return store.Lease{}, err
	}
	called := time.Now()
	var lease store.Lease
	err := s.change(ctx, "acquire", name, func(l *link, g *group) (err error) {
		lease, err = s.acquire(ctx, l, g, c, called)
		return err
	})
	return lease, err
}

func (s *Store) acquire(ctx context.Context, l *link, g *group, c store.Candidate, called time.Time) (none store.Lease, err error) {
	st, err := s.look(ctx, l, g, false)
	if err != nil {
		return none, err
	}
	if slices.Contains(st.fence.Released, c.Nonce) {
		return none, store.ErrLost
	}
	stat, err := s.touch(ctx, l, g, c.Replica, called.Add(c.Session.Truncate(time.Millisecond)), c.Start)
	if err != nil {
		return none, err
	}
	if err := s.ensure(ctx, l, g); err != nil {
		return none, err
	}
	st, err = s.look(ctx, l, g, false) // the write has made sure that it is fresh
	switch {
	case err != nil:
		return none, err
	case !st.exists:
		s.know(g, false)
		return none, errAgain
	case slices.Contains(st.fence.Released, c.Nonce):
		return none, store.ErrLost
	}
	same := st.lease != nil && st.lease.replica == c.ID && st.lease.nonce == c.Nonce
	leader := s.leader(l, g, st.lease)
	if leader != nil && !same {
		return none, &store.HeldError{Leader: *leader}
	}

	ours := l.session()
	next := grant{replica: c.ID, nonce: c.Nonce, ttl: min(c.TTL.Truncate(time.Millisecond), ours.longest()), owner: ours.id}
	fence, path := st.fence, s.leasePath(g.name)
	parts := []any{nil, &zk.SetDataRequest{Path: s.sessionPath(g.name, c.ID), Data: s.info(g, c.ID), Version: -1}}
	switch {
	case same && leader != nil:
		next.token = st.lease.token
	default:
		fence.Token = max(fence.Token+1, uint64(stat.Mtime)*1000, c.Floor+1)
		next.token = fence.Token
		if fence.Token > store.MaxToken {
			return none, store.Permanent("zkstore: no token is left below 2^53: no honest clock uses them up; look for what has set "+
				s.fencePath(g.name)+" so high, then delete it", nil)
		}
	}
	if same && leader != nil && st.lease.owner == ours.id {
		parts = append(parts, &zk.SetDataRequest{Path: path, Data: next.encode(), Version: -1})
	} else {
		if st.lease != nil {
			parts = append(parts, &zk.DeleteRequest{Path: path, Version: -1})
		}
		parts = append(parts, s.ephemeral(path, next.encode()))
	}
	parts[0] = &zk.SetDataRequest{Path: s.fencePath(g.name), Data: []byte(fence.Encode()), Version: st.version}

	end := called.Add(next.ttl)
	granted := hold{owner: ours.id, end: end, grant: next, fence: st.version + 1}
	before, asked := s.lease(g), granted
	if same && before != nil && before.end.After(end) { // the answer may be lost, and what was granted before counts
		asked.end = before.end
	}
	s.noteLease(g, &asked)
	stats, err := multi(ctx, l, parts...)
	if f, ok := errors.AsType[*failed](err); ok {
		s.noteLease(g, before)
		if errors.Is(f, zk.ErrBadVersion) || errors.Is(f, zk.ErrNoNode) || errors.Is(f, zk.ErrNodeExists) {
			return none, errAgain
		}
	}
	if err != nil {
		return none, err
	}
	if stats[1].EphemeralOwner != l.session().id || l.session() != ours { // another ZooKeeper session has been opened meanwhile
		return none, errAgain
	}
	s.noteLease(g, &granted)
	s.endAt(g, c.ID, end)
	return store.Lease{
		Group: g.name, Replica: c.ID, Nonce: c.Nonce, Token: next.token,
		Grant: store.Grant{TTL: next.ttl, Time: clock(stats[1])},
	}, nil
}

// Renew implements store.Leases.
func (s *Store) Renew(ctx context.Context, lease store.Lease) (store.Grant, error) {
	if err := store.CheckRenewal(lease); err != nil {
		return store.Grant{}, err
	}
	called := time.Now()
	var granted store.Grant
	err := s.change(ctx, "renew", lease.Group, func(l *link, g *group) (err error) {
		granted, err = s.renew(ctx, l, g, lease, called)
		return err
	})
	return granted, err
}

// renew writes to the session in one step with the check that the lease stands, so that one request does. The write is
// the proof: a read or a ping is answered by a server that has lost the majority, too.
func (s *Store) renew(ctx context.Context, l *link, g *group, lease store.Lease, called time.Time) (none store.Grant, err error) {
	h := s.lease(g)
	if h == nil || !h.grant.of(lease) || h.over() || h.fence < 0 {
		if h, err = s.recall(ctx, l, g, lease); err != nil {
			return none, err
		}
	}
	ours := l.session()
	if h.owner != ours.id { // a ZooKeeper session that we have no more: what lives on it cannot be kept
		return none, store.ErrLost
	}
	session := s.session(g, lease.Replica)
	if session != nil && session.over() {
		return none, store.ErrEnded
	}
	next := *h
	next.grant.ttl = min(lease.TTL.Truncate(time.Millisecond), ours.longest())
	next.end = called.Add(next.grant.ttl)
	parts := []any{
		&zk.CheckVersionRequest{Path: s.fencePath(g.name), Version: h.fence},
		&zk.CheckVersionRequest{Path: s.leasePath(g.name), Version: -1},
		&zk.SetDataRequest{Path: s.sessionPath(g.name, lease.Replica), Data: s.info(g, lease.Replica), Version: -1},
	}
	if next.grant.ttl != h.grant.ttl {
		parts[1] = &zk.SetDataRequest{Path: s.leasePath(g.name), Data: next.grant.encode(), Version: -1}
	}
	if next.end.After(h.end) { // before it is sent: the answer may be lost
		longer := *h
		longer.end = next.end
		s.noteLease(g, &longer)
		s.lengthen(g, lease.Replica, next.end)
	}
	stats, err := multi(ctx, l, parts...)
	if f, ok := errors.AsType[*failed](err); ok && (errors.Is(f, zk.ErrNoNode) || errors.Is(f, zk.ErrBadVersion)) {
		switch f.part {
		case 1:
			s.noteLease(g, nil)
			return none, store.ErrLost
		case 2:
			s.noteSession(g, lease.Replica, nil)
			return none, store.ErrEnded
		}
		forget := next
		forget.fence = -1 // recall looks
		s.noteLease(g, &forget)
		return none, errAgain
	}
	if err != nil {
		return none, err
	}
	if stats[2].EphemeralOwner != ours.id || l.session() != ours {
		return none, store.ErrLost
	}
	s.noteLease(g, &next)
	s.endAt(g, lease.Replica, next.end)
	return store.Grant{TTL: next.grant.ttl, Time: clock(stats[2])}, nil
}

// recall looks whether lease is held, and returns what there is to note about it, or ErrLost.
func (s *Store) recall(ctx context.Context, l *link, g *group, lease store.Lease) (*hold, error) {
	st, err := s.look(ctx, l, g, true)
	if err != nil {
		return nil, err
	}
	h := s.lease(g)
	if st.lease == nil || !st.lease.of(lease) || s.leader(l, g, st.lease) == nil {
		if h != nil && h.grant.of(lease) && !h.over() {
			s.noteLease(g, nil)
		}
		return nil, store.ErrLost
	}
	found := &hold{owner: st.lease.owner, grant: *st.lease, fence: st.version}
	if h != nil && h.grant.of(lease) {
		found.end = h.end
		s.noteLease(g, found)
	}
	return found, nil
}

// Release implements store.Leases.
func (s *Store) Release(ctx context.Context, lease store.Lease) error {
	if err := store.CheckLease(lease); err != nil {
		return err
	}
	sync := false
	return s.change(ctx, "release", lease.Group, func(l *link, g *group) error {
		err := s.release(ctx, l, g, lease, sync)
		sync = true
		return err
	})
}

func (s *Store) release(ctx context.Context, l *link, g *group, lease store.Lease, sync bool) error {
	if err := s.ensure(ctx, l, g); err != nil {
		return err
	}
	st, err := s.look(ctx, l, g, sync)
	if err != nil {
		return err
	}
	if !st.exists {
		s.know(g, false)
		return errAgain
	}
	lease.Token = 0 // who gives up an acquire that got no answer does not know it
	held := st.lease != nil && st.lease.of(lease)
	fence := st.fence
	if !slices.Contains(fence.Released, lease.Nonce) {
		fence = fence.Release(lease.Nonce)
	} else if !held && sync {
		return nil
	}
	parts := []any{&zk.SetDataRequest{Path: s.fencePath(g.name), Data: []byte(fence.Encode()), Version: st.version}}
	if held {
		parts = append(parts, &zk.DeleteRequest{Path: s.leasePath(g.name), Version: -1})
	}
	_, err = multi(ctx, l, parts...)
	if f, ok := errors.AsType[*failed](err); ok && (errors.Is(f, zk.ErrNoNode) || errors.Is(f, zk.ErrBadVersion)) {
		return errAgain
	}
	if err != nil {
		return err
	}
	if h := s.lease(g); h != nil && h.grant.of(lease) {
		s.noteLease(g, nil)
	}
	return nil
}

// Leader implements store.Leases.
func (s *Store) Leader(ctx context.Context, name string) (store.Leader, error) {
	if err := store.CheckName("group", name); err != nil {
		return store.Leader{}, err
	}
	leader, err := s.whoLeads(ctx, name)
	return leader, s.judge(ctx, "leader", err)
}

func (s *Store) whoLeads(ctx context.Context, name string) (none store.Leader, err error) {
	l, err := s.begin(ctx)
	if err != nil {
		return none, err
	}
	path := s.leasePath(name)
	data, stat, err := get(ctx, l, path)
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return none, store.ErrNoLeader
	case err != nil:
		return none, err
	}
	lease, err := leaseOf(path, data, stat)
	if err != nil {
		return none, err
	}
	leader := s.leader(l, s.group(name), &lease)
	if leader == nil {
		return none, store.ErrNoLeader
	}
	return *leader, nil
}

// info returns what a replica says about itself.
func (s *Store) info(g *group, id string) []byte {
	if h := s.session(g, id); h != nil {
		return h.info
	}
	return nil
}

// endAt sets when a session ends, also earlier.
func (s *Store) endAt(g *group, id string, end time.Time) {
	s.noteSession(g, id, &hold{end: end, info: s.info(g, id)})
}

// lengthen sets when a session ends, never earlier.
func (s *Store) lengthen(g *group, id string, end time.Time) {
	if h := s.session(g, id); h != nil && h.end.Before(end) {
		s.endAt(g, id, end)
	}
}

// clock is the servers' clock at a write.
func clock(stat *zk.Stat) time.Time { return time.UnixMilli(stat.Mtime).UTC() }
