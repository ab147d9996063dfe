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

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// Inspector reads a group's state from any process, without campaigning; its methods are safe for concurrent use. What it
// reads may be a moment old.
type Inspector struct {
	store store.Store
	group string
}

// NewInspector returns an inspector of group. It does no I/O.
func NewInspector(st store.Store, group string) (*Inspector, error) {
	if st == nil {
		return nil, errors.New("scheduler: store is nil")
	}
	if err := store.CheckName("group", group); err != nil {
		return nil, err
	}
	return &Inspector{store: st, group: group}, nil
}

// Status is a group at one moment.
type Status struct {
	Group    string
	Leader   store.Leader    // zero when nobody leads
	Lease    time.Duration   // of the leader; 0 when it is not known
	Replicas []store.Replica // by ID
	Jobs     []JobStatus     // by name
	Running  []Entry         // open runs, by run ID; Attempt waits to be started where Replica is empty; Detail says why a record cannot be read
}

// JobStatus is a job as the ledger knows it.
type JobStatus struct {
	Name    string
	Spec    string // as it was written
	Zone    string
	Next    time.Time // the next tick, which starts up to the job's Jitter later; zero where the schedule is foreign or cannot be read, and while nobody owns the job
	Last    *Entry    // the newest attempt that has ended; Detail is clipped
	Skipped *Entry    // the newest history entry, where it is ticks that were skipped
	Unowned time.Time // since when no leader's binary has had the job; zero when it is owned
	Problem string    // why the leader cannot schedule it

	Watermark time.Time // the last tick that has been dealt with
	Overdue   time.Time // the first tick after it, when it has been due for more than 5 s and no run of the job is open; else zero
}

// overdueAfter is how late a tick is that a leader would long have dealt with.
const overdueAfter = 5 * time.Second

// Status returns leader, replicas, jobs and open runs. That nobody leads is no error: Leader is zero then.
func (i *Inspector) Status(ctx context.Context) (Status, error) {
	st := Status{Group: i.group}
	leader, err := i.store.Leader(ctx, i.group)
	if err != nil && !errors.Is(err, store.ErrNoLeader) {
		return st, fmt.Errorf("scheduler: leader of %s: %w", i.group, err)
	}
	if err == nil {
		st.Leader = leader
	}
	if st.Replicas, err = i.store.Replicas(ctx, i.group); err != nil {
		return st, fmt.Errorf("scheduler: replicas of %s: %w", i.group, err)
	}
	for _, r := range st.Replicas {
		if r.ID == st.Leader.Replica {
			st.Lease = readInfo(r.Info).lease()
		}
	}
	now := world.From(ctx).Wall()
	for r, err := range i.store.Read(ctx, i.group, nil, bucketJob) {
		if err != nil {
			return st, fmt.Errorf("scheduler: jobs of %s: %w", i.group, err)
		}
		st.Jobs = append(st.Jobs, jobStatus(r, now))
	}
	for r, err := range i.store.Read(ctx, i.group, nil, bucketRun) {
		if err != nil {
			return st, fmt.Errorf("scheduler: runs of %s: %w", i.group, err)
		}
		st.Running = append(st.Running, runStatus(r))
	}
	for _, e := range st.Running { // what has fallen due meanwhile may wait for its end
		for n := range st.Jobs {
			if st.Jobs[n].Name == e.Job {
				st.Jobs[n].Overdue = time.Time{}
			}
		}
	}
	return st, nil
}

func runStatus(r store.Record) Entry {
	rec, err := decodeRun(r)
	if err != nil {
		return Entry{RunID: r.Key, Detail: err.Error()}
	}
	e := entryOf(rec)
	switch {
	case rec.Cancel != nil:
		e.Note = "is to end: " + rec.Cancel.String()
	case !rec.NotBefore.IsZero():
		e.Note = "not before " + rec.NotBefore.UTC().Format(time.RFC3339)
	}
	e.Started = rec.Started
	return e
}

func jobStatus(r store.Record, now time.Time) JobStatus {
	rec, err := decodeJob(r)
	if err != nil {
		return JobStatus{Name: r.Key, Problem: err.Error()}
	}
	j := JobStatus{Name: r.Key, Spec: rec.Spec, Zone: rec.Zone, Last: rec.Last, Skipped: rec.Row, Problem: rec.Problem, Watermark: rec.watermark()}
	if rec.Unowned != 0 {
		j.Unowned = time.Unix(rec.Unowned, 0).UTC()
	}
	if table := rec.table(); table != nil && j.Problem == "" && rec.Unowned == 0 {
		delay := jitter{job: r.Key, most: time.Duration(rec.Jitter), table: table}
		j.Next = table.next(later(j.Watermark, delay.newest(j.Watermark, now)))
		if first := table.next(j.Watermark); !first.IsZero() && now.Sub(delay.due(first)) > overdueAfter {
			j.Overdue = first
		}
	}
	return j
}

// History yields ended attempts and skipped ticks, newest first: of one job, or with an empty name of all. A job that the
// ledger does not know is ErrUnknownJob. Entries that cannot be read are left out; an error at the end says which.
func (i *Inspector) History(ctx context.Context, job string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		entries, err := i.history(ctx, job)
		for _, e := range entries {
			if !yield(e, nil) {
				return
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
