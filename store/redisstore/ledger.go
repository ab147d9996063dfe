package redisstore

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

// A page of Read.
const (
	pageRecords = 200
	pageBytes   = 256 << 10
)

// Join implements store.Ledger.
func (s *Store) Join(ctx context.Context, group string, r store.Replica, ttl time.Duration, start bool) (time.Duration, error) {
	if err := store.CheckSession(group, r, ttl); err != nil {
		return 0, err
	}
	got, err := s.run(ctx, "join", group, joinScript, []string{s.sessionsKey(group), s.infoKey(group)},
		r.ID, ttl.Milliseconds(), start, r.Info)
	if err != nil {
		return 0, err
	}
	if got.word == "granted" {
		ms, err := got.integer(0)
		return time.Duration(ms) * time.Millisecond, err
	}
	return 0, outcome("join", got)
}

// Leave implements store.Ledger.
func (s *Store) Leave(ctx context.Context, group, replicaID string) error {
	if err := store.CheckName("group", group); err != nil {
		return err
	}
	if err := store.CheckName("replica", replicaID); err != nil {
		return err
	}
	r, err := s.run(ctx, "leave", group, leaveScript, []string{s.sessionsKey(group), s.infoKey(group)}, replicaID)
	if err != nil {
		return err
	}
	return outcome("leave", r)
}

// Replicas implements store.Ledger.
func (s *Store) Replicas(ctx context.Context, group string) ([]store.Replica, error) {
	if err := store.CheckName("group", group); err != nil {
		return nil, err
	}
	r, err := s.run(ctx, "replicas", group, replicasScript, []string{s.sessionsKey(group), s.infoKey(group)})
	if err != nil {
		return nil, err
	}
	ids, infos := r.list(0), r.list(1)
	if r.word != "ok" || len(ids) != len(infos) {
		return nil, strange("replicas", r.word)
	}
	var replicas []store.Replica
	for i := range ids {
		id, _ := ids[i].(string)
		info, _ := infos[i].(string)
		if err := store.CheckName("replica", id); err != nil {
			return nil, s.foreignEntry(s.sessionsKey(group), err)
		}
		replica := store.Replica{ID: id}
		if info != "" {
			replica.Info = []byte(info)
		}
		replicas = append(replicas, replica)
	}
	slices.SortFunc(replicas, func(a, b store.Replica) int { return strings.Compare(a.ID, b.ID) })
	return replicas, nil
}

// Commit implements store.Ledger.
func (s *Store) Commit(ctx context.Context, l store.Lease, number uint64, changes []store.Change) error {
	if err := store.CheckCommit(l, number, changes); err != nil {
		return err
	}
	keys := []string{s.leaseKey(l.Group), s.fenceKey(l.Group)}
	args := []any{value(l), strconv.FormatUint(l.Token, 10), number, s.replicas.count > 0}
	places := map[string]int{}
	for _, c := range changes {
		place, known := places[c.Bucket]
		if !known {
			keys = append(keys, s.bucketKey(l.Group, c.Bucket))
			place = len(keys) // Lua counts from 1
			places[c.Bucket] = place
		}
		args = append(args, place, c.Key, !c.Delete, c.Value)
	}
	r, err := s.send(ctx, "commit", l.Group, request{script: commitScript, keys: keys, args: args, wait: s.replicas})
	if err != nil {
		return err
	}
	return outcome("commit", r)
}

// Read implements store.Ledger.
func (s *Store) Read(ctx context.Context, group string, l *store.Lease, bucket string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		keys, records, err := s.list(ctx, group, l, bucket)
		for {
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
			}
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			if len(keys) == 0 {
				return
			}
			var taken int
			taken, records, err = s.page(ctx, group, l, bucket, keys[:min(len(keys), pageRecords)])
			keys = keys[taken:]
		}
	}
}

// list returns the records of a bucket that fits into a page, or the keys of one that does not, in order.
func (s *Store) list(ctx context.Context, group string, l *store.Lease, bucket string) ([]string, []store.Record, error) {
	if err := store.CheckRead(group, l, bucket); err != nil {
		return nil, nil, err
	}
	r, err := s.readScript(ctx, group, l, bucket, nil)
	if err != nil {
		return nil, nil, err
	}
	found, values := r.list(0), r.list(1)
	keys := make([]string, len(found))
	for i, k := range found {
		keys[i], _ = k.(string)
		if err := store.CheckKey(keys[i]); err != nil {
			return nil, nil, s.foreignEntry(s.bucketKey(group, bucket), err)
		}
	}
	if len(values) < len(keys) {
		slices.Sort(keys)
		return keys, nil, nil
	}
	records := collect(keys, values)
	slices.SortFunc(records, func(a, b store.Record) int { return strings.Compare(a.Key, b.Key) })
	return nil, records, nil
}

// page returns the records of as many of keys as fit into a page, and how many keys those were.
func (s *Store) page(ctx context.Context, group string, l *store.Lease, bucket string, keys []string) (int, []store.Record, error) {
	r, err := s.readScript(ctx, group, l, bucket, keys)
	if err != nil {
		return 0, nil, err
	}
	values := r.list(1)
	if len(values) == 0 || len(values) > len(keys) {
		return 0, nil, strange("read", r.word)
	}
	return len(values), collect(keys, values), nil
}

func (s *Store) readScript(ctx context.Context, group string, l *store.Lease, bucket string, keys []string) (reply, error) {
	args := []any{"", pageBytes, pageRecords}
	if l != nil {
		args[0] = value(*l)
	}
	for _, k := range keys {
		args = append(args, k)
	}
	r, err := s.run(ctx, "read", group, readScript, []string{s.leaseKey(group), s.bucketKey(group, bucket)}, args...)
	if err == nil {
		err = outcome("read", r)
	}
	return r, err
}

// collect pairs keys with their values; a record that has gone meanwhile has none.
func collect(keys []string, values []any) []store.Record {
	var records []store.Record
	for i, v := range values {
		if text, ok := v.(string); ok {
			records = append(records, store.Record{Key: keys[i], Value: []byte(text)})
		}
	}
	return records
}

// Position implements store.Ledger.
func (s *Store) Position(ctx context.Context, group string) (token, number uint64, err error) {
	if err := store.CheckName("group", group); err != nil {
		return 0, 0, err
	}
	r, err := s.run(ctx, "position", group, positionScript, []string{s.fenceKey(group)})
	if err != nil {
		return 0, 0, err
	}
	if token, err = strconv.ParseUint(r.text(0), 10, 64); err == nil {
		number, err = strconv.ParseUint(r.text(1), 10, 64)
	}
	if err != nil || token > store.MaxToken || number > store.MaxToken {
		key := s.fenceKey(group)
		return 0, 0, store.Permanent(fmt.Sprintf("redisstore: %s holds an impossible position: "+
			"find out who writes there, then DEL %s", key, key), err)
	}
	return token, number, nil
}

// Post implements store.Ledger.
func (s *Store) Post(ctx context.Context, group, id string, message []byte) error {
	if err := store.CheckMessage(group, id, message); err != nil {
		return err
	}
	r, err := s.run(ctx, "post", group, postScript, []string{s.bucketKey(group, store.InboxBucket)},
		id, message, store.MaxInbox, s.channel(group, store.InboxFilled))
	if err != nil {
		return err
	}
	return outcome("post", r)
}

// foreignEntry says that a key of ours holds an entry that no store has put there.
func (s *Store) foreignEntry(key string, err error) error {
	return fmt.Errorf("redisstore: %s holds an entry that is not ours; find out who writes there and delete it: %w", key, err)
}
