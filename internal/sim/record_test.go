package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// The records of the ledger as this package reads them. It shares no code with the scheduler, so that an error in one
// is not in the other.

const recordVersion = 1

type jobRecord struct {
	Version   int    `json:"v"`
	Spec      string `json:"spec"`
	Watermark int64  `json:"watermark"` // Unix seconds

	Steering steering `json:"steering"`
}

// steering is the newest pause or resume of a job or of the group.
type steering struct {
	Paused bool  `json:"paused"`
	Until  int64 `json:"until"` // Unix seconds; 0 is for ever
}

type groupRecord struct {
	Version  int      `json:"v"`
	Steering steering `json:"steering"`
}

// seenRecord is a message that was acted on.
type seenRecord struct {
	Version int    `json:"v"`
	Answer  string `json:"answer"`
}

type runRecord struct {
	Version   int    `json:"v"`
	Job       string `json:"job"`
	Tick      int64  `json:"tick"` // Unix seconds
	Attempt   int    `json:"attempt"`
	Reason    string `json:"reason"`
	Token     uint64 `json:"token"`
	Number    uint64 `json:"number"`
	Replica   string `json:"replica"` // "": it waits for its next attempt
	Succeeded bool   `json:"succeeded"`

	Started    time.Time `json:"started"`
	NotBefore  time.Time `json:"not_before"` // of an attempt that waits
	Interrupts int       `json:"interrupts"`
	Failures   int       `json:"failures"`
	Cancel     *struct {
		Cause string `json:"cause"`
	} `json:"cancel"` // it is to end
}

func (r runRecord) waits() bool { return r.Replica == "" }

type entryRecord struct {
	Version  int       `json:"v"`
	RunID    string    `json:"run_id"`
	Job      string    `json:"job"`
	Tick     time.Time `json:"tick"`
	LastTick time.Time `json:"last_tick"`
	Ticks    int       `json:"ticks"`
	Attempt  int       `json:"attempt"`
	Token    uint64    `json:"token"`
	Number   uint64    `json:"number"`
	Reason   string    `json:"reason"`
	Outcome  string    `json:"outcome"`
	Detail   string    `json:"detail"`
	Note     string    `json:"note"`
	Sequence uint64    `json:"sequence"`

	Permanent bool `json:"permanent"`
}

// attempt names what an entry is about: "job@tick#1".
func (e entryRecord) attempt() string { return attemptName(e.RunID, e.Attempt) }

func attemptName(run string, attempt int) string { return fmt.Sprintf("%s#%d", run, attempt) }

// The outcomes.
const (
	succeeded   = "succeeded"
	failed      = "failed"
	timedOut    = "timed out"
	interrupted = "interrupted"
	notStarted  = "not started"
	cancelled   = "cancelled"
	skipped     = "skipped"
)

// Why ticks are skipped that a job had before it was given others.
const (
	redefined = "redefined"
	restored  = "restored"
)

func (r jobRecord) version() int   { return r.Version }
func (r groupRecord) version() int { return r.Version }
func (r seenRecord) version() int  { return r.Version }
func (r runRecord) version() int   { return r.Version }
func (r entryRecord) version() int { return r.Version }

func decode[T interface{ version() int }](value []byte) (T, error) {
	var rec T
	if err := json.Unmarshal(value, &rec); err != nil {
		return rec, err
	}
	if rec.version() != recordVersion {
		return rec, fmt.Errorf("format version %d", rec.version())
	}
	return rec, nil
}

// reader decodes records, and remembers those of late: one is asked for several times.
type reader[T interface{ version() int }] struct{ late map[string]T }

func (r *reader[T]) decode(value []byte) (T, error) {
	if rec, known := r.late[string(value)]; known {
		return rec, nil
	}
	rec, err := decode[T](value)
	if err == nil {
		if r.late == nil || len(r.late) > 200 {
			r.late = make(map[string]T)
		}
		r.late[string(value)] = rec
	}
	return rec, err
}

// runTick returns the job and the tick that a run's name says.
func runTick(id string) (job string, tick time.Time, err error) {
	id, _, _ = strings.Cut(id, "+")
	job, at, _ := strings.Cut(id, "@")
	tick, err = time.Parse(time.RFC3339, at)
	return job, tick, err
}

// manual reports whether a run was asked for by a request.
func manual(id string) bool { return strings.Contains(id, "+") }

// brief is how a reader sees a run: "job@00:00:05".
func brief(run string) string {
	job, tick, err := runTick(run)
	if err != nil {
		return run
	}
	if manual(run) {
		job += ", by hand"
	}
	return job + "@" + tick.UTC().Format("15:04:05")
}
