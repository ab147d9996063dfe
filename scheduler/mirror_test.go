package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

// mirror follows the commits that a store has applied, one by one, and checks each against what is promised.
type mirror struct {
	fail    func(format string, args ...any)
	jobs    map[string]*mirrorJob
	records map[string]map[string][]byte
	claims  map[string]map[int]string // run → attempt → replica
	known   map[string]bool           // runs that are known to have succeeded
	commits int
	terms   map[uint64]bool // that have committed

	reloaded time.Time // when the store last lost records
}

// mirrorJob is what the test knows of a job, apart from the code under test.
type mirrorJob struct {
	due       func(second int64) bool
	exclusive bool  // no two runs at once
	first     int64 // the watermark it began with
}

func newMirror(fail func(format string, args ...any), jobs map[string]*mirrorJob) *mirror {
	return &mirror{
		fail:    fail,
		jobs:    jobs,
		records: make(map[string]map[string][]byte),
		claims:  make(map[string]map[int]string),
		known:   make(map[string]bool),
		terms:   make(map[uint64]bool),
	}
}

// apply checks the changes of one commit and makes them.
func (m *mirror) apply(lease store.Lease, number uint64, changes []store.Change, now time.Time) {
	m.commits++
	m.terms[lease.Token] = true
	name := fmt.Sprintf("commit %d of term %d by %s", number, lease.Token, lease.Replica)
	taken := make(map[string][]int64) // job → ticks that became claims or rows
	for _, c := range changes {
		switch bucket, job, _ := strings.Cut(c.Bucket, "/"); {
		case bucket == "history" && !c.Delete:
			m.entry(name, job, c, taken)
		case bucket == bucketRun && !c.Delete:
			m.run(name, lease, number, c, taken)
		case bucket == bucketRun:
			m.close(name, c, changes)
		}
	}
	for _, c := range changes {
		if c.Bucket == bucketJob && !c.Delete {
			m.job(name, c, taken, now)
		}
	}
	for job, ticks := range taken {
		m.fail("%s takes ticks of %s without moving its watermark: %v", name, job, ticks)
	}
	for _, c := range changes {
		if m.records[c.Bucket] == nil {
			m.records[c.Bucket] = make(map[string][]byte)
		}
		if c.Delete {
			delete(m.records[c.Bucket], c.Key)
		} else {
			m.records[c.Bucket][c.Key] = c.Value
		}
	}
	if now.Sub(m.reloaded) > 10*time.Second { // runs that had ended come back, until their replicas tell of them
		m.overlaps(name)
	}
}

// reload follows a store that has lost records.
func (m *mirror) reload(st store.Store) {
	buckets := []string{bucketJob, bucketRun}
	for job := range m.jobs {
		buckets = append(buckets, historyBucket(job))
	}
	m.records, m.reloaded = make(map[string]map[string][]byte), time.Now()
	for _, b := range buckets {
		m.records[b] = make(map[string][]byte)
		for r, err := range st.Read(context.Background(), "g", nil, b) {
			if err != nil {
				m.fail("%v", err)
			}
			m.records[b][r.Key] = r.Value
		}
	}
}

// job checks that the watermark moves forward, and that each tick it passes is a claim or part of a row.
func (m *mirror) job(name string, c store.Change, taken map[string][]int64, now time.Time) {
	rec, err := decodeJob(store.Record{Key: c.Key, Value: c.Value})
	if err != nil {
		m.fail("%s writes job %s: %v", name, c.Key, err)
		return
	}
	j := m.jobs[c.Key]
	before := rec.Watermark
	if old, ok := m.records[bucketJob][c.Key]; !ok {
		j.first = rec.Watermark
	} else if was, err := decodeJob(store.Record{Key: c.Key, Value: old}); err == nil {
		before = was.Watermark
	}
	if rec.Watermark < before {
		m.fail("%s moves the watermark of %s back from %d to %d", name, c.Key, before, rec.Watermark)
	}
	if rec.Watermark > now.Add(maxAhead).Unix() {
		m.fail("%s moves the watermark of %s %ds ahead", name, c.Key, rec.Watermark-now.Unix())
	}
	var passed []int64
	for s := before + 1; s <= rec.Watermark; s++ {
		if j.due(s) {
			passed = append(passed, s)
		}
	}
	got := taken[c.Key]
	delete(taken, c.Key)
	slices.Sort(got)
	if !m.reloaded.IsZero() { // the row that a remembered job was in goes on
		got = slices.DeleteFunc(got, func(s int64) bool { return s <= before })
	}
	if !slices.Equal(got, passed) {
		m.fail("%s moves the watermark of %s from %d to %d past %v, but accounts for %v", name, c.Key, before, rec.Watermark, passed, got)
	}
}

// entry checks an entry, and gathers the ticks that it adds to a row.
func (m *mirror) entry(name, job string, c store.Change, taken map[string][]int64) {
	e, err := decodeEntry(job, store.Record{Key: c.Key, Value: c.Value})
	if err != nil {
		m.fail("%s writes history of %s: %v", name, job, err)
		return
	}
	var old *Entry
	if value, ok := m.records[c.Bucket][c.Key]; ok {
		if old, err = decodeEntry(job, store.Record{Key: c.Key, Value: value}); err != nil {
			m.fail("history of %s: %v", job, err)
			return
		}
		if old.Sequence != e.Sequence {
			old = nil
		}
	}
	if e.Outcome != Skipped {
		if old != nil && (old.RunID != e.RunID || old.Attempt != e.Attempt || old.Outcome != e.Outcome) {
			m.fail("%s changes an entry from %+v to %+v", name, *old, *e)
		}
		if e.Outcome == Succeeded || strings.Contains(e.Note, string(Succeeded)) {
			m.known[e.RunID] = true
		}
		if m.claims[e.RunID][e.Attempt] == "" {
			m.fail("%s records the end of an attempt that was never claimed: %+v", name, *e)
		}
		return
	}
	from, count := e.Tick.Unix(), e.Ticks
	if old != nil {
		if old.Detail != e.Detail || !old.Tick.Equal(e.Tick) {
			m.fail("%s changes a row from %+v to %+v", name, *old, *e)
		}
		from, count = old.LastTick.Unix()+1, e.Ticks-old.Ticks
	}
	var ticks []int64
	for s := from; s <= e.LastTick.Unix(); s++ {
		if m.jobs[job].due(s) {
			ticks = append(ticks, s)
		}
	}
	if len(ticks) != count || count == 0 || ticks[len(ticks)-1] != e.LastTick.Unix() || old == nil && ticks[0] != e.Tick.Unix() {
		m.fail("%s skips ticks that do not match: %+v after %+v", name, *e, old)
	}
	taken[job] = append(taken[job], ticks...)
}

// run checks a claim: of an attempt that was never claimed before, the next one, and not after a success.
func (m *mirror) run(name string, lease store.Lease, number uint64, c store.Change, taken map[string][]int64) {
	rec, err := decodeRun(store.Record{Key: c.Key, Value: c.Value})
	if err != nil {
		m.fail("%s writes run %s: %v", name, c.Key, err)
		return
	}
	attempts := m.claims[c.Key]
	if rec.waits() {
		if rec.Attempt != len(attempts)+1 {
			m.fail("%s lets %s wait for attempt %d after %d", name, c.Key, rec.Attempt, len(attempts))
		}
		return
	}
	if rec.Token != lease.Token || rec.Number != number {
		if attempts[rec.Attempt] == "" {
			m.fail("%s claims %s under another name: %d %d", name, c.Key, rec.Token, rec.Number)
		}
		return // a note on a claim that stands
	}
	if attempts == nil {
		attempts = make(map[int]string)
		m.claims[c.Key] = attempts
	}
	if rec.Attempt != len(attempts)+1 {
		m.fail("%s claims attempt %d of %s after %d", name, rec.Attempt, c.Key, len(attempts))
	}
	if m.known[c.Key] {
		m.fail("%s claims attempt %d of %s, which is known to have succeeded", name, rec.Attempt, c.Key)
	}
	attempts[rec.Attempt] = rec.Replica
	if rec.Attempt == 1 {
		taken[rec.Job] = append(taken[rec.Job], rec.Tick)
	}
}

// close checks that the commit that closes a run says how it ended.
func (m *mirror) close(name string, c store.Change, changes []store.Change) {
	value, ok := m.records[bucketRun][c.Key]
	if !ok {
		return
	}
	rec, err := decodeRun(store.Record{Key: c.Key, Value: value})
	if err != nil {
		m.fail("run %s: %v", c.Key, err)
		return
	}
	if rec.waits() {
		return // its last attempt stands in history
	}
	for _, other := range changes {
		if other.Bucket != historyBucket(rec.Job) {
			continue
		}
		e, err := decodeEntry(rec.Job, store.Record{Key: other.Key, Value: other.Value})
		if err == nil && e.RunID == c.Key && e.Attempt == rec.Attempt && e.Token == rec.Token && e.Number == rec.Number {
			return
		}
	}
	m.fail("%s closes %s without an entry", name, c.Key)
}

// overlaps checks that jobs that exclude it have one open run at most.
func (m *mirror) overlaps(name string) {
	open := make(map[string]string)
	for id := range m.records[bucketRun] {
		job, _, _ := strings.Cut(id, "@")
		if other, ok := open[job]; ok && m.jobs[job].exclusive {
			m.fail("%s leaves %s and %s open", name, other, id)
		}
		open[job] = id
	}
}

// claimed reports whether the ledger has an open claim of the attempt for the replica.
func (m *mirror) claimed(run Run) error {
	value, ok := m.records[bucketRun][run.ID()]
	if !ok {
		return errors.New("no such run is open")
	}
	rec, err := decodeRun(store.Record{Key: run.ID(), Value: value})
	if err != nil {
		return err
	}
	if rec.Attempt != run.Attempt || rec.Token != run.Token || rec.Replica != run.Replica {
		return fmt.Errorf("the claim is that of attempt %d by %s under %d", rec.Attempt, rec.Replica, rec.Token)
	}
	return nil
}

// watermark returns a job's, and false where there is none.
func (m *mirror) watermark(job string) (int64, bool) {
	value, ok := m.records[bucketJob][job]
	if !ok {
		return 0, false
	}
	rec, err := decodeJob(store.Record{Key: job, Value: value})
	return rec.Watermark, err == nil
}
