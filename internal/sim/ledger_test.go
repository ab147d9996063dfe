package sim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

// ledger follows the commits that the store has applied, one by one, and judges each by what is promised.
type ledger struct {
	fail    func(format string, args ...any)
	tell    func(text string) // what a reader may want to know
	term    func(token uint64) string
	session func(replica string) int // which one of that name it is
	jobs    map[string]*job
	records map[string]map[string][]byte
	claims  map[string][]string // of a run: the replica of each attempt

	sessions  map[string]int    // for which an attempt was claimed
	byRequest map[string]string // of a request: its run
	success   map[string]bool   // runs that are known to have succeeded
	commits   int
	terms     map[uint64]bool // that have committed

	reloaded time.Time // when the store has last lost records

	readJob   reader[jobRecord]
	readRun   reader[runRecord]
	readEntry reader[entryRecord]
}

// maxAhead is how far ahead of the time a tick may be dealt with.
const maxAhead = 30 * time.Second

func newLedger(jobs []*job, fail func(string, ...any)) *ledger {
	l := &ledger{
		fail:     fail,
		tell:     func(string) {},
		jobs:     make(map[string]*job),
		records:  make(map[string]map[string][]byte),
		claims:   make(map[string][]string),
		success:  make(map[string]bool),
		sessions: make(map[string]int),

		byRequest: make(map[string]string),
		terms:     make(map[uint64]bool),
	}
	for _, j := range jobs {
		l.jobs[j.name] = j
	}
	return l
}

// commit is one that is judged.
type commit struct {
	*ledger
	name   string
	lease  store.Lease
	number uint64
	all    []store.Change
	taken  map[string][]int64    // job → ticks that became claims or rows
	begun  map[string][]int64    // job → such ticks of the pattern that this commit gives it
	rows   map[string][][2]int64 // job → rows that do not say how many ticks they are
}

// apply judges the changes of one commit and makes them.
func (l *ledger) apply(lease store.Lease, number uint64, changes []store.Change, now time.Time) {
	l.commits++
	l.terms[lease.Token] = true
	c := &commit{
		ledger: l, lease: lease, number: number, all: changes,
		taken: make(map[string][]int64), begun: make(map[string][]int64), rows: make(map[string][][2]int64),
		name: fmt.Sprintf("commit %d of %s", number, l.term(lease.Token)),
	}
	for _, ch := range changes {
		switch bucket, job, _ := strings.Cut(ch.Bucket, "/"); {
		case bucket == "history" && !ch.Delete:
			c.entry(job, ch)
		case bucket == "run" && !ch.Delete:
			c.run(ch)
		case bucket == "run":
			c.close(ch)
		}
	}
	for _, ch := range changes {
		if ch.Bucket == "job" && !ch.Delete {
			c.job(ch, now)
		}
	}
	for _, taken := range []map[string][]int64{c.taken, c.begun} {
		for _, job := range slices.Sorted(maps.Keys(taken)) {
			l.fail("%s takes ticks of %s without moving its watermark: %v", c.name, job, taken[job])
		}
	}
	for _, ch := range changes {
		if l.records[ch.Bucket] == nil {
			l.records[ch.Bucket] = make(map[string][]byte)
		}
		if ch.Delete {
			delete(l.records[ch.Bucket], ch.Key)
		} else {
			l.records[ch.Bucket][ch.Key] = ch.Value
		}
	}
	if now.Sub(l.reloaded) > 20*time.Second { // runs that had ended come back, until their replicas tell of them
		c.overlaps()
	}
}

// before returns the pattern and watermark that a job's record has before the commit.
func (c *commit) before(job string) (rec jobRecord, p pattern, ok bool) {
	j := c.jobs[job]
	value, ok := c.records["job"][job]
	if !ok || j == nil {
		return rec, p, false
	}
	rec, err := c.readJob.decode(value)
	if err == nil {
		p, err = j.pattern(rec.Spec)
	}
	if err != nil {
		c.fail("job %s: %v", job, err)
	}
	return rec, p, true
}

// job judges that the watermark moves forward, and that each tick it passes is a claim or part of a row.
func (c *commit) job(ch store.Change, now time.Time) {
	j := c.jobs[ch.Key]
	if j == nil {
		c.fail("%s writes the unknown job %s", c.name, ch.Key)
		return
	}
	rec, err := c.readJob.decode(ch.Value)
	if err != nil {
		c.fail("%s writes job %s: %v", c.name, ch.Key, err)
		return
	}
	if _, err := j.pattern(rec.Spec); err != nil {
		c.fail("%s: %v", c.name, err)
		return
	}
	old, ticks, known := c.before(ch.Key)
	starts := c.starts(ch.Key, rec, now)
	if !known {
		old.Watermark = starts
	}
	if rec.Watermark < old.Watermark {
		c.fail("%s moves the watermark of %s back from %d to %d", c.name, ch.Key, old.Watermark, rec.Watermark)
	}
	if rec.Watermark > now.Add(maxAhead).Unix() {
		c.fail("%s moves the watermark of %s %d s ahead", c.name, ch.Key, rec.Watermark-now.Unix())
	}
	var passed []int64
	if known {
		passed = ticks.due(old.Watermark, starts)
	}
	got := c.taken[ch.Key]
	delete(c.taken, ch.Key)
	for _, row := range c.rows[ch.Key] {
		got = append(got, ticks.due(max(row[0]-1, old.Watermark), row[1])...)
	}
	slices.Sort(got)
	if !c.reloaded.IsZero() { // the row that a remembered job was in goes on
		got = slices.DeleteFunc(got, func(s int64) bool { return s <= old.Watermark })
	}
	if !slices.Equal(got, passed) {
		c.fail("%s moves the watermark of %s from %d to %d past %v, but accounts for %v", c.name, ch.Key, old.Watermark, rec.Watermark, passed, got)
	}
}

// starts returns up to when a job's ticks are those it had before the commit. Where the commit gives it others, it starts
// from about now, and those ticks, too, are each accounted for.
func (c *commit) starts(job string, rec jobRecord, now time.Time) int64 {
	begun := c.begun[job]
	if len(begun) == 0 {
		return rec.Watermark
	}
	delete(c.begun, job)
	slices.Sort(begun)
	starts := begun[0] - 1
	if old, ticks, known := c.before(job); known { // one that was due after the start is none any more
		if due := ticks.due(slices.Max(append(c.taken[job], old.Watermark)), starts); len(due) > 0 {
			starts = due[0] - 1
		}
	}
	if p, _ := c.after(job); !slices.Equal(begun, p.due(starts, rec.Watermark)) || starts < now.Add(-maxAhead).Unix() {
		c.fail("%s lets %s start from %d, and up to %d accounts for %v", c.name, job, starts, rec.Watermark, begun)
	}
	return starts
}

// after returns the pattern that the commit gives a job, and whether that is one it did not have before. Of a job that the
// store had lost nobody can tell.
func (c *commit) after(job string) (p pattern, begins bool) {
	_, old, known := c.before(job)
	if !known && !c.reloaded.IsZero() {
		return p, false
	}
	for _, ch := range c.all {
		if ch.Bucket != "job" || ch.Key != job || ch.Delete {
			continue
		}
		if rec, err := c.readJob.decode(ch.Value); err == nil {
			p, err = c.jobs[job].pattern(rec.Spec)
			return p, err == nil && p != old
		}
	}
	return p, false
}

// entry judges an entry, and gathers the ticks that it adds to a row.
func (c *commit) entry(job string, ch store.Change) {
	e, err := c.readEntry.decode(ch.Value)
	if err != nil || c.jobs[job] == nil {
		c.fail("%s writes history of %s: %v", c.name, job, err)
		return
	}
	var old *entryRecord
	if value, ok := c.records[ch.Bucket][ch.Key]; ok {
		was, err := c.readEntry.decode(value)
		if err != nil {
			c.fail("history of %s: %v", job, err)
			return
		}
		if was.Sequence == e.Sequence {
			old = &was
		}
	}
	if e.Outcome == skipped {
		c.row(job, e, old)
		return
	}
	if old != nil && (old.RunID != e.RunID || old.Attempt != e.Attempt || old.Outcome != e.Outcome) {
		c.fail("%s changes an entry from %+v to %+v", c.name, *old, e)
	}
	if e.Outcome == succeeded || strings.Contains(e.Note, succeeded) {
		c.success[e.RunID] = true
	}
	begun := len(c.claims[e.RunID])
	if dropped := manual(e.RunID) && e.Outcome == cancelled && begun == 0; e.Attempt < 1 || e.Attempt > begun && !dropped {
		c.fail("%s records the end of an attempt that was never claimed: %+v", c.name, e)
	}
	if old == nil {
		c.tell(fmt.Sprintf("%s (attempt %d): %s", brief(e.RunID), e.Attempt, e.Outcome) + because(e.Detail))
	} else if e.Note != old.Note {
		c.tell(fmt.Sprintf("%s (attempt %d), a note: %s", brief(e.RunID), e.Attempt, firstLine(e.Note)))
	}
}

// row judges ticks that are skipped.
func (c *commit) row(job string, e entryRecord, old *entryRecord) {
	from, count := e.Tick.Unix(), e.Ticks
	if old != nil {
		if old.Outcome != skipped || old.Detail != e.Detail || !old.Tick.Equal(e.Tick) {
			c.fail("%s changes a row from %+v to %+v", c.name, *old, e)
		}
		from, count = old.LastTick.Unix()+1, e.Ticks-old.Ticks
	}
	patterns, taken := c.patterns(job), c.taken
	if p, begins := c.after(job); begins && e.Detail != redefined && e.Detail != restored {
		patterns, taken = []pattern{p}, c.begun
	}
	if len(patterns) == 0 {
		c.fail("%s skips ticks of a job that is new: %+v", c.name, e)
		return
	}
	c.tell(fmt.Sprintf("%s: %d skipped up to %s, %s", job, count, e.LastTick.UTC().Format("15:04:05"), e.Detail))
	if count == 0 && job == "foreign" { // of a schedule that nobody has any more: nobody knows which they are
		c.rows[job] = append(c.rows[job], [2]int64{from, e.LastTick.Unix()})
		return
	}
	for _, p := range patterns {
		ticks := p.due(from-1, e.LastTick.Unix())
		if len(ticks) == count && count > 0 && ticks[count-1] == e.LastTick.Unix() && (old != nil || ticks[0] == e.Tick.Unix()) {
			taken[job] = append(taken[job], ticks...)
			return
		}
	}
	c.fail("%s skips ticks that do not match: %+v after %+v", c.name, e, old)
}

// patterns returns the patterns that skipped ticks of a job may have: that of its record, or where the store has lost that,
// whatever a replica remembers.
func (c *commit) patterns(job string) (all []pattern) {
	if _, p, known := c.before(job); known {
		all = append(all, p)
	}
	if !c.reloaded.IsZero() {
		for _, b := range c.jobs[job].builds {
			all = append(all, b.pattern)
		}
	}
	return all
}

// buckets are those whose records are followed.
func (l *ledger) buckets() []string {
	buckets := []string{"job", "run", "seen", "ledger"}
	for _, name := range slices.Sorted(maps.Keys(l.jobs)) {
		buckets = append(buckets, "history/"+name)
	}
	return buckets
}

// reload follows a store that has lost records.
func (l *ledger) reload(st store.Store) {
	l.records, l.reloaded = l.read(st), time.Now()
}

func (l *ledger) read(st store.Store) map[string]map[string][]byte {
	all := make(map[string]map[string][]byte)
	for _, b := range l.buckets() {
		all[b] = make(map[string][]byte)
		for r, err := range st.Read(context.Background(), group, nil, b) {
			if err != nil {
				l.fail("%v", err)
			}
			all[b][r.Key] = r.Value
		}
	}
	return all
}

// compare judges that the store holds what the commits that were applied have made, and nothing else.
func (l *ledger) compare(st store.Store) {
	all := l.read(st)
	for _, b := range l.buckets() {
		if !maps.EqualFunc(all[b], l.records[b], bytes.Equal) {
			l.fail("bucket %s is not what the commits have made of it", b)
		}
	}
}

// claimed returns nil when the attempt of a run has an open claim for the replica.
func (l *ledger) claimed(id string, attempt int, token uint64, replica string) error {
	value, ok := l.records["run"][id]
	if !ok {
		return errors.New("no such run is open")
	}
	rec, err := l.readRun.decode(value)
	if err != nil {
		return err
	}
	if rec.Attempt != attempt || rec.Token != token || rec.Replica != replica {
		return fmt.Errorf("the claim is that of attempt %d by %s under %d", rec.Attempt, rec.Replica, rec.Token)
	}
	return nil
}

// settled judges, some time after all faults, that no job is behind and no run waits for ever.
func (l *ledger) settled(now time.Time, slack time.Duration) {
	for _, name := range slices.Sorted(maps.Keys(l.jobs)) {
		value, ok := l.records["job"][name]
		if !ok {
			l.fail("job %s is not in the ledger", name)
			continue
		}
		rec, err := l.readJob.decode(value)
		if err != nil {
			l.fail("job %s: %v", name, err)
			continue
		}
		p, _ := l.jobs[name].pattern(rec.Spec)
		if due := p.due(rec.Watermark, now.Add(-slack).Unix()); len(due) > 0 {
			l.fail("job %s is %d ticks behind", name, len(due))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(l.records["run"])) {
		if _, tick, err := runTick(id); err != nil || now.Sub(tick) > slack {
			l.fail("%s is still open", id)
		}
	}
}

// because is what a reader is told of a reason.
func because(s string) string {
	if s == "" {
		return ""
	}
	return " (" + firstLine(s) + ")"
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
