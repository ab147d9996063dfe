//go:build unix

package soak

import (
	"context"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/tally"
)

const (
	usual  = 15 * time.Second // the lease that is the default
	seldom = "0 0 0 1 1 *"
	stops  = 7
	kills  = 3
)

// Cost measures a store: how many requests a group of three replicas makes that only waits, how many more for each tick, and
// for how long nobody leads after a stop and after a crash.
func Cost(b *testing.B, binary string, start func(testing.TB) Servers) {
	ctx, cancel := context.WithTimeout(b.Context(), 10*time.Minute)
	defer cancel()
	idle := newGroup(b, binary, start(b), usual, seldom)
	waiting := idle.rate(ctx)
	idle.end()

	busy := newGroup(b, binary, start(b), usual, often)
	busy.awaitEffects(ctx)
	ticking := busy.rate(ctx)
	busy.end()

	short := newGroup(b, binary, start(b), lease, seldom)
	afterStop, afterKill := short.gaps(ctx, stops, (*replica).term), short.gaps(ctx, kills, (*replica).kill)
	short.end()

	b.ReportMetric(0, "ns/op") // it is a measurement of its own
	b.ReportMetric(waiting, "requests/s-idle")
	b.ReportMetric(ticking-waiting, "requests/tick")
	b.ReportMetric(float64(tally.Median(afterStop).Microseconds())/1000, "ms-after-stop")
	b.ReportMetric(float64(tally.Median(afterKill).Milliseconds()), "ms-after-crash")
}

// rate is how many requests the servers have in a second, once the group has settled.
func (g *group) rate(ctx context.Context) float64 {
	if g.servers.Requests == nil {
		return 0
	}
	at := time.Now()
	g.leader(ctx)
	pause(ctx, g.lease+5*time.Second-time.Since(at)) // a new group waits for those who remember it
	before, began := g.servers.Requests(), time.Now()
	pause(ctx, 30*time.Second)
	return (g.servers.Requests() - before) / time.Since(began).Seconds()
}

// gaps ends the leader n times, and returns how long after each time another one was elected.
func (g *group) gaps(ctx context.Context, n int, end func(*replica)) (all []time.Duration) {
	for range n {
		r := g.leader(ctx)
		pause(ctx, time.Second) // until the others follow
		at := time.Now()
		end(r)
		if when, ok := g.electedAfter(ctx, at); ok {
			all = append(all, when.Sub(at))
		}
		<-r.done
		g.launch(r.name)
		pause(ctx, time.Second)
	}
	return all
}

// end stops all replicas.
func (g *group) end() {
	for _, r := range g.replicas {
		r.stop(g.t)
	}
}
