package scheduler

import (
	"cmp"
	"container/heap"
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/internal/world"
)

// bus carries the calls of all replicas to the store and the replies back. Each call waits until the root goroutine of
// the bubble has decided its fate: it lets everything come to rest, sorts what has arrived, and draws from one source, so
// that a seed can be replayed.
type bus struct {
	rand   *rand.Rand
	decide func(c call) fate                  // for the root only
	frozen func(replica string) time.Duration // how long nothing reaches that replica

	mu      sync.Mutex
	pending []*parcel

	arrived chan struct{}
	events  events
	number  int
	trace   uint64 // hash of all that has happened
	steps   int
}

type parcel struct {
	call
	ctx     context.Context
	deliver func(context.Context) (any, error)
	answers chan answer
	hint    func()
}

func newBus(seed uint64) *bus {
	return &bus{rand: rand.New(rand.NewPCG(seed, 1)), arrived: make(chan struct{}, 1)}
}

func (b *bus) carry(ctx context.Context, c call, deliver func(context.Context) (any, error)) (any, error) {
	p := &parcel{call: c, ctx: ctx, deliver: deliver, answers: make(chan answer, 1)}
	b.put(p)
	select {
	case a := <-p.answers:
		return a.value, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (b *bus) hint(replica string, hint func()) {
	b.put(&parcel{call: call{replica: replica, op: "hint"}, hint: hint})
}

func (b *bus) put(p *parcel) {
	b.mu.Lock()
	b.pending = append(b.pending, p)
	b.mu.Unlock()
	select {
	case b.arrived <- struct{}{}:
	default:
	}
}

// run lets the world go on until then; only the root calls it.
func (b *bus) run(until time.Time) {
	for {
		synctest.Wait()
		b.collect()
		next := until
		if len(b.events) > 0 {
			next = b.events[0].at
			if !next.After(time.Now()) {
				e := heap.Pop(&b.events).(event)
				b.note(e.what)
				e.do()
				continue
			}
		}
		if !time.Now().Before(until) {
			return
		}
		timer := time.NewTimer(min(time.Until(next), time.Until(until)))
		select {
		case <-b.arrived:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// collect decides what becomes of the calls that have arrived.
func (b *bus) collect() {
	b.mu.Lock()
	pending := b.pending
	b.pending = nil
	b.mu.Unlock()
	slices.SortStableFunc(pending, func(x, y *parcel) int {
		return cmp.Or(cmp.Compare(x.replica, y.replica), cmp.Compare(x.op, y.op), cmp.Compare(x.about, y.about))
	})
	for _, p := range pending {
		what := p.replica + " " + p.op + " " + p.about
		f := b.decide(p.call)
		b.note(what)
		switch {
		case p.hint != nil:
			if !f.lost && f.err == nil {
				b.reach(p.replica, f.request, what, p.hint)
			}
		case f.err != nil:
			b.after(0, what, func() { p.answers <- answer{nil, f.err} })
		case f.lost:
		default:
			b.after(f.request, what, func() {
				v, err := p.deliver(context.WithoutCancel(p.ctx))
				if f.again > 0 {
					b.after(f.again, what, func() { _, _ = p.deliver(context.WithoutCancel(p.ctx)) })
				}
				if !f.mute {
					b.reach(p.replica, f.reply, what, func() { p.answers <- answer{v, err} })
				}
			})
		}
	}
}

// reach has something done once it can reach the replica.
func (b *bus) reach(replica string, d time.Duration, what string, do func()) {
	b.after(d, what, func() {
		if wait := b.frozen(replica); wait > 0 {
			b.reach(replica, wait, what, do)
			return
		}
		do()
	})
}

// after has something done by the root.
func (b *bus) after(d time.Duration, what string, do func()) {
	b.number++
	heap.Push(&b.events, event{at: time.Now().Add(d), number: b.number, what: what, do: do})
}

func (b *bus) note(what string) {
	h := fnv.New64a()
	fmt.Fprint(h, b.trace, time.Now().UnixNano(), what)
	b.trace = h.Sum64()
	b.steps++
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
	what   string
	do     func()
}

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
	*e = (*e)[:last]
	return x
}

// seededWorld is the surroundings of one process: chance from a seed, and a wall clock that is off by what offset says. A
// draw follows from the moment and from who asks, not from the order in which goroutines ask at one moment.
func seededWorld(seed uint64, name string, offset func() time.Duration) *world.World {
	var mu sync.Mutex
	draws, ids := make(map[string]int), 0
	random := func() uint64 {
		who := fmt.Sprint(seed, name, time.Now().UnixNano(), callers())
		mu.Lock()
		defer mu.Unlock()
		draws[who]++
		h := fnv.New64a()
		fmt.Fprint(h, who, draws[who])
		return rand.New(rand.NewPCG(seed, h.Sum64())).Uint64()
	}
	return &world.World{
		Wall:   func() time.Time { return time.Now().Add(offset()) },
		Random: random,
		ID: func() string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprintf("%013x-%06d-%s", time.Now().UnixMilli(), ids, name)
		},
		Secret: func() string { return fmt.Sprintf("%016x%016x", random(), random()) },
	}
}

// callers says who asks for a random number.
func callers() string {
	pc := make([]uintptr, 8)
	frames := runtime.CallersFrames(pc[:runtime.Callers(3, pc)])
	var who strings.Builder
	for {
		f, more := frames.Next()
		who.WriteString(f.Function)
		if !more {
			return who.String()
		}
	}
}
