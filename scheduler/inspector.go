package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// Inspector reads a group's state and sends its leader requests, from any process, without campaigning; its methods are
// safe for concurrent use, also from inside a job. What it reads may be a moment old.
type Inspector struct {
	store   store.Store
	group   string
	author  string
	lookout lookout
}

// NewInspector returns an inspector of group. author is recorded with each request: who asks, such as "ann@laptop", at most
// 128 bytes; the requests of one author count in the order in which they were made. It does no I/O.
func NewInspector(st store.Store, group, author string) (*Inspector, error) {
	if st == nil {
		return nil, errors.New("scheduler: store is nil")
	}
	if err := store.CheckName("group", group); err != nil {
		return nil, err
	}
	if len(author) > maxAuthor || !utf8.ValidString(author) {
		return nil, fmt.Errorf("scheduler: author %.40q: use at most %d bytes of UTF-8", author, maxAuthor)
	}
	return &Inspector{store: st, group: group, author: author}, nil
}

// Status is a group at one moment.
type Status struct {
	Group    string
	Leader   store.Leader    // zero when nobody leads
	Lease    time.Duration   // of the leader; 0 when it is not known
	Replicas []store.Replica // by ID
	Jobs     []JobStatus     // by name
	Paused   *Pause          // of all jobs; nil when only single ones are paused
	Running  []Entry         // open runs, by run ID; Attempt waits to be started where Replica is empty; Detail says why a record cannot be read
}

// JobStatus is a job as the ledger knows it.
type JobStatus struct {
	Name    string
	Spec    string // as it was written
	Zone    string
	Next    time.Time // the next tick, which starts up to the job's Jitter later; zero where the schedule is foreign or cannot be read, and while the job is paused or nobody owns it
	Last    *Entry    // the newest attempt that has ended; Detail is clipped
	Skipped *Entry    // the newest history entry, where it is ticks that were skipped
	Unowned time.Time // since when no leader's binary has had the job; zero when it is owned
	Problem string    // why the leader cannot schedule it
	Once    bool      // it has no schedule: see Once
	Paused  *Pause    // of this job or of all; nil when it is not paused

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
	group, err := i.steering(ctx)
	if err != nil {
		return st, err
	}
	st.Paused = group.view(now)
	for r, err := range i.store.Read(ctx, i.group, nil, bucketJob) {
		if err != nil {
			return st, fmt.Errorf("scheduler: jobs of %s: %w", i.group, err)
		}
		st.Jobs = append(st.Jobs, jobStatus(r, group, now))
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

// steering reads the newest pause or resume of the group; nil where there was none, or it cannot be read.
func (i *Inspector) steering(ctx context.Context) (*steering, error) {
	for r, err := range i.store.Read(ctx, i.group, nil, bucketLedger) {
		if err != nil {
			return nil, fmt.Errorf("scheduler: ledger of %s: %w", i.group, err)
		}
		if r.Key != groupKey {
			continue
		}
		if rec, err := decodeGroup(r.Value); err == nil {
			return &rec.Steering, nil
		}
	}
	return nil, nil
}

func jobStatus(r store.Record, group *steering, now time.Time) JobStatus {
	rec, err := decodeJob(r)
	if err != nil {
		return JobStatus{Name: r.Key, Problem: err.Error()}
	}
	j := JobStatus{Name: r.Key, Spec: rec.Spec, Zone: rec.Zone, Last: rec.Last, Skipped: rec.Row, Problem: rec.Problem, Once: rec.Once != nil, Watermark: rec.watermark()}
	if rec.Unowned != 0 {
		j.Unowned = time.Unix(rec.Unowned, 0).UTC()
	}
	if j.Paused = rec.Steering.view(now); j.Paused == nil {
		j.Paused = group.view(now)
	}
	if table := rec.table(); table != nil && j.Problem == "" && j.Paused == nil && rec.Unowned == 0 {
		delay := jitter{job: r.Key, most: time.Duration(rec.Jitter), table: table}
		j.Next = table.next(later(j.Watermark, delay.newest(j.Watermark, now)))
		if first := table.next(j.Watermark); !first.IsZero() && now.Sub(delay.due(first)) > overdueAfter {
			j.Overdue = first
		}
	}
	return j
}
