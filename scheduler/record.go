package scheduler

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

// The buckets of the ledger.
const (
	bucketJob    = "job"
	bucketRun    = "run"
	bucketSeen   = "seen"
	bucketLedger = "ledger" // holds the marker: that a ledger exists
)

const markerKey = "marker"

func historyBucket(job string) string { return "history/" + job }

// formatVersion is the version of every record. A leader that meets another one must not lead: it would write over what
// it cannot read.
const formatVersion = 1

var errVersion = errors.New("scheduler: the ledger was written by another version of this library")

// jobRecord is what the ledger knows of a job.
type jobRecord struct {
	Version   int    `json:"v"`
	Spec      string `json:"spec"` // as it was written
	Zone      string `json:"zone"`
	Key       string `json:"key"`               // what determines the ticks, in normal form: only another key is a change
	Jitter    int64  `json:"jitter,omitempty"`  // nanoseconds
	Watermark int64  `json:"watermark"`         // Unix seconds
	Sequence  uint64 `json:"sequence"`          // of the newest history entry
	Ring      int    `json:"ring"`              // how many history entries are kept
	Unowned   int64  `json:"unowned,omitempty"` // Unix seconds since when no leader has had the job
	Problem   string `json:"problem,omitempty"` // why the leader cannot schedule it
	Row       *Entry `json:"row,omitempty"`     // the newest history entry, while further skips may join it
	Last      *Entry `json:"last,omitempty"`    // the newest attempt that has ended

	Steering  *steering  `json:"steering,omitempty"`  // its newest pause or resume
	Once      *onceClaim `json:"once,omitempty"`      // newest claim of a job without a schedule, see Once
	OpenUntil time.Time  `json:"open_until,omitzero"` // a run was open until then: ticks inside are overlapped, whoever led
}

func (r *jobRecord) watermark() time.Time { return time.Unix(r.Watermark, 0).UTC() }

// runRecord is an open run: claimed and not known to have ended, or waiting for its next attempt (Replica is empty).
type runRecord struct {
	Version    int       `json:"v"`
	Job        string    `json:"job"`
	Tick       int64     `json:"tick"` // Unix seconds
	Attempt    int       `json:"attempt"`
	Reason     Reason    `json:"reason"`
	Token      uint64    `json:"token"`  // with Number the name of the claim
	Number     uint64    `json:"number"` // of the commit
	Replica    string    `json:"replica"`
	Started    time.Time `json:"started"`              // when it was claimed
	Session    int64     `json:"session_ms"`           // length of the session it lives on
	Interrupts int       `json:"interrupts,omitempty"` // attempts that were interrupted
	Failures   int       `json:"failures,omitempty"`   // attempts that have failed or timed out
	Succeeded  bool      `json:"succeeded,omitempty"`  // an earlier attempt is known to have: there is no next one
	NotBefore  time.Time `json:"not_before,omitzero"`  // of an attempt that waits

	Cancel *cancelMark `json:"cancel,omitempty"` // the attempt is to end, and none follows
	Lost   bool        `json:"lost,omitempty"`   // the store has lost what came after the attempt: none follows

	Request string `json:"request,omitempty"` // of a manual run: the ID of the request that asked for it
	Author  string `json:"author,omitempty"`  // of a manual run: who has asked
	Asked   int64  `json:"asked,omitempty"`   // of a manual run: when, Unix seconds
	Last    *Entry `json:"last,omitempty"`    // of a manual run: its last attempt that has ended
}

func (r *runRecord) id() string        { return runID(r.Job, r.tick(), r.Request) }
func (r *runRecord) tick() time.Time   { return time.Unix(r.Tick, 0).UTC() }
func (r *runRecord) claimed() position { return position{r.Token, r.Number} }
func (r *runRecord) waits() bool       { return r.Replica == "" }
func (r *runRecord) claim() claimKey   { return claimKey{run: r.id(), token: r.Token, number: r.Number} }

// last says why no attempt follows the one that is open, whatever becomes of it; "" where one may.
func (r *runRecord) last() string {
	switch {
	case r.Cancel != nil:
		return r.Cancel.String()
	case r.Succeeded:
		return "another attempt has succeeded"
	case r.Lost:
		return lostLater
	}
	return ""
}

// claimKey names one attempt.
type claimKey struct {
	run    string
	token  uint64
	number uint64
}

// due is when the run was meant to start: a manual one when it was asked for, whatever its tick.
func (r *runRecord) due() time.Time {
	if r.Request != "" {
		return time.Unix(r.Asked, 0).UTC()
	}
	return r.tick()
}

type markerRecord struct {
	Version int       `json:"v"`
	Created time.Time `json:"created"`
}

// encode panics only for what cannot be JSON, which no record is.
func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("scheduler: %T is not JSON: %v", v, err))
	}
	return b
}

// ownHead is how a record begins that this version has written: its version need not be looked for.
var ownHead = fmt.Appendf(nil, `{"v":%d,`, formatVersion)

// decode reads a record; errVersion where another version wrote it.
func decode(value []byte, into any) error {
	if !bytes.HasPrefix(value, ownHead) {
		if err := checkVersion(value); err != nil {
			return err
		}
	}
	if err := json.Unmarshal(value, into); err != nil {
		return fmt.Errorf("scheduler: record cannot be read: %w", err)
	}
	return nil
}

func checkVersion(value []byte) error {
	var head struct {
		Version int `json:"v"`
	}
	if err := json.Unmarshal(value, &head); err != nil {
		return fmt.Errorf("scheduler: record cannot be read: %w", err)
	}
	switch {
	case head.Version < 1:
		return errors.New("scheduler: record has no version")
	case head.Version != formatVersion:
		return fmt.Errorf("%w: record version %d, this is version %d; upgrade the older binary", errVersion, head.Version, formatVersion)
	}
	return nil
}

// decodeRun reads a run record and checks it against its key, since a store's data may come from anywhere.
func decodeRun(rec store.Record) (*runRecord, error) {
	r := new(runRecord)
	if err := decode(rec.Value, r); err != nil {
		return nil, err
	}
	if err := store.CheckName("job", r.Job); err != nil {
		return nil, err
	}
	if !r.waits() {
		if err := store.CheckName("replica", r.Replica); err != nil {
			return nil, err
		}
	}
	if err := checkRequestID(r.Request); err != nil {
		return nil, err
	}
	r.Author = clip(r.Author, maxAuthor)
	if r.Last != nil {
		if err := r.Last.check(r.Job); err != nil {
			return nil, err
		}
		r.Last.shorten()
	}
	if r.id() != rec.Key || r.Asked < 0 || !r.due().Before(endOfTime) || r.Attempt < 1 || len(r.Reason) > maxReason || r.Interrupts < 0 || r.Failures < 0 ||
		r.Session < 0 || r.Session > store.MaxDuration.Milliseconds() {
		return nil, fmt.Errorf("scheduler: run record %.300q has impossible values", rec.Key)
	}
	if r.Cancel != nil {
		if err := r.Cancel.check(); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// decodeJob reads a job record and checks it against its key.
func decodeJob(rec store.Record) (*jobRecord, error) {
	r := new(jobRecord)
	if err := decode(rec.Value, r); err != nil {
		return nil, err
	}
	if err := store.CheckName("job", rec.Key); err != nil {
		return nil, err
	}
	if r.Once != nil {
		if err := r.Once.check(rec.Key); err != nil {
			return nil, err
		}
	}
	for _, e := range []*Entry{r.Row, r.Last} {
		if e == nil {
			continue
		}
		if err := e.check(rec.Key); err != nil {
			return nil, err
		}
		e.shorten()
	}
	if r.Steering != nil {
		r.Steering.tame()
	}
	if r.Ring < 1 || r.Ring > maxHistory || r.Watermark < 0 || r.Jitter < 0 || !r.watermark().Before(endOfTime) ||
		len(r.Zone) > maxZone || len(r.Spec) > maxSpec || len(r.Key) > 4*maxSpec || strings.ContainsAny(r.Spec, "\n\r") {
		return nil, fmt.Errorf("scheduler: job record %q has impossible values", rec.Key)
	}
	return r, nil
}

// maxZone bounds the name of a zone.
const maxZone = 256

// historyRecord is an entry as it is stored.
type historyRecord struct {
	Version int `json:"v"`
	Entry
}

// decodeEntry reads an entry in the history of a job.
func decodeEntry(job string, rec store.Record) (*Entry, error) {
	r := new(historyRecord)
	if err := decode(rec.Value, r); err != nil {
		return nil, err
	}
	if err := r.check(job); err != nil {
		return nil, err
	}
	return &r.Entry, nil
}

// historyKey is the slot of a ring of size slots: it is written over again and again, so nothing has to be deleted.
func historyKey(sequence uint64, slots int) string {
	return fmt.Sprintf("%05d", sequence%uint64(slots))
}
