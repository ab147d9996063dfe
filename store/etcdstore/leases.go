package etcdstore

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"go.etcd.io/etcd/client/v3"

	"github.com/go-singleton/singleton/internal/values"
	"github.com/go-singleton/singleton/store"
)

// leastSeconds is the shortest etcd lease: the servers end them up to half a second late, and take less for more.
const leastSeconds = 2

// wholeSeconds is how long an etcd lease is asked for.
func wholeSeconds(d time.Duration) int64 {
	return max(leastSeconds, int64((d+time.Second-1)/time.Second))
}

// Acquire implements store.Leases.
func (s *Store) Acquire(ctx context.Context, group string, c store.Candidate) (store.Lease, error) {
	if err := store.CheckCandidate(group, c); err != nil {
		return store.Lease{}, err
	}
	var lease store.Lease
	err := s.call(ctx, "acquire", func(ctx context.Context, l *link) (err error) {
		lease, err = s.acquire(ctx, l, group, c)
		return err
	})
	return lease, err
}

func (s *Store) acquire(ctx context.Context, l *link, group string, c store.Candidate) (none store.Lease, err error) {
	seen, err := look(ctx, l, s.fenceKey(group), s.leaseKey(group), s.sessionKey(group, c.ID))
	if err != nil {
		return none, err
	}
	fence, err := read(seen[0], values.DecodeFence)
	if err != nil {
		return none, err
	}
	held, err := hanging(seen[1], decodeGrant)
	if err != nil {
		return none, err
	}
	about, err := hanging(seen[2], decodePresence)
	if err != nil {
		return none, err
	}
	same := seen[1].exists() && held.replica == c.ID && held.nonce == c.Nonce
	switch {
	case slices.Contains(fence.Released, c.Nonce):
		return none, store.ErrLost
	case seen[1].exists() && !same:
		return none, s.refuse(ctx, l, group, c, seen[1].lease, held)
	case !seen[2].exists() && !c.Start:
		return none, store.ErrEnded
	}

	next := grant{replica: c.ID, nonce: c.Nonce, token: held.token}
	now := time.Now()
	if !same {
		fence.Token = max(fence.Token+1, uint64(now.UnixMicro()), c.Floor+1)
		next.token = fence.Token
		if fence.Token > store.MaxToken {
			return none, store.Permanent("etcdstore: no token is left below 2^53: no honest clock uses them up; look for what has set "+
				s.fenceKey(group)+" so high, then delete it", nil)
		}
	}
	if len(c.Info) > 0 {
		about.info = c.Info
	}
	// Lease and session hang on an etcd lease of their own, so that both end together.
	id, seconds, err := l.grant(ctx, wholeSeconds(c.TTL))
	if err != nil {
		return none, err
	}
	about.seconds = seconds
	err = l.change(ctx, []clientv3.Cmp{seen[0].unchanged(), seen[1].unchanged(), seen[2].unchanged()},
		clientv3.OpPut(seen[0].key, fence.Encode()),
		clientv3.OpPut(seen[1].key, next.encode(), clientv3.WithLease(id)),
		clientv3.OpPut(seen[2].key, about.encode(), clientv3.WithLease(id)))
	if err != nil {
		return none, s.giveBack(ctx, l, id, err)
	}
	ttl := time.Duration(seconds) * time.Second
	s.warn(group, c.TTL, ttl)
	return store.Lease{
		Group: group, Replica: c.ID, Nonce: c.Nonce, Token: next.token, Grant: store.Grant{TTL: ttl, Time: now.UTC()},
	}, nil
}

// refuse refreshes the session of a candidate that another one is before, and says who.
func (s *Store) refuse(ctx context.Context, l *link, group string, c store.Candidate, lease clientv3.LeaseID, held grant) error {
	if _, err := s.touch(ctx, l, group, c.Replica, c.Session, c.Start); err != nil {
		return err
	}
	leader, err := s.leader(ctx, l, lease, held)
	switch {
	case err != nil:
		return err
	case leader == nil:
		return errAgain
	}
	return &store.HeldError{Leader: *leader}
}

// leader returns for how long a lease that was found makes its holder the leader; nil when it has ended since.
func (s *Store) leader(ctx context.Context, l *link, lease clientv3.LeaseID, held grant) (*store.Leader, error) {
	left, err := l.left(ctx, lease)
	if err != nil || left < 0 {
		return nil, err
	}
	return &store.Leader{Replica: held.replica, Token: held.token, Remaining: time.Duration(left+1) * time.Second}, nil
}

// giveBack ends an etcd lease that was not used because of err. Where that is not known, the lease lapses.
func (s *Store) giveBack(ctx context.Context, l *link, id clientv3.LeaseID, err error) error {
	if errors.Is(err, errAgain) {
		_, _ = ask(ctx, l, func(ctx context.Context) (*clientv3.LeaseRevokeResponse, error) { return l.client.Revoke(ctx, id) })
	}
	return err
}

// warn says once for a group that leases are longer than was asked for.
func (s *Store) warn(group string, asked, granted time.Duration) {
	if granted-asked >= time.Second && s.spells.Begin("lease of "+group, granted.String()) {
		s.log.Warn("etcd grants longer leases than asked for: whole seconds, 2 at least, and one and a half election timeouts of its servers",
			slog.String("group", group), slog.Duration("asked", asked), slog.Duration("granted", granted))
	}
}

// Renew implements store.Leases.
func (s *Store) Renew(ctx context.Context, lease store.Lease) (store.Grant, error) {
	if err := store.CheckRenewal(lease); err != nil {
		return store.Grant{}, err
	}
	var granted store.Grant
	err := s.call(ctx, "renew", func(ctx context.Context, l *link) (err error) {
		granted, err = s.renew(ctx, l, lease)
		return err
	})
	return granted, err
}

// renew hangs the lease, where it is ours, and its session on a new etcd lease. One that is kept alive instead can be ended
// early, by a server that has led and knows nothing of that. Only when the servers are full, and grant none, is it kept alive;
// the key stands then, because it hung on this etcd lease when it was looked at, which has not ended since.
func (s *Store) renew(ctx context.Context, l *link, lease store.Lease) (none store.Grant, err error) {
	seen, err := look(ctx, l, s.leaseKey(lease.Group), s.sessionKey(lease.Group, lease.Replica))
	if err != nil {
		return none, err
	}
	held, err := hanging(seen[0], decodeGrant)
	if err != nil {
		return none, err
	}
	about, err := hanging(seen[1], decodePresence)
	switch {
	case err != nil:
		return none, err
	case held != grantOf(lease):
		return none, store.ErrLost
	case !seen[1].exists():
		return none, store.ErrEnded
	}
	now := time.Now()
	id, seconds, err := l.grant(ctx, wholeSeconds(lease.TTL))
	if full(err) && seen[0].lease == seen[1].lease {
		seconds, err = l.keepAlive(ctx, seen[0].lease)
		return store.Grant{TTL: time.Duration(seconds) * time.Second, Time: now.UTC()}, err
	}
	if err != nil {
		return none, err
	}
	about.seconds = seconds
	err = l.change(ctx, []clientv3.Cmp{seen[0].unchanged(), seen[1].unchanged()},
		clientv3.OpPut(seen[0].key, held.encode(), clientv3.WithLease(id)),
		clientv3.OpPut(seen[1].key, about.encode(), clientv3.WithLease(id)))
	if err != nil {
		return none, s.giveBack(ctx, l, id, err)
	}
	return store.Grant{TTL: time.Duration(seconds) * time.Second, Time: now.UTC()}, nil
}

// Release implements store.Leases.
func (s *Store) Release(ctx context.Context, lease store.Lease) error {
	if err := store.CheckLease(lease); err != nil {
		return err
	}
	return s.call(ctx, "release", func(ctx context.Context, l *link) error { return s.release(ctx, l, lease) })
}

func (s *Store) release(ctx context.Context, l *link, lease store.Lease) error {
	seen, err := look(ctx, l, s.fenceKey(lease.Group), s.leaseKey(lease.Group))
	if err != nil {
		return err
	}
	fence, err := read(seen[0], values.DecodeFence)
	if err != nil {
		return err
	}
	held, err := hanging(seen[1], decodeGrant)
	if err != nil {
		return err
	}
	ours := held.replica == lease.Replica && held.nonce == lease.Nonce // who gives up an acquire without an answer knows no token
	var changes []clientv3.Op
	if !slices.Contains(fence.Released, lease.Nonce) {
		changes = append(changes, clientv3.OpPut(seen[0].key, fence.Release(lease.Nonce).Encode()))
	}
	if ours {
		changes = append(changes, clientv3.OpDelete(seen[1].key))
	}
	if len(changes) == 0 {
		return nil
	}
	return l.change(ctx, []clientv3.Cmp{seen[0].unchanged(), seen[1].unchanged()}, changes...)
}

// Leader implements store.Leases.
func (s *Store) Leader(ctx context.Context, group string) (store.Leader, error) {
	if err := store.CheckName("group", group); err != nil {
		return store.Leader{}, err
	}
	var leader store.Leader
	err := s.call(ctx, "leader", func(ctx context.Context, l *link) error {
		seen, err := look(ctx, l, s.leaseKey(group))
		if err != nil {
			return err
		}
		held, err := hanging(seen[0], decodeGrant)
		switch {
		case err != nil:
			return err
		case !seen[0].exists():
			return store.ErrNoLeader
		}
		found, err := s.leader(ctx, l, seen[0].lease, held)
		switch {
		case err != nil:
			return err
		case found == nil:
			return store.ErrNoLeader
		}
		leader = *found
		return nil
	})
	return leader, err
}
