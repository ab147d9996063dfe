package etcdstore

import (
	"context"
	"strings"
	"time"

	"go.etcd.io/etcd/client/v3"

	"github.com/go-singleton/singleton/store"
)

// Join implements store.Ledger.
func (s *Store) Join(ctx context.Context, group string, r store.Replica, ttl time.Duration, start bool) (time.Duration, error) {
	if err := store.CheckSession(group, r, ttl); err != nil {
		return 0, err
	}
	var granted time.Duration
	err := s.call(ctx, "join", func(ctx context.Context, l *link) (err error) {
		granted, err = s.touch(ctx, l, group, r, ttl, start)
		return err
	})
	return granted, err
}

// touch starts or refreshes a session, which then goes on for ttl at least, and returns for how long it does.
func (s *Store) touch(ctx context.Context, l *link, group string, r store.Replica, ttl time.Duration, start bool) (time.Duration, error) {
	seen, err := look(ctx, l, s.sessionKey(group, r.ID))
	if err != nil {
		return 0, err
	}
	session := seen[0]
	about, err := hanging(session, decodePresence)
	switch {
	case err != nil:
		return 0, err
	case !session.exists() && !start:
		return 0, store.ErrEnded
	}
	if len(r.Info) > 0 {
		about.info = r.Info
	}
	wanted := wholeSeconds(ttl)
	if wanted < about.seconds { // it may have been promised for longer
		left, err := l.left(ctx, session.lease)
		switch {
		case err != nil:
			return 0, err
		case left < 0: // it has ended since
			return 0, errAgain
		}
		wanted = max(wanted, left+1)
	}
	// On a new etcd lease, as a lease is when it is renewed.
	id, seconds, err := l.grant(ctx, wanted)
	if full(err) && session.exists() { // for as long as that etcd lease can
		seconds, err = l.keepAlive(ctx, session.lease)
		return time.Duration(seconds) * time.Second, err
	}
	if err != nil {
		return 0, err
	}
	about.seconds = seconds
	put := clientv3.OpPut(session.key, about.encode(), clientv3.WithLease(id))
	if err := l.change(ctx, []clientv3.Cmp{session.unchanged()}, put); err != nil {
		return 0, s.giveBack(ctx, l, id, err)
	}
	return time.Duration(seconds) * time.Second, nil
}

// Leave implements store.Ledger.
func (s *Store) Leave(ctx context.Context, group, replicaID string) error {
	if err := store.CheckName("group", group); err != nil {
		return err
	}
	if err := store.CheckName("replica", replicaID); err != nil {
		return err
	}
	return s.call(ctx, "leave", func(ctx context.Context, l *link) error {
		return l.change(ctx, nil, clientv3.OpDelete(s.sessionKey(group, replicaID)))
	})
}

// Replicas implements store.Ledger.
func (s *Store) Replicas(ctx context.Context, group string) ([]store.Replica, error) {
	if err := store.CheckName("group", group); err != nil {
		return nil, err
	}
	var replicas []store.Replica
	err := s.call(ctx, "replicas", func(ctx context.Context, l *link) error {
		replicas = nil
		prefix := s.sessionsPrefix(group)
		for p := (page{from: prefix, end: clientv3.GetPrefixRangeEnd(prefix)}); p.from != ""; {
			found, err := p.next(ctx, l)
			if err != nil {
				return err
			}
			for _, e := range found {
				about, err := hanging(e, decodePresence)
				if err != nil {
					return err
				}
				if id := strings.TrimPrefix(e.key, prefix); store.CheckName("replica", id) == nil {
					replicas = append(replicas, store.Replica{ID: id, Info: about.info})
				}
			}
		}
		return nil
	})
	return replicas, err
}
