package scheduler

import (
	"cmp"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v4"
)

// Retry says how a run whose attempt has failed or timed out is tried again: as the next attempt of the same tick, after a
// delay that doubles each time. While it waits the run is open: Overlap says what becomes of ticks that fall due. An error of
// backoff.Permanent, a cancellation and the end of Window end it. Attempts that were interrupted do not count here.
type Retry struct {
	Attempts int           // how many may fail in all, up to 100; 0 and 1 are no retry
	Delay    time.Duration // before the second attempt, or up to a tenth more; doubled each time; 1 s
	MaxDelay time.Duration // 5 min, or Delay where that is longer
}

// Defaults and bounds of a Retry.
const (
	maxAttempts     = 100
	defaultDelay    = time.Second
	defaultMaxDelay = 5 * time.Minute
)

// check returns all that is wrong with it.
func (r Retry) check() (problems []error) {
	add := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if r.Attempts < 0 || r.Attempts > maxAttempts {
		add("Retry.Attempts %d is out of range 0-%d", r.Attempts, maxAttempts)
	}
	if r.Delay < 0 {
		add("Retry.Delay %v is negative", r.Delay)
	}
	if r.MaxDelay < 0 {
		add("Retry.MaxDelay %v is negative", r.MaxDelay)
	}
	if delay := cmp.Or(r.Delay, defaultDelay); r.MaxDelay > 0 && r.MaxDelay < delay {
		add("Retry.MaxDelay %v is shorter than Retry.Delay, %v", r.MaxDelay, delay)
	}
	if (r.Delay != 0 || r.MaxDelay != 0) && (r.Attempts == 0 || r.Attempts == 1) {
		add("Retry has a delay and no attempts: set Retry.Attempts to how many there are in all, from 2")
	}
	return problems
}

// complete fills in the defaults of a Retry that has attempts.
func (r Retry) complete() Retry {
	if r.Attempts <= 1 {
		return Retry{}
	}
	r.Delay = cmp.Or(r.Delay, defaultDelay)
	r.MaxDelay = cmp.Or(r.MaxDelay, max(defaultMaxDelay, r.Delay))
	return r
}

// delay returns how long a run waits after its nth attempt that has failed. It is up to a tenth longer than the policy says,
// but not than MaxDelay, so that jobs that have failed together do not come back together; it follows from the run alone: whoever leads comes to
// the same.
func (r Retry) delay(run string, n int) time.Duration {
	steps := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(r.Delay),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(r.MaxDelay),
		backoff.WithRandomizationFactor(0), // chance would not be the same on every replica
		backoff.WithMaxElapsedTime(0),
	)
	d := steps.NextBackOff()
	for range n - 1 {
		d = steps.NextBackOff()
	}
	return d + spread(fmt.Sprintf("%s#%d", run, n), min(d/10, r.MaxDelay-d))
}

// failed records an attempt that has failed or timed out, and lets the run wait for another where the job wants it.
func (b *book) failed(j *jobState, rec *runRecord, e Entry, now time.Time) {
	rec.Failures++
	at, why := b.retry(j, rec, e, now)
	if why != "" {
		e.Note = notAgain + why
	}
	b.enter(j, e)
	if at.IsZero() {
		b.closeRun(j, rec, e.Ended)
		return
	}
	b.log.Info("run is tried again", "job", e.Job, "tick", e.Tick, "attempt", e.Attempt+1, "at", at)
	rec.Reason = ReasonRetry
	b.wait(rec, at)
}

// retry returns when the next attempt follows one that has failed, or the zero time and why none does. Where the job does not
// ask for retries, there is nothing to say.
func (b *book) retry(j *jobState, rec *runRecord, e Entry, now time.Time) (at time.Time, why string) {
	if j.def == nil {
		return time.Time{}, "the leader does not have the job"
	}
	policy := j.def.Retry
	if policy.Attempts <= 1 {
		return time.Time{}, ""
	}
	at = now.Add(policy.delay(rec.id(), rec.Failures))
	why = rec.last()
	switch {
	case why != "":
	case e.Permanent:
		why = "its error is permanent"
	case rec.Failures >= policy.Attempts:
		why = fmt.Sprintf("%d attempts have failed", rec.Failures)
	case j.def.late(rec, at):
		why = olderThanWindow
	default:
		return at, ""
	}
	return time.Time{}, why
}
