package redlock

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/go-singleton/singleton/store"
)

// A page of a bucket.
const (
	pageRecords = 200
	pageBytes   = 256 << 10
)

// Read implements store.Ledger. A leader reads what has been restored under its lease, and each page counts when a majority
// says that the lease is held; others read the newest state that a majority knows of. Messages are those of a majority
// together: one that was deleted may come again from a node that was away.
func (s *Store) Read(ctx context.Context, group string, l *store.Lease, bucket string) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		r, err := s.reading(ctx, group, l, bucket)
		for {
			var records []store.Record
			if err == nil {
				records, err = r.next(ctx)
			}
			for _, record := range records {
				if !yield(record, nil) {
					return
				}
			}
			if err != nil {
				yield(store.Record{}, err)
				return
			}
			if len(r.keys) == 0 {
				return
			}
		}
	}
}

// reading is a Read that is under way.
type reading struct {
	*Store
	group  string
	lease  *store.Lease
	bucket string
	but    []string // records of these keys, in order, are not asked for
	sure   bool     // what a majority has that has surely lost nothing, whether it holds the lease or not
	least  head     // of the state that is read: this one or a later one
	keys   []string // that are left
	listed bool
}

// reading begins a Read; a leader's begins with the restored ledger.
func (s *Store) reading(ctx context.Context, group string, l *store.Lease, bucket string) (*reading, error) {
	if err := store.CheckRead(group, l, bucket); err != nil {
		return nil, err
	}
	r := &reading{Store: s, group: group, bucket: bucket}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if l == nil {
		return r, nil
	}
	kept := *l
	r.lease = &kept
	t := s.term(kept)
	if t.lost() {
		return nil, store.ErrLost
	}
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.leave()
	if !t.restored {
		if err := s.restore(ctx, t); err != nil {
			return nil, err
		}
	}
	r.least = t.at
	return r, nil
}

// next returns the next records; keys are those left after them.
func (r *reading) next(ctx context.Context) ([]store.Record, error) {
	ctx, end, err := r.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	if !r.listed {
		records, err := r.list(ctx)
		r.listed = err == nil
		return records, err
	}
	wanted := r.keys[:min(len(r.keys), pageRecords)]
	pages, err := r.pages(ctx, wanted)
	if err != nil {
		return nil, err
	}
	taken := len(wanted)
	for _, p := range pages {
		taken = min(taken, len(p.Values))
	}
	if taken == 0 {
		return nil, errors.New("redlock: read: a page without a record")
	}
	var records []store.Record
	for i, key := range wanted[:taken] {
		for _, p := range pages {
			if v := p.Values[i]; v != nil {
				records = append(records, store.Record{Key: key, Value: v})
				break
			}
		}
	}
	r.keys = r.keys[taken:]
	return records, nil
}

// list returns the records of a bucket that fits into one page, or notes the keys of one that does not.
func (r *reading) list(ctx context.Context) ([]store.Record, error) {
	pages, err := r.pages(ctx, nil)
	if err != nil {
		return nil, err
	}
	records, whole := map[string][]byte{}, true
	for _, p := range pages {
		for i, key := range p.Keys {
			if err := store.CheckKey(key); err != nil {
				return nil, err
			}
			if _, not := slices.BinarySearch(r.but, key); not {
				continue
			}
			if len(p.Values) == len(p.Keys) {
				records[key] = p.Values[i]
			} else {
				whole = false
			}
			r.keys = append(r.keys, key)
		}
	}
	slices.Sort(r.keys)
	r.keys = slices.Compact(r.keys)
	if !whole {
		return nil, nil
	}
	var list []store.Record
	for _, key := range r.keys {
		list = append(list, store.Record{Key: key, Value: records[key]})
	}
	r.keys = nil
	return list, nil
}

// pages reads one page: of the inbox, the answers of a majority; else that of one node that has the newest state a
// majority knows of, or a later one than has been read before.
func (r *reading) pages(ctx context.Context, keys []string) ([]page, error) {
	answers := ask(ctx, r.Store, query{group: r.group}, func(ctx context.Context, n node) (page, error) {
		return n.read(ctx, r.group, r.lease, r.bucket, keys)
	})
	told, lost := count{s: r.Store}, 0
	var sure, rest []page
	for v := range answers.all(ctx) {
		switch {
		case v.err != nil:
			told.fail(v.link, v.err)
			continue
		case r.lease != nil && !v.value.Held && !r.sure:
			told.excuse(v.link, "does not hold the lease for this leader")
			if lost++; lost > len(r.links)-r.quorum {
				r.known(*r.lease).lose()
				return nil, store.ErrLost
			}
			continue
		}
		if err := told.add(v.link, v.value.Run); err != nil {
			return nil, err
		}
		if v.value.doubt(v.durable) == "" {
			sure = append(sure, v.value)
		} else {
			rest = append(rest, v.value)
		}
		if told.reached() {
			if found := r.choose(sure, nil); found != nil {
				return found, nil
			}
		}
	}
	if told.reached() && r.lease == nil && ctx.Err() == nil { // too few are sure: better these than none
		if found := r.choose(nil, slices.Concat(sure, rest)); found != nil {
			return found, nil
		}
	}
	if told.reached() && ctx.Err() == nil {
		return nil, errors.New("redlock: read: no server that answers has the newest records yet: ask again")
	}
	return nil, told.short(ctx, "read")
}

// choose returns the pages to be read, nil when those that have come do not do: of nodes that have surely lost nothing, or,
// where that is all there is, of any.
func (r *reading) choose(sure, any []page) []page {
	pages := slices.Concat(sure, any)
	switch {
	case len(pages) == 0:
		return nil
	case r.bucket == store.InboxBucket:
		if len(pages) < r.quorum {
			return nil
		}
		return pages
	case r.lease == nil && len(pages) < r.quorum:
		return nil
	}
	newest := slices.MaxFunc(pages, func(a, b page) int { return a.Head.compare(b.Head) })
	if r.lease != nil && newest.Head.Base != r.least.Base || newest.Head.At.compare(r.least.At) < 0 {
		return nil
	}
	if r.lease == nil {
		r.least = newest.Head
	}
	return []page{newest}
}
