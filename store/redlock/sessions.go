package redlock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Join implements store.Ledger. Nodes that have forgotten a session which a majority has just lengthened start it again.
func (s *Store) Join(ctx context.Context, group string, r store.Replica, ttl time.Duration, start bool) (time.Duration, error) {
	if err := store.CheckSession(group, r, ttl); err != nil {
		return 0, err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return 0, err
	}
	defer end()
	ttl = ttl.Truncate(time.Millisecond)
	longest, began := s.remember(group, 0, ttl), time.Now()
	join := func(to []*link, start bool) *votes[joined] {
		return ask(ctx, s, query{group: group, changes: true, to: to}, func(ctx context.Context, n node) (joined, error) {
			left, from, err := n.join(ctx, group, r, ttl, start)
			return joined{from, left}, err
		})
	}
	answers := join(nil, start)
	done := count{s: s}
	var left []time.Duration
	var ended []*link
	gone := 0
	for v := range answers.all(ctx) {
		switch {
		case v.err != nil:
			done.fail(v.link, v.err)
		case v.value.left == 0:
			done.excuse(v.link, "does not know the session")
			ended = append(ended, v.link)
			if barred(v.value.stamp, v.durable, longest.session) == "" {
				gone++
			}
		default:
			if err := done.add(v.link, v.value.Run); err != nil {
				return 0, err
			}
			left = append(left, v.value.left)
		}
		if done.reached() {
			if len(ended) > 0 {
				join(ended, true)
			}
			finish(ctx, s, answers, func(v vote[joined]) {
				if v.err == nil && v.value.left == 0 {
					join([]*link{v.link}, true)
				}
			})
			granted := last(left, s.quorum)
			s.promise(group, r.ID, began.Add(min(granted, ttl)), false)
			return granted, nil
		}
		if gone > len(s.links)-s.quorum {
			return 0, store.ErrEnded
		}
	}
	err = done.short(ctx, "join")
	switch {
	case len(ended) == 0:
	case s.lives(group, r.ID):
		join(ended, true)
	case len(ended) > len(s.links)-s.quorum:
		err = fmt.Errorf("%w: %w", store.ErrEnded, err)
	}
	return 0, err
}

// promise notes until when a majority keeps a session, as the caller has been told; a lease sets it, also earlier.
func (s *Store) promise(group, replica string, until time.Time, lease bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	of, now := s.promised[group], time.Now()
	if of == nil {
		of = map[string]time.Time{}
		s.promised[group] = of
	}
	maps.DeleteFunc(of, func(_ string, end time.Time) bool { return !now.Before(end) })
	if lease || until.After(of[replica]) {
		of[replica] = until
	}
}

// lives tells whether a majority has promised to keep a session until later than now: wherever it is missing, it may be
// started again, because nobody can have been told that it has ended.
func (s *Store) lives(group, replica string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Now().Before(s.promised[group][replica])
}

// joined is the answer to a join.
type joined struct {
	stamp
	left time.Duration
}

// Leave implements store.Ledger.
func (s *Store) Leave(ctx context.Context, group, replicaID string) error {
	if err := store.CheckName("group", group); err != nil {
		return err
	}
	if err := store.CheckName("replica", replicaID); err != nil {
		return err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	s.mu.Lock()
	delete(s.promised[group], replicaID)
	s.mu.Unlock()
	return s.most(ctx, "leave", group, func(ctx context.Context, n node) error { return n.leave(ctx, group, replicaID) })
}

// Replicas implements store.Ledger: a replica is alive if any node of a majority says so.
func (s *Store) Replicas(ctx context.Context, group string) ([]store.Replica, error) {
	if err := store.CheckName("group", group); err != nil {
		return nil, err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	longest := s.remember(group, 0, 0)
	answers := ask(ctx, s, query{group: group}, func(ctx context.Context, n node) (living, error) {
		list, from, err := n.replicas(ctx, group)
		return living{from, list}, err
	})
	told := count{s: s}
	alive := map[string]store.Replica{}
	for v := range answers.all(ctx) {
		if v.err != nil {
			told.fail(v.link, v.err)
			continue
		}
		for _, r := range v.value.replicas {
			if known, there := alive[r.ID]; !there || len(known.Info) == 0 {
				alive[r.ID] = r
			}
		}
		if why := barred(v.value.stamp, v.durable, longest.session); why != "" {
			told.excuse(v.link, why)
			continue
		}
		if err := told.add(v.link, v.value.Run); err != nil {
			return nil, err
		}
		if told.reached() {
			var list []store.Replica
			for _, id := range slices.Sorted(maps.Keys(alive)) {
				list = append(list, alive[id])
			}
			return list, nil
		}
	}
	return nil, told.short(ctx, "replicas")
}

// living are the replicas that a node says are alive.
type living struct {
	stamp
	replicas []store.Replica
}
