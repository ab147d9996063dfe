package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-singleton/singleton/internal/herd"
	"github.com/go-singleton/singleton/store"
)

// releasedBytes is how much a group remembers of the nonces released last: 27 of the usual 36 bytes.
const releasedBytes = 1000

// Acquire implements store.Leases.
func (s *Store) Acquire(ctx context.Context, group string, c store.Candidate) (store.Lease, error) {
	if err := store.CheckCandidate(group, c); err != nil {
		return store.Lease{}, err
	}
	r, err := s.send(ctx, "acquire", group, request{
		script: acquireScript, keys: s.all(group),
		args: []any{c.ID, c.Nonce, c.TTL.Milliseconds(), c.Session.Milliseconds(), c.Start, c.Floor, c.Info,
			s.channel(group, store.LeaseFree), herd.Small},
		wait: s.replicas,
		undo: &request{script: retractScript, keys: []string{s.leaseKey(group)}, args: []any{c.ID, c.Nonce}},
	})
	if err != nil {
		return store.Lease{}, err
	}
	switch r.word {
	case "granted":
		token, err := strconv.ParseUint(r.text(0), 10, 64)
		if err != nil {
			return store.Lease{}, fmt.Errorf("redisstore: acquire: %w", err)
		}
		grant, err := granted(c.TTL, r, 1)
		if err != nil {
			return store.Lease{}, err
		}
		return store.Lease{Group: group, Replica: c.ID, Nonce: c.Nonce, Token: token, Grant: grant}, nil
	case "held":
		leader, err := s.readLeader(group, r)
		if err != nil {
			return store.Lease{}, err
		}
		replicas, err := r.integer(2)
		if err != nil {
			return store.Lease{}, err
		}
		return store.Lease{}, &store.HeldError{Leader: leader, Replicas: int(replicas), Taken: s.count(group, int(replicas)).after(leader.Token)}
	}
	return store.Lease{}, outcome("acquire", r)
}

// Renew implements store.Leases.
func (s *Store) Renew(ctx context.Context, l store.Lease) (store.Grant, error) {
	if err := store.CheckRenewal(l); err != nil {
		return store.Grant{}, err
	}
	r, err := s.batch.renew(ctx, l, request{
		script: renewScript, keys: s.all(l.Group), args: []any{value(l), l.Replica, l.TTL.Milliseconds()},
	})
	if err != nil {
		return store.Grant{}, err
	}
	if r.word == "granted" {
		return granted(l.TTL, r, 0)
	}
	return store.Grant{}, outcome("renew", r)
}

// Release implements store.Leases.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	if err := store.CheckLease(l); err != nil {
		return err
	}
	s.batch.forget(l.Nonce)
	keys := []string{s.leaseKey(l.Group), s.fenceKey(l.Group), s.sessionsKey(l.Group)}
	r, err := s.run(ctx, "release", l.Group, releaseScript, keys,
		l.Replica, l.Nonce, releasedBytes, s.channel(l.Group, store.LeaseFree))
	if err != nil {
		return err
	}
	return outcome("release", r)
}

// Leader implements store.Leases.
func (s *Store) Leader(ctx context.Context, group string) (store.Leader, error) {
	if err := store.CheckName("group", group); err != nil {
		return store.Leader{}, err
	}
	r, err := s.run(ctx, "leader", group, leaderScript, []string{s.leaseKey(group)})
	if err != nil {
		return store.Leader{}, err
	}
	if r.word == "held" {
		return s.readLeader(group, r)
	}
	return store.Leader{}, outcome("leader", r)
}

// outcome turns the word of a script into the error that the contract has for it.
func outcome(method string, r reply) error {
	switch r.word {
	case "ok":
		return nil
	case "lost":
		return store.ErrLost
	case "ended":
		return store.ErrEnded
	case "none":
		return store.ErrNoLeader
	case "stale":
		return store.ErrStale
	case "gap":
		return store.ErrGap
	case "full":
		return store.ErrFull
	}
	return strange(method, r.word)
}

func granted(ttl time.Duration, r reply, clock int) (store.Grant, error) {
	us, err := r.integer(clock)
	if err != nil {
		return store.Grant{}, err
	}
	return store.Grant{TTL: ttl.Truncate(time.Millisecond), Time: time.UnixMicro(us).UTC()}, nil
}

func value(l store.Lease) string {
	return leaseValue(strconv.FormatUint(l.Token, 10), l.Replica, l.Nonce)
}

// readLeader reads a lease's value and remaining milliseconds, and trusts neither: anyone who may write there could have.
func (s *Store) readLeader(group string, r reply) (store.Leader, error) {
	parts := strings.Split(r.text(0), " ")
	if len(parts) != 3 {
		return store.Leader{}, s.notOurs(group, "something else than a lease")
	}
	token, err := strconv.ParseUint(parts[0], 10, 64)
	if err != nil || token > store.MaxToken {
		return store.Leader{}, s.notOurs(group, "a lease with an impossible token")
	}
	if store.CheckName("replica", parts[1]) != nil {
		return store.Leader{}, s.notOurs(group, "a lease of an impossible replica")
	}
	ms, err := r.integer(1)
	if err != nil {
		return store.Leader{}, err
	}
	if ms < 0 {
		return store.Leader{}, s.notOurs(group, "a lease that never ends")
	}
	return store.Leader{Replica: parts[1], Token: token, Remaining: time.Duration(ms) * time.Millisecond}, nil
}

func (s *Store) notOurs(group, what string) error {
	key := s.leaseKey(group)
	return store.Permanent(fmt.Sprintf("redisstore: %s holds %s: find out who writes there, then DEL %s", key, what, key), nil)
}
