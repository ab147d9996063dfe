//go:build long

package redlock

import (
	"testing"
	"time"
)

// These look for what is still wrong: a seed that fails is not sure to fail again.

func TestSimulationKeepsWhatWasAcknowledged(t *testing.T) {
	simSeedsOf(t, simLedgerPlan, 6, 2*time.Minute)
}

func TestSimulationOfSchedulers(t *testing.T) { simSeedsOf(t, simSchedulerPlan, 3, 2*time.Minute) }
