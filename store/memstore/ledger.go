package memstore

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/go-singleton/singleton/store"
)

// page is how many records Read takes under one lock.
const page = 200

// Join implements store.Ledger.
func (s *Store) Join(ctx context.Context, name string, r store.Replica, ttl time.Duration, start bool) (time.Duration, error) {
	if err := store.CheckSession(name, r, ttl); err != nil {
		return 0, err
	}
	g, now, err := s.enter(ctx, name)
	defer s.mu.Unlock()
	if err != nil {
		return 0, err
	}
	if _, alive := g.sessions[r.ID]; !alive && !start {
		return 0, store.ErrEnded
	}
	return g.lengthen(r, now.Add(whole(ttl))).Sub(now), nil
}

// Leave implements store.Ledger.
func (s *Store) Leave(ctx context.Context, name, replicaID string) error {
	if err := store.CheckName("group", name); err != nil {
		return err
	}
	if err := store.CheckName("replica", replicaID); err != nil {
		return err
	}
	g, _, err := s.enter(ctx, name)
	defer s.mu.Unlock()
	if err == nil {
		delete(g.sessions, replicaID)
	}
	return err
}

// Replicas implements store.Ledger.
func (s *Store) Replicas(ctx context.Context, name string) ([]store.Replica, error) {
	if err := store.CheckName("group", name); err != nil {
		return nil, err
	}
	g, _, err := s.enter(ctx, name)
	defer s.mu.Unlock()
	if err != nil {
		return nil, err
	}
	var replicas []store.Replica
	for _, id := range slices.Sorted(maps.Keys(g.sessions)) {
		replicas = append(replicas, store.Replica{ID: id, Info: bytes.Clone(g.sessions[id].info)})
	}
	return replicas, nil
}

// Commit implements store.Ledger.
func (s *Store) Commit(ctx context.Context, l store.Lease, number uint64, changes []store.Change) error {
	if err := store.CheckCommit(l, number, changes); err != nil {
		return err
	}
	g, _, err := s.enter(ctx, l.Group)
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	last := uint64(0) // of this lease
	if g.position.token == l.Token {
		last = g.position.number
	}
	switch {
	case number == last:
		return nil
	case number < last:
		return store.ErrStale
	case !g.holds(l):
		return store.ErrLost
	case number > last+1:
		return store.ErrGap
	}
	for _, c := range changes {
		if c.Delete {
			delete(g.buckets[c.Bucket], c.Key)
			continue
		}
		g.put(c.Bucket, c.Key, c.Value)
	}
	g.position = position{token: l.Token, number: number}
	return nil
}

// Read implements store.Ledger.
func (s *Store) Read(ctx context.Context, name string, l *store.Lease, bucket string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		keys, err := s.keys(ctx, name, l, bucket)
		for chunk := range slices.Chunk(keys, page) {
			var records []store.Record
			records, err = s.page(ctx, name, l, bucket, chunk)
			if err != nil {
				break
			}
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
		}
		if err != nil {
			yield(store.Record{}, err)
		}
	}
}

func (s *Store) keys(ctx context.Context, name string, l *store.Lease, bucket string) ([]string, error) {
	if err := store.CheckRead(name, l, bucket); err != nil {
		return nil, err
	}
	g, _, err := s.enter(ctx, name)
	defer s.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case l != nil && !g.holds(*l):
		return nil, store.ErrLost
	}
	return slices.Sorted(maps.Keys(g.buckets[bucket])), nil
}

func (s *Store) page(ctx context.Context, name string, l *store.Lease, bucket string, keys []string) ([]store.Record, error) {
	g, _, err := s.enter(ctx, name)
	defer s.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case l != nil && !g.holds(*l):
		return nil, store.ErrLost
	}
	var records []store.Record
	for _, k := range keys {
		if v, ok := g.buckets[bucket][k]; ok {
			records = append(records, store.Record{Key: k, Value: bytes.Clone(v)})
		}
	}
	return records, nil
}

// Position implements store.Ledger.
func (s *Store) Position(ctx context.Context, name string) (token, number uint64, err error) {
	if err := store.CheckName("group", name); err != nil {
		return 0, 0, err
	}
	g, _, err := s.enter(ctx, name)
	defer s.mu.Unlock()
	if err != nil {
		return 0, 0, err
	}
	return g.position.token, g.position.number, nil
}

// Post implements store.Ledger.
func (s *Store) Post(ctx context.Context, name, id string, message []byte) error {
	if err := store.CheckMessage(name, id, message); err != nil {
		return err
	}
	if err := s.post(ctx, name, id, message); err != nil {
		return err
	}
	s.hint(name, store.InboxFilled)
	return nil
}

func (s *Store) post(ctx context.Context, name, id string, message []byte) error {
	g, _, err := s.enter(ctx, name)
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	inbox := g.buckets[store.InboxBucket]
	if _, there := inbox[id]; there {
		return nil
	}
	if len(inbox) >= store.MaxInbox {
		return store.ErrFull
	}
	g.put(store.InboxBucket, id, message)
	return nil
}

func (g *group) put(bucket, key string, value []byte) {
	records := g.buckets[bucket]
	if records == nil {
		records = map[string][]byte{}
		g.buckets[bucket] = records
	}
	records[key] = append([]byte{}, value...)
}
