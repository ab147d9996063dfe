// Package tally counts what became of each tick of an every-second job: from the lines that the job has written, and from
// what the history has said meanwhile.
package tally

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-singleton/singleton/scheduler"
)

// Effect is one line that the job has written: a tick in seconds since 1970, and when in nanoseconds, with a blank between.
type Effect struct {
	Tick int64
	At   time.Time
}

// Line returns the line of an effect.
func (e Effect) Line() string { return fmt.Sprintf("%d %d\n", e.Tick, e.At.UnixNano()) }

// Read returns the effects of a file; one that is not there holds none.
func Read(file string) ([]Effect, error) {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []Effect
	for line := range strings.Lines(string(data)) {
		var e Effect
		var ns int64
		if _, err := fmt.Sscanf(line, "%d %d\n", &e.Tick, &ns); err != nil {
			return nil, fmt.Errorf("line %q of the job cannot be read: %w", line, err)
		}
		e.At = time.Unix(0, ns)
		all = append(all, e)
	}
	return all, nil
}

// Chronicle is everything that the history of a job has ever said: gather it while a scenario runs, because the ring
// forgets old entries and a store that loses its data forgets all. Its methods are safe for concurrent use; the zero value
// is empty.
type Chronicle struct {
	mu          sync.Mutex
	accounted   map[int64]bool // ticks that some entry is about
	interrupted map[int64]bool // ticks of which an attempt was interrupted
	skipped     map[string]int
}

// Gather adds what the history says now.
func (c *Chronicle) Gather(ctx context.Context, in *scheduler.Inspector, job string) error {
	for e, err := range in.History(ctx, job) {
		if err != nil {
			return err
		}
		c.add(e)
	}
	return nil
}

func (c *Chronicle) add(e scheduler.Entry) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.accounted == nil {
		c.accounted, c.interrupted, c.skipped = map[int64]bool{}, map[int64]bool{}, map[string]int{}
	}
	for at := e.Tick; !at.After(e.LastTick); at = at.Add(time.Second) {
		c.accounted[at.Unix()] = true
	}
	switch e.Outcome {
	case scheduler.Interrupted:
		c.interrupted[e.Tick.Unix()] = true
	case scheduler.Skipped:
		c.skipped[e.Detail] = max(c.skipped[e.Detail], e.Ticks)
	}
}

// Skipped returns how many ticks were skipped, by the reason.
func (c *Chronicle) Skipped() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fmt.Sprint(c.skipped)
}

// Verdict counts ticks from the lines, against the schedule and the history.
type Verdict struct {
	Expected    int
	Missing     []int64
	Doubled     []int64 // without an interrupted attempt
	Rerun       []int64 // doubled, with one
	Unaccounted []int64
}

// Judge expects each tick between the first and the last effect.
func Judge(effects []Effect, c *Chronicle) (v Verdict) {
	if len(effects) == 0 {
		return v
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := make(map[int64]int)
	first, last := effects[0].Tick, effects[0].Tick
	for _, e := range effects {
		seen[e.Tick]++
		first, last = min(first, e.Tick), max(last, e.Tick)
	}
	for tick := first; tick <= last; tick++ {
		v.Expected++
		switch n := seen[tick]; {
		case n == 0:
			v.Missing = append(v.Missing, tick)
		case n > 1 && c.interrupted[tick]:
			v.Rerun = append(v.Rerun, tick)
		case n > 1:
			v.Doubled = append(v.Doubled, tick)
		}
		if !c.accounted[tick] {
			v.Unaccounted = append(v.Unaccounted, tick)
		}
	}
	return v
}

func (v Verdict) String() string {
	return fmt.Sprintf("%d ticks: %d missing, %d doubled, %d doubled after an interruption, %d not in the history",
		v.Expected, len(v.Missing), len(v.Doubled), len(v.Rerun), len(v.Unaccounted))
}

// Median returns the middle one of some durations, 0 of none.
func Median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(d))[len(d)/2]
}
