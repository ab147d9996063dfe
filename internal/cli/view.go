package cli

import (
	"time"

	"github.com/go-singleton/singleton/scheduler"
)

// entryView is one entry of history, or an open run, as programs read it.
type entryView struct {
	Job      string            `json:"job"`
	RunID    string            `json:"run_id,omitempty"` // "job@tick"; absent for skipped ticks
	Tick     time.Time         `json:"tick"`
	LastTick time.Time         `json:"last_tick"` // of skipped ticks the last; else tick
	Ticks    int               `json:"ticks"`     // how many were skipped; else 1
	Attempt  int               `json:"attempt,omitempty"`
	Reason   scheduler.Reason  `json:"reason,omitempty"`
	Outcome  scheduler.Outcome `json:"outcome,omitempty"` // absent while the run is open
	Detail   string            `json:"detail,omitempty"`
	Note     string            `json:"note,omitempty"`
	Request  string            `json:"request,omitempty"` // of a manual run: who has asked for it, and by which request
	Author   string            `json:"author,omitempty"`
	Replica  string            `json:"replica,omitempty"` // absent while an attempt waits for its start
	Token    uint64            `json:"token,omitempty"`
	Started  time.Time         `json:"started,omitzero"`
	Ended    time.Time         `json:"ended,omitzero"`
	Late     *float64          `json:"late_seconds,omitempty"` // from the tick to the start of its first attempt
	Took     *float64          `json:"took_seconds,omitempty"` // from start to end, where both are known
}

func viewEntry(e scheduler.Entry) entryView {
	v := entryView{
		Job: e.Job, RunID: e.RunID, Tick: e.Tick.UTC(), LastTick: e.LastTick.UTC(), Ticks: e.Ticks, Attempt: e.Attempt,
		Reason: e.Reason, Outcome: e.Outcome, Detail: e.Detail, Note: e.Note, Request: e.Request, Author: e.Author, Replica: e.Replica, Token: e.Token,
		Started: e.Started.UTC(), Ended: e.Ended.UTC(),
	}
	if d, ok := late(e); ok {
		s := seconds(d)
		v.Late = &s
	}
	if d, ok := took(e); ok {
		s := seconds(d)
		v.Took = &s
	}
	return v
}

// late returns how long after its tick a first attempt started. What a retry or a rerun waited for is not lateness, and a
// manual run is not late for the tick that it is as of.
func late(e scheduler.Entry) (time.Duration, bool) {
	if e.Attempt != 1 || e.Request != "" || e.Reason == scheduler.ReasonOnce || e.Started.IsZero() || e.Outcome == scheduler.NotStarted {
		return 0, false
	}
	return e.Started.Sub(e.Tick), true
}

// took returns how long an attempt went on; of one that was interrupted nobody knows.
func took(e scheduler.Entry) (time.Duration, bool) {
	if e.Started.IsZero() || e.Ended.IsZero() || e.Outcome == scheduler.Interrupted || e.Outcome == scheduler.NotStarted {
		return 0, false
	}
	return e.Ended.Sub(e.Started), true
}

// skipped says ticks that were not run.
func skipped(e scheduler.Entry) string {
	return many(e.Ticks, "tick", "ticks") + " skipped: " + e.Detail
}

// statusView is a status as programs read it.
type statusView struct {
	Group    string        `json:"group"`
	Time     time.Time     `json:"time"`             // of this machine
	Leader   *leaderView   `json:"leader"`           // null when nobody leads
	Paused   *pauseView    `json:"paused,omitempty"` // of all jobs
	Replicas []replicaView `json:"replicas"`
	Jobs     []jobStatus   `json:"jobs"`
	Running  []runView     `json:"running"` // open in the ledger
}

// runView is an open run. Where its replica is gone, so is the run; the next leader records how it ended.
type runView struct {
	entryView
	Alive *bool `json:"replica_alive,omitempty"` // absent while an attempt waits for its start
}

type leaderView struct {
	Replica   string  `json:"replica"`
	Token     uint64  `json:"token"`
	Lease     float64 `json:"lease_seconds"`     // 0 when it is not known
	Remaining float64 `json:"remaining_seconds"` // at most
}

type replicaView struct {
	ID string `json:"id"`
}

type jobStatus struct {
	Name        string     `json:"name"`
	Spec        string     `json:"spec"`
	Zone        string     `json:"zone"`
	Description string     `json:"description,omitempty"` // absent for schedules that are no cron expression
	Next        time.Time  `json:"next,omitzero"`
	Last        *entryView `json:"last,omitempty"`
	Skipped     *entryView `json:"skipped,omitempty"` // where the newest entry of history is skipped ticks
	Unowned     time.Time  `json:"unowned_since,omitzero"`
	Overdue     time.Time  `json:"overdue_since,omitzero"`
	Problem     string     `json:"problem,omitempty"`
	Paused      *pauseView `json:"paused,omitempty"` // of this job or of all
	Once        bool       `json:"once,omitempty"`   // of singleton once: it has no schedule
	Attention   bool       `json:"needs_attention"`
}

func viewStatus(st scheduler.Status, now time.Time) statusView {
	v := statusView{
		Group: st.Group, Time: now.UTC(),
		Replicas: []replicaView{}, Jobs: []jobStatus{}, Running: []runView{}, // [] rather than null
	}
	v.Paused = viewPause(st.Paused)
	if st.Leader.Replica != "" {
		v.Leader = &leaderView{
			Replica: st.Leader.Replica, Token: st.Leader.Token,
			Lease: seconds(st.Lease), Remaining: seconds(st.Leader.Remaining),
		}
	}
	for _, r := range st.Replicas {
		v.Replicas = append(v.Replicas, replicaView{ID: r.ID})
	}
	for _, j := range st.Jobs {
		job := jobStatus{
			Name: j.Name, Spec: j.Spec, Zone: j.Zone, Next: j.Next.UTC(), Unowned: j.Unowned.UTC(), Problem: j.Problem, Once: j.Once,
			Paused: viewPause(j.Paused), Overdue: j.Overdue.UTC(), Last: viewOptional(j.Last), Skipped: viewOptional(j.Skipped), Attention: needsAttention(st, j),
		}
		if words, known := describe(j.Spec, j.Zone); known {
			job.Description = words
		}
		v.Jobs = append(v.Jobs, job)
	}
	for _, e := range st.Running {
		r := runView{entryView: viewEntry(e)}
		if e.Replica != "" {
			is := alive(st.Replicas, e.Replica)
			r.Alive = &is
		}
		v.Running = append(v.Running, r)
	}
	return v
}

// pauseView is a pause as programs read it.
type pauseView struct {
	Reason string    `json:"reason,omitempty"`
	Author string    `json:"author,omitempty"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until,omitzero"` // absent where only a resume ends it
}

func viewPause(p *scheduler.Pause) *pauseView {
	if p == nil {
		return nil
	}
	return &pauseView{Reason: p.Reason, Author: p.Author, Since: p.Since.UTC(), Until: p.Until.UTC()}
}

func viewOptional(e *scheduler.Entry) *entryView {
	if e == nil {
		return nil
	}
	v := viewEntry(*e)
	return &v
}
