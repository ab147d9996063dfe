//go:build unix

package soak

import (
	"slices"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/tally"
)

// Run has three replicas of the program binary live through each kind of fault for length, on a store of its own each
// time, and fails the test for a tick that was lost, that ran twice without an interruption, or of which nothing is
// recorded. more are faults that only this kind of store has.
func Run(t *testing.T, binary string, length time.Duration, start func(testing.TB) Servers, more ...Fault) {
	all := slices.Concat(faults, own(more))
	for i, f := range all {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			soak(t, binary, length, start, all[i:i+1])
		})
	}
}

// RunInTurn is Run with the kinds of faults in turn, the store's own first, on one store, but for the loss of data.
func RunInTurn(t *testing.T, binary string, length time.Duration, start func(testing.TB) Servers, more ...Fault) {
	soak(t, binary, length, start, slices.DeleteFunc(slices.Concat(own(more), faults), func(f fault) bool { return f.empty }))
}

func soak(t *testing.T, binary string, length time.Duration, start func(testing.TB) Servers, faults []fault) {
	servers := start(t)
	g := newGroup(t, binary, servers, lease, often)
	v := g.run(length, faults)
	t.Log(v)
	if len(g.afterLease) > 0 {
		t.Logf("new leader after the lease's end: median %v of %d", tally.Median(g.afterLease), len(g.afterLease))
	}
	forgotten := faults[0].empty && servers.Forgets
	if len(v.Doubled) > 0 {
		t.Errorf("doubled without an interruption: %v", v.Doubled)
	}
	if !forgotten && len(v.Missing) > 0 {
		t.Errorf("missing: %v", v.Missing)
	}
	if !forgotten && len(v.Unaccounted) > 0 {
		t.Errorf("not in the history: %v", v.Unaccounted)
	}
	if t.Failed() {
		g.keepLogs()
	}
}
