package redlock

import (
	"testing"
	"time"
)

// simGrantsOfSeed is how many grants one seed of TestE3TokensGrowOverManyGrants has.
const simGrantsOfSeed = 1000

// simGrantsPlan is a scene in which the lease goes from hand to hand, as a seed draws it. Either the clocks of the servers
// are hours apart, step and drift, or servers lose what they have.
func simGrantsPlan(seed uint64) simPlan {
	p := simPlan{
		nodes: []int{3, 3, 5}[seed%3], clients: 3, grants: simGrantsOfSeed, ttl: 2 * time.Second, hold: 3 * time.Second, vanish: 0.1,
		quiet: 0.97, pace: 4 * time.Second, doubt: 9 * time.Second,
	}
	p.harms = append(p.harms, simLinkHarms...)
	p.harms = append(p.harms, simClientHarms...)
	p.harms = append(p.harms, simNodeHarms...)
	if seed%2 == 0 {
		p.skew = 3 * time.Hour
		p.harms = append(p.harms, simClockHarms...)
		return p
	}
	// A server that has lost its counter goes by its clock: it has no vote for as long as a lease lasts, and the clocks of
	// the others must not be further ahead than that.
	p.skew = p.ttl / 4
	p.truncates = true
	p.harms = append(p.harms, simDataHarms...)
	return p
}

func TestE3TokensGrowOverManyGrants(t *testing.T) {
	simSeedsOf(t, simGrantsPlan, uint64(max(1, *simGrants/simGrantsOfSeed)), 24*time.Hour)
}
