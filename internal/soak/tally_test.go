package soak

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/scheduler"
)

// effect is one line that the job has written: a tick, and when.
type effect struct {
	tick int64
	at   time.Time
}

func readEffects(t *testing.T, file string) []effect {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []effect
	for line := range strings.Lines(string(data)) {
		var e effect
		var ns int64
		if _, err := fmt.Sscanf(line, "%d %d\n", &e.tick, &ns); err != nil {
			t.Errorf("line %q of the job cannot be read: %v", line, err)
			continue
		}
		e.at = time.Unix(0, ns)
		all = append(all, e)
	}
	return all
}

// chronicle is everything that the history has ever said: entries are gathered while the scenario runs, because the ring
// forgets old ones and a store that loses its data forgets all.
type chronicle struct {
	mu          sync.Mutex
	accounted   map[int64]bool // ticks that some entry is about
	interrupted map[int64]bool // ticks of which an attempt was interrupted or not started
	skipped     map[string]int
}

func (c *chronicle) gather(ctx context.Context, in *scheduler.Inspector) error {
	for e, err := range in.History(ctx, "tick") {
		if err != nil {
			return err
		}
		c.mu.Lock()
		for at := e.Tick; !at.After(e.LastTick); at = at.Add(time.Second) {
			c.accounted[at.Unix()] = true
		}
		switch e.Outcome {
		case scheduler.Interrupted:
			c.interrupted[e.Tick.Unix()] = true
		case scheduler.Skipped:
			c.skipped[e.Detail] = max(c.skipped[e.Detail], e.Ticks)
		}
		c.mu.Unlock()
	}
	return nil
}

// verdict counts ticks from the lines, against the schedule and the history.
type verdict struct {
	first, last int64
	expected    int
	missing     []int64
	doubled     []int64 // without an interrupted attempt
	rerun       []int64 // doubled, with one
	unaccounted []int64
}

func judge(effects []effect, c *chronicle) verdict {
	seen := make(map[int64]int)
	v := verdict{first: effects[0].tick}
	for _, e := range effects {
		seen[e.tick]++
		v.first, v.last = min(v.first, e.tick), max(v.last, e.tick)
	}
	for tick := v.first; tick <= v.last; tick++ {
		v.expected++
		switch n := seen[tick]; {
		case n == 0:
			v.missing = append(v.missing, tick)
		case n > 1 && c.interrupted[tick]:
			v.rerun = append(v.rerun, tick)
		case n > 1:
			v.doubled = append(v.doubled, tick)
		}
		if !c.accounted[tick] {
			v.unaccounted = append(v.unaccounted, tick)
		}
	}
	return v
}

func (v verdict) String() string {
	return fmt.Sprintf("%d ticks: %d missing, %d doubled, %d doubled after an interruption, %d not in the history",
		v.expected, len(v.missing), len(v.doubled), len(v.rerun), len(v.unaccounted))
}

func median(d []time.Duration) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[len(d)/2]
}
