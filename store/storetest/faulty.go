package storetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/go-singleton/singleton/store"
)

// Method is a method of the contract.
type Method string

// The methods of the contract.
const (
	Acquire  Method = "Acquire"
	Renew    Method = "Renew"
	Release  Method = "Release"
	Leader   Method = "Leader"
	Watch    Method = "Watch"
	Join     Method = "Join"
	Leave    Method = "Leave"
	Replicas Method = "Replicas"
	Commit   Method = "Commit"
	Read     Method = "Read"
	Position Method = "Position"
	Post     Method = "Post"
)

// Fault is what befalls one call.
type Fault int

// The faults. Of a Watch, the hints are lost, kept or doubled. A Read whose reply is lost breaks off after its first
// record; delayed it is lost, duplicated it is as it was.
const (
	None        Fault = iota
	RequestLost       // it never arrives
	ReplyLost         // it arrives and its answer does not
	Delayed           // it has no answer and arrives at a later time: see Deliver
	Duplicated        // it is answered and arrives once more at a later time
)

// String names the fault.
func (f Fault) String() string {
	return [...]string{"no fault", "request lost", "reply lost", "delayed past a later call", "duplicated"}[f]
}

// ErrUnanswered is what a call returns that got no answer: its outcome is not known.
var ErrUnanswered = errors.New("storetest: no answer")

// Faulty is a store whose calls get lost, delayed and duplicated on the way to another store. Its methods are safe for
// concurrent use; it starts no goroutine and holds no lock while it calls, so that it is fit for testing/synctest.
type Faulty struct {
	inner store.Store

	mu      sync.Mutex
	script  map[Method][]Fault
	pauses  map[Method][]*Pause
	calls   map[Method]int
	kept    []func() // what is to arrive at a later time
	random  *rand.Rand
	chance  float64
	cut     bool
	silent  bool
	watches []watch
}

type watch struct {
	ctx  context.Context
	hint func()
}

// Pause holds one call; see Faulty.Pause.
type Pause struct {
	reached chan struct{}
	resumed chan struct{}
	reply   bool
}

var _ store.Store = (*Faulty)(nil)

// NewFaulty returns a store that passes everything on to inner until it is told otherwise.
func NewFaulty(inner store.Store) *Faulty {
	return &Faulty{inner: inner, script: map[Method][]Fault{}, pauses: map[Method][]*Pause{}, calls: map[Method]int{}}
}

// Next makes the next calls of m suffer faults, one each in this order, None standing for a call without one.
func (f *Faulty) Next(m Method, faults ...Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script[m] = append(f.script[m], faults...)
}

// Random makes each later call that no script speaks of suffer some fault by chance, 0 to 1, and delivers what has been
// kept before some later call. The same seed and the same order of calls give the same faults.
func (f *Faulty) Random(seed uint64, chance float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.random, f.chance = rand.New(rand.NewPCG(seed, 0)), chance
}

// Cut loses every request, and every hint, until it is called with false, which calls all hints: their subscriptions
// stand again.
func (f *Faulty) Cut(on bool) {
	f.mu.Lock()
	f.cut = on
	watches := slices.Clone(f.watches)
	f.mu.Unlock()
	if on {
		return
	}
	for _, w := range watches {
		if w.ctx.Err() == nil {
			w.hint()
		}
	}
}

// Silent makes calls without an answer return when their context ends, as over a connection that is open and dead,
// instead of at once. Such calls need a context that ends.
func (f *Faulty) Silent(on bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.silent = on
}

// Pause holds the next call of m before it arrives. When its context ends first, the call returns and is kept for Deliver.
func (f *Faulty) Pause(m Method) *Pause { return f.pause(m, false) }

// PauseReply holds the answer of the next call of m. When its context ends first, the answer is lost.
func (f *Faulty) PauseReply(m Method) *Pause { return f.pause(m, true) }

func (f *Faulty) pause(m Method, reply bool) *Pause {
	f.mu.Lock()
	defer f.mu.Unlock()
	p := &Pause{reached: make(chan struct{}), resumed: make(chan struct{}), reply: reply}
	f.pauses[m] = append(f.pauses[m], p)
	return p
}

// Reached is closed when the call is held.
func (p *Pause) Reached() <-chan struct{} { return p.reached }

// Resume lets the call go on. It must be called once.
func (p *Pause) Resume() { close(p.resumed) }

// hold waits until the pause is over; false means that ctx has ended first.
func (p *Pause) hold(ctx context.Context) bool {
	close(p.reached)
	select {
	case <-p.resumed:
		return true
	case <-ctx.Done():
		return false
	}
}

// Deliver lets everything arrive that has been kept, in the order in which it was sent, and returns how much that was.
func (f *Faulty) Deliver() int {
	f.mu.Lock()
	kept := f.kept
	f.kept = nil
	f.mu.Unlock()
	for _, arrive := range kept {
		arrive()
	}
	return len(kept)
}

// Calls returns how often m has been called.
func (f *Faulty) Calls(m Method) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[m]
}

// plan returns what befalls a call, and what arrives before it.
func (f *Faulty) plan(m Method) (fault Fault, p *Pause, silent bool, arriving func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls[m]++
	if list := f.pauses[m]; len(list) > 0 {
		p, f.pauses[m] = list[0], list[1:]
	}
	switch list := f.script[m]; {
	case f.cut:
		fault = RequestLost
	case len(list) > 0:
		fault, f.script[m] = list[0], list[1:]
	case f.random != nil:
		if len(f.kept) > 0 && f.random.IntN(2) == 0 {
			arriving, f.kept = f.kept[0], f.kept[1:]
		}
		if f.random.Float64() < f.chance {
			fault = RequestLost + Fault(f.random.IntN(int(Duplicated)))
		}
	}
	return fault, p, f.silent, arriving
}

func (f *Faulty) keep(arrive func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kept = append(f.kept, arrive)
}

// invoke makes one call of the inner store with what befalls it.
func invoke[T any](f *Faulty, ctx context.Context, m Method, do func(context.Context) (T, error)) (T, error) {
	var none T
	if err := ctx.Err(); err != nil {
		return none, err
	}
	fault, p, silent, arriving := f.plan(m)
	if arriving != nil {
		arriving()
	}
	late := func() { _, _ = do(context.WithoutCancel(ctx)) }
	if p != nil && !p.reply && !p.hold(ctx) {
		f.keep(late)
		return none, ctx.Err()
	}
	value, err := none, error(nil)
	if fault == None || fault == ReplyLost || fault == Duplicated {
		value, err = do(ctx)
	}
	if fault == Delayed || fault == Duplicated {
		f.keep(late)
	}
	if p != nil && p.reply && !p.hold(ctx) {
		return none, ctx.Err()
	}
	if fault == None || fault == Duplicated {
		return value, err
	}
	return none, unanswered(ctx, silent)
}

func unanswered(ctx context.Context, silent bool) error {
	if !silent {
		return ErrUnanswered
	}
	<-ctx.Done()
	return ctx.Err()
}
