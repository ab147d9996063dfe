package redlock

import (
	"runtime"
	"testing"
	"time"
)

// simLedgerPlan is a scene with a ledger, as a seed draws it.
func simLedgerPlan(seed uint64) simPlan {
	p := simPlan{
		nodes: []int{3, 3, 5}[seed/3%3], clients: 3, ttl: 3 * time.Second, hold: 20 * time.Second, commits: 20, vanish: 0.3,
		posts: true, sessions: true, quiet: 0.97, page: 4, pace: 4 * time.Second, doubt: 13 * time.Second,
	}
	p.harm(seed)
	return p
}

// simSchedulerPlan is a scene of real schedulers.
func simSchedulerPlan(seed uint64) simPlan {
	p := simLedgerPlan(seed)
	p.real, p.posts, p.sessions = true, false, false
	if seed%4 > 0 { // else ticks wait for the clocks of servers that are behind
		p.skew = 0
	}
	return p
}

// TestSimulationKeepsWhatWasAcknowledged lets clients lead, commit, post and look on while all goes wrong that may: nothing that
// was acknowledged is lost, and all comes right in the end.
func TestSimulationKeepsWhatWasAcknowledged(t *testing.T) {
	simSeedsOf(t, simLedgerPlan, 15, 3*time.Minute)
}

// TestSimulationOfSchedulers does the same to real schedulers, and compares the history with what they have run.
func TestSimulationOfSchedulers(t *testing.T) { simSeedsOf(t, simSchedulerPlan, 6, 3*time.Minute) }

// TestSimulationIsReplayed plays a seed on one processor and on several: everything must be as it was.
func TestSimulationIsReplayed(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	for _, plan := range []func(uint64) simPlan{simGrantsPlan, simLedgerPlan, simSchedulerPlan} {
		want := simPlay(t, 2, plan(2), 5*time.Minute, false)
		for _, n := range []int{1, 2, 4} {
			runtime.GOMAXPROCS(n)
			if got := simPlay(t, 2, plan(2), 5*time.Minute, false); got.hash != want.hash {
				t.Errorf("a seed has hash %x, and on %d processors %x", want.hash, n, got.hash)
			}
		}
	}
}
