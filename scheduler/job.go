package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-singleton/singleton/schedule"
	"github.com/go-singleton/singleton/store"
)

// Func is a job's work. ctx ends before another replica may take the run over, when Timeout has passed, when the run is
// cancelled or replaced, and when the grace of a stopping replica is nearly over; context.Cause(ctx) says which. An error, a
// panic and runtime.Goexit are failures of this run alone. An error of backoff.Permanent (cenkalti/backoff) is not retried.
type Func func(ctx context.Context, run Run) error

// Job is a named schedule with its work and policies. The zero value of each policy is the documented default.
type Job struct {
	Name string // required, unique in the group; as store.CheckName
	Spec string // required: cron expression, or the label of Schedule, which stands for it in logs and in the ledger
	Do   Func   // required

	Schedule    schedule.Schedule // used instead of parsing Spec; change Spec when it changes. Must not block.
	Overlap     Overlap           // OverlapDefault
	CatchUp     CatchUp           // CatchUpLatest
	CatchUpMax  int               // most ticks that CatchUpAll makes up, the newest; 100
	Window      time.Duration     // how late a tick may still be made up, or get another attempt; 24 h
	OnInterrupt Interrupt         // InterruptRecord
	Timeout     time.Duration     // of one attempt; 0 is none
	Retry       Retry             // none
	Jitter      time.Duration     // largest delay of a start, the same on every replica; never past the next tick; none
}

// Overlap says what happens to a tick that falls due while a run of its job is open on any replica.
type Overlap uint8

// The overlap policies.
const (
	OverlapDefault Overlap = iota // OverlapQueue with CatchUpAll, else OverlapSkip
	OverlapSkip                   // skip the tick, with a record
	OverlapQueue                  // let it wait: when the run ends, the newest such tick starts, whatever Window
	OverlapReplace                // cancel the run with ErrReplaced; when it ends, the newest such tick starts, whatever Window
	OverlapAllow                  // run both
)

// CatchUp says what happens to ticks that nobody could start in time.
type CatchUp uint8

// The catch-up policies.
const (
	CatchUpLatest CatchUp = iota // run the newest, skip the others, with a record
	CatchUpAll                   // run all, oldest first, one after another
	CatchUpNone                  // run the newest only if it is at most 1 s late, skip the others, with a record
)

// Interrupt says what happens to a run whose end is not known, since its process or session ended first.
type Interrupt uint8

// The interrupt policies.
const (
	InterruptRecord Interrupt = iota // record it
	InterruptRerun                   // record it and start the next attempt of the same tick, until the third interruption
)

// Run is the execution of one tick, handed to the job.
type Run struct {
	Job     string
	Tick    time.Time // the scheduled instant, whole seconds, UTC
	Attempt int       // from 1
	Reason  Reason
	Token   uint64 // the fencing token of the term that claimed this attempt
	Replica string // the ID of the replica that executes it
	Request string // the ID of the request that asked for it; empty for a tick

	valid func() bool
}

// ID returns "job@tick", or "job@tick+request" of a manual run, the same for every attempt: the key for idempotent work.
func (r Run) ID() string { return runID(r.Job, r.Tick, r.Request) }

// Valid reports whether nobody else can have taken this run over: whether its replica's session certainly lives. It
// compares clocks and does no I/O: ask right before a side effect. It says nothing of Timeout and grace, which end only the
// context.
func (r Run) Valid() bool { return r.valid != nil && r.valid() }

// runID names the run of a tick, or with a request's ID a manual run as of that tick.
func runID(job string, tick time.Time, request string) string {
	id := job + "@" + tick.UTC().Format(time.RFC3339)
	if request != "" {
		id += "+" + request
	}
	return id
}

// Reason says why an attempt was started.
type Reason string

// The reasons.
const (
	ReasonSchedule Reason = "schedule"
	ReasonCatchUp  Reason = "catch-up" // the tick fell due before this term began, or is not the newest due
	ReasonRetry    Reason = "retry"    // the attempt before failed or timed out
	ReasonManual   Reason = "manual"   // somebody has asked for it
	ReasonOnce     Reason = "once"     // many have started it at about the same time, and this one claimed it; see Once
	ReasonRerun    Reason = "rerun"    // the attempt before was interrupted
)

// Defaults and bounds of a job.
const (
	defaultCatchUpMax = 100
	maxCatchUpMax     = 10_000
	defaultWindow     = 24 * time.Hour
)

// definition is a job made ready: its schedule parsed and its policies resolved.
type definition struct {
	Job
	table  *timetable
	jitter jitter
	zone   string
	key    string // of what determines the ticks
}

// late reports whether at is too late for another attempt of a run.
func (d *definition) late(rec *runRecord, at time.Time) bool {
	due := rec.due()
	if rec.Request == "" {
		due = d.jitter.due(due)
	}
	return at.Sub(due) > d.Window
}

// define checks a job and resolves its defaults; the error names every problem.
func define(j Job, opts schedule.Options) (*definition, error) {
	var problems []error
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }

	if err := store.CheckName("job", j.Name); err != nil {
		problems = append(problems, err)
	}
	if j.Do == nil {
		add("Do is nil: set it to the job's work")
	}
	d := &definition{Job: j}
	switch {
	case j.Spec == "":
		add("Spec is empty: set it to a cron expression, or with Schedule to a label of it")
	case len(j.Spec) > maxSpec:
		add("Spec has %d bytes, at most %d are allowed", len(j.Spec), maxSpec)
	case j.Schedule != nil:
		if expr, ok := j.Schedule.(*schedule.Expr); ok {
			d.use(expr)
			break
		}
		d.table = &timetable{foreign: j.Schedule, zone: time.UTC}
		if opts.Zone != nil {
			d.table.zone = opts.Zone
		}
		d.zone = clip(d.table.zone.String(), maxZone)
		d.key = foreignKey + d.zone + " " + j.Spec
	default:
		expr, err := schedule.Parse(j.Spec, opts)
		if err != nil {
			problems = append(problems, err)
			break
		}
		d.use(expr)
	}
	if j.Overlap > OverlapAllow {
		add("Overlap %d is unknown", j.Overlap)
	}
	if j.CatchUp > CatchUpNone {
		add("CatchUp %d is unknown", j.CatchUp)
	}
	if j.OnInterrupt > InterruptRerun {
		add("OnInterrupt %d is unknown", j.OnInterrupt)
	}
	if j.CatchUp == CatchUpAll && (j.Overlap == OverlapSkip || j.Overlap == OverlapReplace) {
		add("CatchUpAll runs every tick, OverlapSkip and OverlapReplace drop some: use OverlapQueue, or another CatchUp")
	}
	if j.CatchUpMax < 0 || j.CatchUpMax > maxCatchUpMax {
		add("CatchUpMax %d is out of range 0-%d", j.CatchUpMax, maxCatchUpMax)
	}
	if j.Window < 0 {
		add("Window %v is negative", j.Window)
	}
	if j.Timeout < 0 {
		add("Timeout %v is negative", j.Timeout)
	}
	problems = append(problems, j.Retry.check()...)
	if j.Jitter < 0 {
		add("Jitter %v is negative", j.Jitter)
	}
	if len(problems) > 0 {
		for i, p := range problems {
			problems[i] = fmt.Errorf("scheduler: job %.140q: %w", j.Name, p)
		}
		return nil, errors.Join(problems...)
	}

	if d.Overlap == OverlapDefault {
		d.Overlap = OverlapSkip
		if d.CatchUp == CatchUpAll {
			d.Overlap = OverlapQueue
		}
	}
	if d.CatchUpMax == 0 {
		d.CatchUpMax = defaultCatchUpMax
	}
	if d.Window == 0 {
		d.Window = defaultWindow
	}
	d.Retry = d.Retry.complete()
	d.jitter = jitter{job: d.Name, most: d.Jitter, table: d.table}
	return d, nil
}

// foreignKey begins the key of a schedule that cannot be rebuilt from it.
const foreignKey = "foreign "

// maxSpec bounds what a job writes into the ledger.
const maxSpec = schedule.MaxLength

func (d *definition) use(expr *schedule.Expr) {
	d.table = &timetable{expr: expr}
	d.zone = clip(expr.Zone().String(), maxZone)
	d.key = expr.Key()
}
