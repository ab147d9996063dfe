package redlock

import (
	"testing"
	"time"
)

// simGrantsOfSeed is how many grants one seed of TestE3TokensGrowOverManyGrants has.
const simGrantsOfSeed = 1000

// simGrantsPlan is a scene in which the lease goes from hand to hand, as a seed draws it.
func simGrantsPlan(seed uint64) simPlan {
	p := simPlan{
		nodes: []int{3, 3, 5}[seed/3%3], clients: 3, grants: simGrantsOfSeed, ttl: 2 * time.Second, hold: 3 * time.Second, vanish: 0.1,
		quiet: 0.97, pace: 4 * time.Second, doubt: 9 * time.Second,
	}
	p.harm(seed)
	if p.truncates && p.skew == 0 {
		p.skew = p.ttl / 4
	}
	return p
}

// harm draws what goes wrong. Tokens rest on the counters of servers; and on their clocks where fewer than a majority that knows
// all tokens answers. So the clocks are wrong, or servers lose what they have, or both, and then no server is silent.
func (p *simPlan) harm(seed uint64) {
	kind := seed % 3
	p.harms = append(p.harms, simClientHarms...)
	if kind < 2 {
		p.harms = append(p.harms, simLinkHarms...)
		p.harms = append(p.harms, simNodeHarms...)
	} else {
		p.quiet = 1
	}
	if kind != 1 {
		p.skew = 3 * time.Hour
		p.harms = append(p.harms, simClockHarms...)
	}
	if kind > 0 {
		p.truncates = true
		p.harms = append(p.harms, simDataHarms...)
		p.harms = append(p.harms, simDataHarms...)
	}
}

func TestE3TokensGrowOverManyGrants(t *testing.T) {
	simSeedsOf(t, simGrantsPlan, uint64(max(1, *simGrants/simGrantsOfSeed)), 24*time.Hour)
}
