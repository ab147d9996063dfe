package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

// verb is what a request asks for.
type verb string

// The verbs.
const (
	verbTrigger verb = "trigger"
	verbPause   verb = "pause"
	verbResume  verb = "resume"
	verbCancel  verb = "cancel"
	verbResign  verb = "resign"
	verbForget  verb = "forget"
	verbReset   verb = "reset"
)

// Bounds of a request.
const (
	maxAuthor = 128              // bytes
	maxAge    = 30 * time.Minute // by the store's clock: an older one is refused, whatever it asks for
)

// order is a request as it travels to the leader.
type order struct {
	Verb   verb   `json:"verb"`
	Author string `json:"author,omitempty"`
	Posted int64  `json:"posted"`           // Unix ms, the author's clock
	Job    string `json:"job,omitempty"`    // empty where it is about the group
	Tick   int64  `json:"tick,omitempty"`   // of a trigger: Unix seconds; 0 is now
	Run    string `json:"run,omitempty"`    // of a cancel
	Reason string `json:"reason,omitempty"` // of a pause
	Until  int64  `json:"until,omitempty"`  // of a pause: Unix seconds; 0 is until a resume
}

// check returns an error unless the leader can act on the order, and makes its texts harmless.
func (o *order) check() error {
	o.Author, o.Reason = clip(o.Author, maxAuthor), clip(o.Reason, maxSummary)
	switch o.Verb {
	case verbTrigger, verbForget, verbReset:
		if err := store.CheckName("job", o.Job); err != nil {
			return err
		}
	case verbPause, verbResume:
		if o.Job == "" {
			break
		}
		if err := store.CheckName("job", o.Job); err != nil {
			return err
		}
	case verbCancel:
		if err := checkRunID(o.Run); err != nil {
			return err
		}
	case verbResign:
	default:
		return fmt.Errorf("scheduler: request of unknown kind %.40q", string(o.Verb))
	}
	for _, t := range []int64{o.Tick, o.Until, o.Posted / 1000} {
		if t < 0 || !time.Unix(t, 0).Before(endOfTime) {
			return errors.New("scheduler: request has an impossible time")
		}
	}
	return nil
}

// checkRunID returns an error unless id can name a run: "job@tick" or "job@tick+request".
func checkRunID(id string) error {
	job, rest, _ := strings.Cut(id, "@")
	tick, request, manual := strings.Cut(rest, "+")
	at, err := time.Parse(time.RFC3339, tick)
	if err != nil || store.CheckName("job", job) != nil || manual && request == "" || checkRequestID(request) != nil ||
		runID(job, at, request) != id {
		return fmt.Errorf("scheduler: %.200q is no run ID; want job@2026-11-29T03:00:00Z, as history shows it", id)
	}
	return nil
}

// checkRequestID returns an error unless id is empty or can be that of a request.
func checkRequestID(id string) error {
	if id == "" {
		return nil
	}
	return store.CheckName("request", id)
}

// standing is all that decides on an order besides itself.
type standing struct {
	now   time.Time // the leader's
	store time.Time // the store's
	group *steering
	job   *jobState    // that it names; nil where the ledger has none
	runs  []*runRecord // the open runs of that job
	run   *runRecord   // that it names; nil where that is not open
}

// refusal says why an order is not obeyed, or nothing. It is the whole policy of requests, without I/O and without a clock.
func (o *order) refusal(s standing) string {
	if why := o.outdated(s.store); why != "" {
		return why
	}
	switch {
	case o.Job == "":
	case s.job == nil:
		return fmt.Sprintf("there is no job %q", o.Job)
	case s.job.problem != nil && o.Verb != verbForget:
		return fmt.Sprintf("the record of job %q cannot be read: forget it to start anew", o.Job)
	}
	switch o.Verb {
	case verbTrigger:
		return o.refusedTrigger(s)
	case verbPause:
		if o.Until != 0 && !time.Unix(o.Until, 0).After(s.now) {
			return fmt.Sprintf("it ends at %s, which has passed", when(o.Until))
		}
		return o.overtaken(s)
	case verbResume:
		return o.overtaken(s)
	case verbCancel:
		if s.run == nil {
			return fmt.Sprintf("no run %s is open", o.Run)
		}
	case verbForget:
		return o.refusedForget(s)
	}
	return ""
}

// outdated says why an order cannot be obeyed whatever it asks for; now is the store's time.
func (o *order) outdated(now time.Time) string {
	switch age := now.Sub(time.UnixMilli(o.Posted)).Truncate(time.Second); {
	case age > maxAge:
		return fmt.Sprintf("it is %v old, more than %v: ask again", age, maxAge)
	case age < -maxAge: // it would still be young when nobody remembers that it was acted on
		return fmt.Sprintf("it comes from a clock that is %v ahead of the store's: set that clock", -age)
	}
	return ""
}

func (o *order) refusedTrigger(s standing) string {
	switch {
	case s.job.def == nil:
		return fmt.Sprintf("the leader does not have job %q", o.Job)
	case time.Unix(o.Tick, 0).After(s.now):
		return fmt.Sprintf("the tick %s lies ahead", when(o.Tick))
	case s.job.def.Overlap == OverlapSkip && len(s.runs) > 0:
		return fmt.Sprintf("overlap: run %s is open", s.runs[0].id())
	}
	return ""
}

// vain says why a resume that is not refused ends nothing, or is empty. Such a resume counts: the pause that it was meant to
// end may come later.
func (o *order) vain(s standing) string {
	if o.Verb != verbResume || o.target(s).holds(s.now) {
		return ""
	}
	why := "the group is not paused"
	if o.Job != "" {
		why = fmt.Sprintf("job %q is not paused", o.Job)
		if s.group.holds(s.now) {
			why += " itself, the whole group is: resume the group"
		}
	}
	if o.Author != "" {
		why += "; a pause of yours that is still on its way has no effect"
	}
	return why
}

func (o *order) refusedForget(s standing) string {
	if s.job.def != nil && s.job.problem == nil {
		return fmt.Sprintf("the leader has job %q: remove it there first", o.Job)
	}
	for _, rec := range s.runs {
		if !rec.waits() {
			return fmt.Sprintf("run %s is open: cancel it first", rec.id())
		}
	}
	return ""
}

// target is the steering that a pause or a resume is about.
func (o *order) target(s standing) *steering {
	if o.Job == "" {
		return s.group
	}
	return s.job.record.Steering
}

// overtaken says that a later pause or resume of the same author has come before this one. Those of different authors
// count in the order in which they come: their clocks may differ.
func (o *order) overtaken(s standing) string {
	if last := o.target(s); last != nil && o.Author != "" && last.Author == o.Author && last.Posted > o.Posted {
		return "a later pause or resume of the same author has come before it"
	}
	return ""
}

func when(unix int64) string { return time.Unix(unix, 0).UTC().Format(time.RFC3339) }
