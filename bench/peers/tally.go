package main

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// grace is how much earlier than its second a run may start and still count for it: wall clocks are slewed while timers
// sleep.
const grace = 5 * time.Millisecond

// run is a line that a job wrote: which tick it ran for, and where.
type run struct {
	tick    int64 // Unix seconds
	replica string
}

// String returns the line.
func (r run) String() string { return fmt.Sprintf("%d %s\n", r.tick, r.replica) }

// now returns the run that starts now in a set-up whose jobs are not told their tick: its second is its tick.
func now(replica string) run { return run{time.Now().Add(grace).Unix(), replica} }

// readRuns reads the lines of all replicas.
func readRuns(file string) ([]run, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var runs []run
	for line := range bytes.Lines(text) {
		tick, replica, ok := strings.Cut(strings.TrimSuffix(string(line), "\n"), " ")
		n, err := strconv.ParseInt(tick, 10, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("%s: %q is not a tick and a replica", file, line)
		}
		runs = append(runs, run{n, replica})
	}
	return runs, nil
}

// tally says what became of the ticks of an every-second job.
type tally struct{ ticks, once, doubled, lost int }

// count tallies the ticks from first on; runs for other ticks do not count.
func count(runs []run, first int64, ticks int) tally {
	times := make([]int, ticks)
	for _, r := range runs {
		if i := r.tick - first; i >= 0 && i < int64(ticks) {
			times[i]++
		}
	}
	t := tally{ticks: ticks}
	for _, n := range times {
		switch n {
		case 0:
			t.lost++
		case 1:
			t.once++
		default:
			t.doubled++
		}
	}
	return t
}
