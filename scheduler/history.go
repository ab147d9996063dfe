package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Filter says which entries of history are wanted; the zero value is all.
type Filter struct {
	Job      string    // of one job; empty is all
	Outcomes []Outcome // that ended so, Skipped among them; empty is all
	Since    time.Time // that ended then or later
	Limit    int       // so many of the newest; 0 is all
}

func (f *Filter) wants(e Entry) bool {
	return (len(f.Outcomes) == 0 || slices.Contains(f.Outcomes, e.Outcome)) && !e.Ended.Before(f.Since)
}

// History yields ended attempts and skipped ticks, newest first: of one job, or with an empty name of all. A job that the
// ledger does not know is ErrUnknownJob. Entries that cannot be read are left out; an error at the end says which.
func (i *Inspector) History(ctx context.Context, job string) iter.Seq2[Entry, error] {
	return i.Find(ctx, Filter{Job: job})
}

// Find is History of the entries that a filter wants.
func (i *Inspector) Find(ctx context.Context, f Filter) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		entries, err := i.history(ctx, f.Job)
		found := 0
		for _, e := range entries {
			if !f.wants(e) {
				continue
			}
			if !yield(e, nil) {
				return
			}
			if found++; found == f.Limit {
				break
			}
		}
		if err != nil {
			yield(Entry{}, err)
		}
	}
}

func (i *Inspector) history(ctx context.Context, job string) ([]Entry, error) {
	rings := make(map[string]*jobRecord)
	for r, err := range i.store.Read(ctx, i.group, nil, bucketJob) {
		if err != nil {
			return nil, fmt.Errorf("scheduler: jobs of %s: %w", i.group, err)
		}
		if job != "" && r.Key != job || store.CheckName("job", r.Key) != nil {
			continue
		}
		rec, err := decodeJob(r)
		if err != nil {
			rec = nil // Status says so; what it has done can be read all the same
		}
		rings[r.Key] = rec
	}
	if _, known := rings[job]; job != "" && !known {
		return nil, fmt.Errorf("%w: %q in group %q", ErrUnknownJob, job, i.group)
	}
	var all []Entry
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(rings)) {
		for r, err := range i.store.Read(ctx, i.group, nil, historyBucket(name)) {
			if err != nil {
				return nil, fmt.Errorf("scheduler: history of %s: %w", name, err)
			}
			e, err := decodeEntry(name, r)
			if err != nil {
				problems = append(problems, fmt.Errorf("history of %s, %s: %w", name, r.Key, err))
				continue
			}
			// A ring that was larger once still holds older entries.
			if ring := rings[name]; ring == nil || e.Sequence+uint64(ring.Ring) > ring.Sequence {
				all = append(all, *e)
			}
		}
	}
	slices.SortFunc(all, func(a, b Entry) int {
		if job != "" {
			return cmp.Compare(b.Sequence, a.Sequence)
		}
		return cmp.Or(b.Ended.Compare(a.Ended), cmp.Compare(a.Job, b.Job), cmp.Compare(b.Sequence, a.Sequence))
	})
	return all, errors.Join(problems...)
}
