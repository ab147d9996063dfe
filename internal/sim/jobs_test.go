package sim

import (
	"fmt"
	"hash/fnv"
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
		{rerun: true, builds: []build{
			{pattern{15, 0}, scheduler.Job{Name: "allow", Spec: "0-59/15 * * * * *", Overlap: scheduler.OverlapAllow}},
			{pattern{15, 0}, scheduler.Job{Name: "allow", Spec: "*/15 * * * * *", Overlap: scheduler.OverlapAllow, Timeout: 2 * time.Second}},
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
