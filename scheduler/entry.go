package scheduler

import (
	"fmt"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Entry is one line of history: an attempt that has ended, or consecutive ticks that were skipped for one reason. Of a run
// in Status, which has not ended, Outcome is empty.
type Entry struct {
	RunID    string    `json:"run_id,omitempty"` // "job@tick", of a manual run "job@tick+request"; empty for skips
	Job      string    `json:"job"`
	Tick     time.Time `json:"tick"`              // of the attempt, or the first of the skipped
	LastTick time.Time `json:"last_tick"`         // the last of the skipped; Tick for an attempt
	Ticks    int       `json:"ticks"`             // how many were skipped; 1 for an attempt
	Attempt  int       `json:"attempt,omitempty"` // from 1; 0 for skips
	Reason   Reason    `json:"reason,omitempty"`
	Token    uint64    `json:"token,omitempty"` // of the term that claimed the attempt, or skipped the ticks
	Replica  string    `json:"replica,omitempty"`
	Started  time.Time `json:"started,omitzero"`
	Ended    time.Time `json:"ended,omitzero"` // when it ended, or was found interrupted; when the ticks were skipped
	Outcome  Outcome   `json:"outcome,omitempty"`
	Detail   string    `json:"detail,omitempty"` // the error, at most 4 KiB; or why the ticks were skipped
	Note     string    `json:"note,omitempty"`   // what became known after the outcome stood, or why no attempt follows

	Permanent bool   `json:"permanent,omitempty"` // the job has returned an error of backoff.Permanent
	Request   string `json:"request,omitempty"`   // of a manual run the ID of the request that asked for it
	Author    string `json:"author,omitempty"`    // of a manual run who has asked for it

	Sequence uint64 `json:"sequence"`         // grows over the entries of a job
	Number   uint64 `json:"number,omitempty"` // of the commit that claimed the attempt: with Token, the claim's name
}

// Outcome says how an attempt or a tick ended.
type Outcome string

// The outcomes.
const (
	Succeeded   Outcome = "succeeded"
	Failed      Outcome = "failed"
	TimedOut    Outcome = "timed out"
	Cancelled   Outcome = "cancelled"
	Interrupted Outcome = "interrupted" // its end is not known, or its replica had to stop before it
	NotStarted  Outcome = "not started" // its replica has said that it never started it, and never will
	Skipped     Outcome = "skipped"
)

// check returns an error unless e can be an entry of the job, and makes what it holds of text and times harmless: a store's
// data may come from anywhere.
func (e *Entry) check(job string) error {
	if err := store.CheckName("job", job); err != nil {
		return err
	}
	e.Tick, e.LastTick = e.Tick.UTC().Truncate(time.Second), e.LastTick.UTC().Truncate(time.Second)
	e.Started, e.Ended = utc(e.Started), utc(e.Ended)
	e.Detail, e.Note, e.Replica = clip(e.Detail, maxDetail), clip(e.Note, maxDetail), clip(e.Replica, maxSummary)
	e.Author = clip(e.Author, maxAuthor)
	id, attempt := "", 0
	if err := checkRequestID(e.Request); err != nil {
		return err
	}
	switch e.Outcome {
	case Skipped:
		e.Request, e.Author = "", ""
	case Succeeded, Failed, TimedOut, Cancelled, Interrupted, NotStarted, "":
		id, attempt = runID(job, e.Tick, e.Request), max(1, e.Attempt)
	default:
		return fmt.Errorf("scheduler: entry of %s has unknown outcome %.40q", job, e.Outcome)
	}
	if e.Job != job || e.RunID != id || e.Attempt != attempt || e.Ticks < 0 || len(e.Reason) > maxReason {
		return fmt.Errorf("scheduler: entry of %s has impossible values", job)
	}
	return nil
}

// maxReason bounds the word for why an attempt was started.
const maxReason = 32

// maxDetail bounds what one run may write into the ledger.
const maxDetail = 4 << 10

// clip cuts s to at most n bytes of valid UTF-8.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	return strings.ToValidUTF8(s[:n-len(mark)], "") + mark
}
