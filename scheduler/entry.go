package scheduler

import "time"

// Entry is one line of history: an attempt that has ended, or consecutive ticks that were skipped for one reason. Of a run
// in Status, which has not ended, Outcome is empty.
type Entry struct {
	RunID    string    `json:"run_id,omitempty"` // "job@tick"; empty for skips
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
	Note     string    `json:"note,omitempty"`   // what became known after the outcome stood

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

// maxDetail bounds what one run may write into the ledger.
const maxDetail = 4 << 10

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const mark = "…"
	s = s[:n-len(mark)]
	for len(s) > 0 && s[len(s)-1]&0xC0 == 0x80 {
		s = s[:len(s)-1]
	}
	if len(s) > 0 && s[len(s)-1] >= 0xC0 {
		s = s[:len(s)-1]
	}
	return s + mark
}
