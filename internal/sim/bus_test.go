package sim

import (
	"cmp"
	"container/heap"
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/internal/world"
)

// bus is where everything waits that a replica does: its calls to the store, the replies, a goroutine that has woken, the
// start and the end of a job's work. The root goroutine of the bubble lets all come to rest, sorts what has arrived, draws
// from one source what becomes of it, and lets one thing happen at a time, so that a seed can be replayed.
type bus struct {
	rand  *rand.Rand
	trace *trace
	check func()           // after each step
	look  func() time.Time // when to check though nothing happens; zero is never

	mu       sync.Mutex
	arrivals []arrival

	arrived chan struct{}
	timer   *time.Timer
	events  events
	number  int
	steps   int
}

// arrival is something that waits for the root to decide about it.
type arrival struct {
	who, what string
	do        func()
}

func newBus(seed uint64, t *trace) *bus {
	b := &bus{rand: rand.New(rand.NewPCG(seed, 1)), trace: t, arrived: make(chan struct{}, 1), timer: time.NewTimer(time.Hour)}
	b.check, b.look = func() {}, func() time.Time { return time.Time{} }
	return b
}

// put lets something wait for the root.
func (b *bus) put(who, what string, do func()) {
	b.mu.Lock()
	b.arrivals = append(b.arrivals, arrival{who, what, do})
	b.mu.Unlock()
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

// run lets the world go on until then, or until stop says so; only the root calls it.
func (b *bus) run(until time.Time, stop func() bool) {
	for {
		synctest.Wait()
		b.trace.flush()
		b.collect()
		b.check()
		if stop() {
			return
		}
		next := until
		if len(b.events) > 0 {
			next = b.events[0].at
			if !next.After(time.Now()) {
				b.steps++
				heap.Pop(&b.events).(event).do()
				continue
			}
		}
		if !time.Now().Before(until) {
			return
		}
		if at := b.look(); !at.IsZero() && at.Before(next) {
			next = at
		}
		b.timer.Reset(min(time.Until(next), time.Until(until)))
		select {
		case <-b.arrived:
		case <-b.timer.C:
		}
	}
}

// collect takes what has arrived, in an order that is drawn.
func (b *bus) collect() {
	b.mu.Lock()
	all := b.arrivals
	b.arrivals = nil
	b.mu.Unlock()
	if len(all) > 1 {
		slices.SortStableFunc(all, func(x, y arrival) int {
			return cmp.Or(cmp.Compare(x.who, y.who), cmp.Compare(x.what, y.what))
		})
		b.rand.Shuffle(len(all), func(i, k int) { all[i], all[k] = all[k], all[i] })
	}
	for _, a := range all {
		a.do()
	}
}

// after has something done by the root.
func (b *bus) after(d time.Duration, do func()) {
	b.number++
	heap.Push(&b.events, event{at: time.Now().Add(d), number: b.number, do: do})
}

// reach has something done once it can reach the process: not while that stands still.
func (b *bus) reach(n *node, d time.Duration, do func()) {
	b.after(d, func() {
		if wait := n.stands(); wait > 0 {
			b.reach(n, wait, do)
			return
		}
		do()
	})
}

// between draws a duration.
func (b *bus) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(b.rand.Int64N(int64(hi-lo)))
}

// chance is true with probability p.
func (b *bus) chance(p float64) bool { return b.rand.Float64() < p }

type event struct {
	at     time.Time
	number int
	do     func()
}

// events are ordered by their time, and at one time by when they were made.
type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, k int) bool {
	return cmp.Or(e[i].at.Compare(e[k].at), cmp.Compare(e[i].number, e[k].number)) < 0
}
func (e events) Swap(i, k int) { e[i], e[k] = e[k], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	(*e)[last] = event{}
	*e = (*e)[:last]
	return x
}

// fate is what becomes of one call.
type fate struct {
	err     error         // answered instead of the store
	request time.Duration // how long the request is on its way; it arrives also when the caller has given up
	reply   time.Duration // how long the reply is
	lost    bool          // the request never arrives, and the caller waits
	mute    bool          // the reply never arrives, and the caller waits
	again   time.Duration // the request arrives a second time, so much later
	fault   string        // for the reader; "" without one
}

type answer struct {
	value any
	err   error
}

// carrier carries the calls of one process over the bus.
type carrier struct {
	*scene
	node *node
}

// Carry implements line.Carrier.
func (r carrier) Carry(ctx context.Context, c line.Call, deliver func(context.Context) (any, error)) (any, error) {
	b, n := r.bus, r.node
	what := c.Op + " " + c.About
	if ctx.Err() == nil {
		answers := make(chan answer, 1)
		b.put(n.name, what, func() { r.send(c, deliver, answers) })
		select {
		case a := <-answers:
			return a.value, a.err
		case <-ctx.Done():
		}
	}
	r.wait("gives up " + what)
	return nil, ctx.Err()
}

// Hint implements line.Carrier.
func (r carrier) Hint(c line.Call, hint func()) {
	r.bus.put(r.node.name, "hint "+c.About, func() {
		f := r.fate(r.node, c)
		if f.lost || f.err != nil {
			return
		}
		r.bus.reach(r.node, f.request, func() {
			r.trace.note(true, r.node.name, "gets hint", c.About)
			hint()
		})
	})
}

// turn lets a goroutine that has woken wait until it may go on.
func (r carrier) turn() { r.wait(world.Callers(4)) }

func (r carrier) wait(what string) {
	turn := make(chan struct{})
	r.bus.put(r.node.name, what, func() {
		r.bus.reach(r.node, 0, func() {
			r.trace.note(true, r.node.name, "goes on:", short(what))
			close(turn)
		})
	})
	<-turn
}

// send decides what becomes of a call.
func (r carrier) send(c line.Call, deliver func(context.Context) (any, error), answers chan<- answer) {
	b, n, name := r.bus, r.node, r.trace.callName(c)
	f := r.fate(n, c)
	b.trace.note(true, n.name, "sends", name, content(c))
	if f.fault != "" {
		b.trace.note(false, n.name+"'s "+name+":", f.fault)
	}
	reply := func(a answer) {
		b.trace.note(true, n.name, "hears of", name)
		answers <- a
	}
	switch {
	case f.err != nil:
		b.reach(n, 0, func() { reply(answer{nil, f.err}) })
	case !f.lost:
		b.after(f.request, func() {
			v, err := r.arrive(n, c, name, deliver)
			if f.again > 0 {
				b.after(f.again, func() { _, _ = r.arrive(n, c, name, deliver) })
			}
			if !f.mute {
				b.reach(n, f.reply, func() { reply(answer{v, err}) })
			}
		})
	}
}
