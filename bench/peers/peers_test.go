package main

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"
)

// TestMain lets the test binary be its own replicas.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "replica" {
		if err := replicaMain(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// TestEachSetupRuns measures each set-up for a moment, and one whose leader is killed, all at the same time.
func TestEachSetupRuns(t *testing.T) {
	const ticks = 3
	rows := []scenario{{setup: "cron", fault: kill, first: 500 * time.Millisecond, every: time.Minute}}
	for setup := range setups {
		rows = append(rows, scenario{setup: setup, fault: none})
	}
	results := make([]result, len(rows))
	var wg sync.WaitGroup
	for i, s := range rows {
		s.job, s.offsets, s.settle = time.Millisecond, make([]time.Duration, 3), time.Second
		wg.Go(func() {
			var err error
			if results[i], err = s.measure(t.Context(), ticks); err != nil {
				t.Errorf("%s: %v", s.setup, err)
			}
		})
	}
	wg.Wait()
	for i, r := range results {
		s := rows[i]
		if r.once+r.doubled+r.lost != ticks || r.lost == ticks {
			t.Errorf("%s: got %+v", s.setup, r)
		}
		if s.setup == "cron" && r.once == ticks {
			t.Errorf("three replicas without a lock ran nothing twice: %+v", r)
		}
		if (r.faults == 1) != (s.fault == kill) {
			t.Errorf("%s: %d faults with %q", s.setup, r.faults, s.fault)
		}
	}
}
