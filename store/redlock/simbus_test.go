package redlock

import (
	"cmp"
	"container/heap"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"
)

// simBus is where everything waits that a client of the nodes does: each call to a node, each reply, each goroutine that
// has woken. The root goroutine of the bubble lets all come to rest, sorts what has arrived, draws from one source what
// becomes of it, and lets one thing happen at a time, so that a seed can be replayed.
type simBus struct {
	rand  *rand.Rand
	trace *simTrace
	check func() // after each step

	mu       sync.Mutex
	arrivals []simArrival

	arrived chan struct{}
	timer   *time.Timer
	events  simEvents
	number  int
	steps   int
}

// simArrival is something that waits for the root to decide about it.
type simArrival struct {
	who, what string
	do        func()
}

func newSimBus(seed uint64, t *simTrace) *simBus {
	return &simBus{rand: rand.New(rand.NewPCG(seed, 7)), trace: t, arrived: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
}

// put lets something wait for the root.
func (b *simBus) put(who, what string, do func()) {
	b.mu.Lock()
	b.arrivals = append(b.arrivals, simArrival{who, what, do})
	b.mu.Unlock()
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

// run lets the world go on until then, or until stop says so; only the root calls it.
func (b *simBus) run(until time.Time, stop func() bool) {
	for {
		synctest.Wait()
		b.collect()
		if b.check != nil {
			b.check()
		}
		if stop() {
			return
		}
		next := until
		if len(b.events) > 0 {
			next = b.events[0].at
			if !next.After(time.Now()) {
				b.steps++
				heap.Pop(&b.events).(simEvent).do()
				continue
			}
		}
		if !time.Now().Before(until) {
			return
		}
		b.timer.Reset(min(time.Until(next), time.Until(until)))
		select {
		case <-b.arrived:
		case <-b.timer.C:
		}
	}
}

// collect takes what has arrived, in an order that is drawn.
func (b *simBus) collect() {
	b.mu.Lock()
	all := b.arrivals
	b.arrivals = nil
	b.mu.Unlock()
	if len(all) > 1 {
		slices.SortStableFunc(all, func(x, y simArrival) int {
			return cmp.Or(cmp.Compare(x.who, y.who), cmp.Compare(x.what, y.what))
		})
		b.rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	}
	for _, a := range all {
		a.do()
	}
}

// after has something done by the root.
func (b *simBus) after(d time.Duration, do func()) {
	b.number++
	heap.Push(&b.events, simEvent{at: time.Now().Add(d), number: b.number, do: do})
}

// between draws a duration.
func (b *simBus) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(b.rand.Int64N(int64(hi-lo)))
}

// chance is true with probability p.
func (b *simBus) chance(p float64) bool { return b.rand.Float64() < p }

// wait lets a goroutine that has woken wait until the root lets it go on.
func (b *simBus) wait(c *simClient, what string) {
	turn := make(chan struct{})
	b.put(c.name, what, func() {
		b.reach(c, 0, func() {
			b.trace.note(c.name, "goes on:", what)
			close(turn)
		})
	})
	<-turn
}

// reach has something done once it can reach the client's process: not while that stands still.
func (b *simBus) reach(c *simClient, d time.Duration, do func()) {
	b.after(d, func() {
		if wait := time.Until(c.paused); wait > 0 {
			b.reach(c, wait, do)
			return
		}
		do()
	})
}

type simEvent struct {
	at     time.Time
	number int
	do     func()
}

// simEvents are ordered by their time, and at one time by when they were made.
type simEvents []simEvent

func (e simEvents) Len() int { return len(e) }
func (e simEvents) Less(i, k int) bool {
	return cmp.Or(e[i].at.Compare(e[k].at), cmp.Compare(e[i].number, e[k].number)) < 0
}
func (e simEvents) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *simEvents) Push(x any)   { *e = append(*e, x.(simEvent)) }
func (e *simEvents) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = simEvent{}
	*e = (*e)[:last]
	return x
}
