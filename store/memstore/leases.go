package memstore

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Acquire implements store.Leases.
func (s *Store) Acquire(ctx context.Context, name string, c store.Candidate) (store.Lease, error) {
	if err := store.CheckCandidate(name, c); err != nil {
		return store.Lease{}, err
	}
	g, now, err := s.enter(ctx, name)
	defer s.mu.Unlock()
	if err != nil {
		return store.Lease{}, err
	}
	if slices.Contains(g.released, c.Nonce) {
		return store.Lease{}, store.ErrLost
	}
	if _, alive := g.sessions[c.ID]; !alive && !c.Start {
		return store.Lease{}, store.ErrEnded
	}
	if l := g.lease; l != nil && (l.nonce != c.Nonce || l.replica != c.ID) {
		g.lengthen(c.Replica, now.Add(whole(c.Session)))
		return store.Lease{}, &store.HeldError{Leader: l.leader(now), Replicas: len(g.sessions), Taken: func() bool {
			s.mu.Lock()
			defer s.mu.Unlock()
			return g.token > l.token
		}}
	}
	ttl := whole(c.TTL)
	if g.lease == nil {
		token := max(g.token+1, uint64(now.UnixMicro()), c.Floor+1)
		if token > store.MaxToken {
			return store.Lease{}, store.Permanent("memstore: no token is left below 2^53", nil)
		}
		g.token = token
		g.lease = &lease{replica: c.ID, nonce: c.Nonce, token: token}
	}
	g.lease.end = now.Add(ttl)
	g.setEnd(c.Replica, g.lease.end)
	return store.Lease{
		Group: name, Replica: c.ID, Nonce: c.Nonce, Token: g.lease.token,
		Grant: store.Grant{TTL: ttl, Time: wall(now)},
	}, nil
}

// Renew implements store.Leases.
func (s *Store) Renew(ctx context.Context, l store.Lease) (store.Grant, error) {
	if err := store.CheckRenewal(l); err != nil {
		return store.Grant{}, err
	}
	g, now, err := s.enter(ctx, l.Group)
	defer s.mu.Unlock()
	if err != nil {
		return store.Grant{}, err
	}
	if !g.holds(l) {
		return store.Grant{}, store.ErrLost
	}
	if _, alive := g.sessions[l.Replica]; !alive {
		return store.Grant{}, store.ErrEnded
	}
	ttl := whole(l.TTL)
	g.lease.end = now.Add(ttl)
	g.setEnd(store.Replica{ID: l.Replica}, g.lease.end)
	return store.Grant{TTL: ttl, Time: wall(now)}, nil
}

// Release implements store.Leases.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	if err := store.CheckLease(l); err != nil {
		return err
	}
	freed, err := s.release(ctx, l)
	if freed {
		s.hint(l.Group, store.LeaseFree)
	}
	return err
}

func (s *Store) release(ctx context.Context, l store.Lease) (freed bool, err error) {
	g, _, err := s.enter(ctx, l.Group)
	defer s.mu.Unlock()
	if err != nil {
		return false, err
	}
	// Also what is not held is remembered: the acquire that was given up may still be on its way.
	if !slices.Contains(g.released, l.Nonce) {
		g.released = slices.Insert(g.released, 0, l.Nonce)
		g.released = g.released[:min(len(g.released), released)]
	}
	// The token is not compared: who gives up an acquire that got no answer does not know it.
	if g.lease == nil || g.lease.replica != l.Replica || g.lease.nonce != l.Nonce {
		return false, nil
	}
	g.lease = nil
	return true, nil
}

// Leader implements store.Leases.
func (s *Store) Leader(ctx context.Context, name string) (store.Leader, error) {
	if err := store.CheckName("group", name); err != nil {
		return store.Leader{}, err
	}
	g, now, err := s.enter(ctx, name)
	defer s.mu.Unlock()
	switch {
	case err != nil:
		return store.Leader{}, err
	case g.lease == nil:
		return store.Leader{}, store.ErrNoLeader
	}
	return g.lease.leader(now), nil
}

func (g *group) holds(l store.Lease) bool {
	return g.lease != nil && g.lease.replica == l.Replica && g.lease.nonce == l.Nonce && g.lease.token == l.Token
}

// lengthen starts or refreshes a session, never to an earlier end.
func (g *group) lengthen(r store.Replica, end time.Time) time.Time {
	if old, alive := g.sessions[r.ID]; alive && old.end.After(end) {
		end = old.end
	}
	g.setEnd(r, end)
	return end
}

// setEnd starts or refreshes a session; without info the old one is kept.
func (g *group) setEnd(r store.Replica, end time.Time) {
	info := g.sessions[r.ID].info
	if len(r.Info) > 0 {
		info = bytes.Clone(r.Info)
	}
	g.sessions[r.ID] = session{info: info, end: end}
}

func (l *lease) leader(now time.Time) store.Leader {
	return store.Leader{Replica: l.replica, Token: l.token, Remaining: l.end.Sub(now)}
}

// whole cuts d to the milliseconds in which durations travel on other stores.
func whole(d time.Duration) time.Duration { return d.Truncate(time.Millisecond) }

func wall(t time.Time) time.Time { return t.Round(0).UTC() }
