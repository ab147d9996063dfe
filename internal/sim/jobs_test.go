package sim

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"math/big"
	"time"

	"github.com/go-singleton/singleton/scheduler"
)

// pattern is a schedule of which this package knows the ticks by itself: the seconds since 1970 that leave a remainder.
type pattern struct{ every, at int64 }

// due enumerates: every tick is one, nothing is worked out.
func (p pattern) due(after, until int64) (ticks []int64) {
	for s := after + 1; s <= until; s++ {
		if s%p.every == p.at {
			ticks = append(ticks, s)
		}
	}
	return ticks
}

// Next makes it a foreign schedule.
func (p pattern) Next(t time.Time) time.Time {
	s := t.Unix() + 1
	for s%p.every != p.at {
		s++
	}
	return time.Unix(s, 0)
}

// job is a job of the group: what one binary or another makes of it.
type job struct {
	name      string
	exclusive bool // no two runs at once
	rerun     bool // after an interruption
	slow      bool // its runs take long
	failures  int  // that a run may have, where it is tried again; else 0
	builds    []build
}

// build is a job as a binary has it.
type build struct {
	pattern pattern
	job     scheduler.Job
}

// jobs returns the jobs of the group. Schedules of a minute, and what determines the ticks differs from build to build of
// some, or is written in another way, or only a policy differs.
func jobs() []*job {
	all := []*job{
		{rerun: true, builds: []build{
			{pattern{10, 5}, scheduler.Job{Name: "all", Spec: "5-59/10 * * * * *", CatchUp: scheduler.CatchUpAll, CatchUpMax: 20}},
		}},
		{builds: []build{
			{pattern{9, 0}, scheduler.Job{Name: "skip", Spec: "@every 9s"}},
			{pattern{10, 3}, scheduler.Job{Name: "skip", Spec: "3,13,23,33,43,53 * * * * *"}},
		}},
		{rerun: true, builds: []build{
			{pattern{20, 2}, scheduler.Job{Name: "queue", Spec: "2-59/20 * * * * *", Overlap: scheduler.OverlapQueue, Window: 20 * time.Second}},
		}},
		{builds: []build{
			{pattern{15, 0}, scheduler.Job{Name: "allow-all", Spec: "*/15 * * * * *", CatchUp: scheduler.CatchUpAll,
				Overlap: scheduler.OverlapAllow, CatchUpMax: 3}},
		}},
		{rerun: true, builds: []build{
			{pattern{30, 0}, scheduler.Job{Name: "none", Spec: "0,30 * * * * *", CatchUp: scheduler.CatchUpNone}},
		}},
		{rerun: true, slow: true, builds: []build{
			{pattern{5, 0}, scheduler.Job{Name: "allow", Spec: "0-59/5 * * * * *", Overlap: scheduler.OverlapAllow}},
			{pattern{5, 0}, scheduler.Job{Name: "allow", Spec: "*/5 * * * * *", Overlap: scheduler.OverlapAllow, Timeout: 9 * time.Second}},
		}},
		{builds: []build{
			{pattern{25, 0}, scheduler.Job{Name: "timeout", Spec: "@every 25s", Timeout: 300 * time.Millisecond}},
		}},
		{builds: []build{
			{pattern{20, 0}, scheduler.Job{Name: "foreign", Spec: "every 20 s", CatchUp: scheduler.CatchUpAll, CatchUpMax: 2}},
			{pattern{25, 5}, scheduler.Job{Name: "foreign", Spec: "every 25 s", CatchUp: scheduler.CatchUpAll, CatchUpMax: 2}},
		}},
		{rerun: true, slow: true, builds: []build{
			{pattern{30, 10}, scheduler.Job{Name: "slow", Spec: "10,40 * * * * *"}},
		}},
		{rerun: true, builds: []build{
			{pattern{15, 4}, scheduler.Job{Name: "retry", Spec: "4-59/15 * * * * *", Timeout: 2 * time.Second,
				Retry: scheduler.Retry{Attempts: 3, Delay: 1500 * time.Millisecond, MaxDelay: 2500 * time.Millisecond}}},
			{pattern{15, 4}, scheduler.Job{Name: "retry", Spec: "4,19,34,49 * * * * *", Timeout: 2 * time.Second,
				Retry: scheduler.Retry{Attempts: 2, Delay: 12 * time.Second}}},
		}},
		{rerun: true, slow: true, builds: []build{
			{pattern{10, 8}, scheduler.Job{Name: "replace", Spec: "8-59/10 * * * * *", Overlap: scheduler.OverlapReplace,
				Retry: scheduler.Retry{Attempts: 2, Delay: 4 * time.Second}}},
		}},
		{builds: []build{
			{pattern{20, 7}, scheduler.Job{Name: "jitter", Spec: "7,27,47 * * * * *", Jitter: 9 * time.Second, CatchUp: scheduler.CatchUpNone,
				Retry: scheduler.Retry{Attempts: 2, Delay: 3 * time.Second}}},
			{pattern{20, 7}, scheduler.Job{Name: "jitter", Spec: "7-59/20 * * * * *", Jitter: time.Hour,
				Retry: scheduler.Retry{Attempts: 2, Delay: 3 * time.Second}}},
		}},
	}
	for _, j := range all {
		for i := range j.builds {
			b := &j.builds[i]
			j.name = b.job.Name
			if j.rerun {
				b.job.OnInterrupt = scheduler.InterruptRerun
			}
			if j.name == "foreign" {
				b.job.Schedule = b.pattern
			}
			j.exclusive = b.job.Overlap != scheduler.OverlapAllow
			j.failures = max(j.failures, b.job.Retry.Attempts)
		}
	}
	return all
}

// pattern returns the ticks that a spec stands for.
func (j *job) pattern(spec string) (pattern, error) {
	for _, b := range j.builds {
		if b.job.Spec == spec {
			return b.pattern, nil
		}
	}
	return pattern{}, fmt.Errorf("job %s has never had the spec %q", j.name, spec)
}

// due returns when a tick may start at the earliest, whichever binary leads.
func (j *job) due(tick int64) time.Time {
	first := time.Unix(tick+j.builds[0].pattern.every, 0)
	for _, b := range j.builds {
		most := min(b.job.Jitter, time.Duration(b.pattern.every)*time.Second-1)
		sum := sha256.Sum256([]byte(j.name + time.Unix(tick, 0).UTC().Format("@2006-01-02T15:04:05Z")))
		delay := new(big.Int).SetBytes(sum[:8])
		delay.Mod(delay, big.NewInt(int64(most)+1))
		if at := time.Unix(tick, delay.Int64()); at.Before(first) {
			first = at
		}
	}
	return first
}

// draw is a number that follows from the seed and what it is for.
func draw(seed uint64, what ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, seed, " ")
	fmt.Fprintln(h, what...)
	x := h.Sum64() // its high bits hardly differ
	x ^= x >> 33
	x *= 0xff51afd7ed558ccd
	return x ^ x>>33
}
