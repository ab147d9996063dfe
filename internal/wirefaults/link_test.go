package wirefaults

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"net"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
)

var (
	errRefused = errors.New("connection refused")
	errGone    = errors.New("the process is gone")
)

// link is the network between one process and the server; its methods are safe for concurrent use.
type link struct {
	server  *miniredis.Miniredis
	running sync.WaitGroup // the goroutines of all connections

	mu     sync.Mutex
	rand   *rand.Rand
	rough  bool      // requests meet faults
	down   time.Time // no connection comes about before
	hang   bool      // and dials wait instead of being refused
	thawed time.Time // nothing arrives before, at either end
	dead   bool      // the process has been killed
	conns  []*conn
	counts map[string]int // of the faults that had an effect
}

func newLink(server *miniredis.Miniredis, seed, number uint64) *link {
	return &link{server: server, rand: rand.New(rand.NewPCG(seed, number)), counts: make(map[string]int)}
}

// dial is the dialer of the process's client.
func (l *link) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	atOnce := subscribes()
	l.mu.Lock()
	dead, down, hang := l.dead, time.Now().Before(l.down), l.hang && !atOnce
	switch {
	case dead:
	case down && hang:
		l.counts["dial hangs"]++
	case down:
		l.counts["dial refused"]++
	}
	l.mu.Unlock()
	switch {
	case dead:
		return nil, errGone
	case down && hang:
		<-ctx.Done()
		return nil, ctx.Err()
	case down:
		return nil, errRefused
	}
	server, err := l.server.Dial()
	if err != nil {
		return nil, err
	}
	client, near := net.Pipe()
	l.carry(near, server, atOnce)
	return client, nil
}

// subscribes tells whether it is called for a subscription. go-redis holds a lock while one dials and shakes hands, and a
// goroutine that waits for a lock stops the time of a bubble: neither may take any.
func subscribes() bool {
	pc := make([]uintptr, 32)
	frames := runtime.CallersFrames(pc[:runtime.Callers(2, pc)])
	for {
		f, more := frames.Next()
		if strings.Contains(f.Function, "PubSubPool") {
			return true
		}
		if !more {
			return false
		}
	}
}

// fate is what becomes of a request and its reply.
type fate struct {
	kind string                   // "" is none of what follows
	late map[string]time.Duration // the request, the reply: how long it takes
}

// The kinds of fates: what is lost with its connection, what is torn in two, what a connection swallows from now on, and
// what is only late.
var kinds = []string{
	"request reset", "reply reset", "request torn", "reply torn", "half-open", "mute", "late request", "late reply", "slow",
}

// draw draws the fate of a request.
func (l *link) draw() fate {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := fate{late: map[string]time.Duration{}}
	f.late["request"] = l.upTo(2 * time.Millisecond)
	f.late["reply"] = l.upTo(2 * time.Millisecond)
	if !l.rough || l.rand.IntN(12) > 0 {
		return f
	}
	f.kind = kinds[l.rand.IntN(len(kinds))]
	l.counts[f.kind]++
	switch f.kind {
	case "late request":
		f.late["request"] += l.upTo(5 * time.Second)
	case "late reply":
		f.late["reply"] += l.upTo(5 * time.Second)
	case "slow":
		f.late["request"] += l.upTo(300 * time.Millisecond)
		f.late["reply"] += l.upTo(300 * time.Millisecond)
	}
	return f
}

func (l *link) upTo(d time.Duration) time.Duration { return time.Duration(l.rand.Int64N(int64(d))) }

// wait waits for the moment at which something arrives.
func (l *link) wait(due time.Time) {
	for {
		l.mu.Lock()
		if due.Before(l.thawed) {
			due = l.thawed
		}
		l.mu.Unlock()
		d := time.Until(due)
		if d <= 0 {
			return
		}
		time.Sleep(d)
	}
}

// set changes the link.
func (l *link) set(change func(*link)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change(l)
}

// open returns the connections that exist.
func (l *link) open() []*conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.conns)
}

// cut ends all connections and lets none come about for so long; silent ones end without a word to either side.
func (l *link) cut(d time.Duration, silent bool) {
	l.set(func(l *link) { l.down, l.hang = time.Now().Add(d), silent })
	for _, c := range l.open() {
		if silent {
			c.swallow(true)
		} else {
			c.reset()
		}
	}
}

// stall holds up for so long whatever is on its way and will be.
func (l *link) stall(d time.Duration) { l.set(func(l *link) { l.thawed = time.Now().Add(d) }) }

// kill closes all connections at the process's end. What it has sent still arrives.
func (l *link) kill() {
	l.set(func(l *link) { l.dead = true })
	for _, c := range l.open() {
		_ = c.near.Close()
	}
}

// heal ends all faults, save that connections that have fallen silent stay so.
func (l *link) heal() {
	l.set(func(l *link) { l.rough, l.down, l.thawed = false, time.Time{}, time.Time{} })
}

// silence has all subscriptions fall silent.
func (l *link) silence() {
	for _, c := range l.open() {
		if c.subscription {
			c.swallow(true)
		}
	}
}

// end resets the connections that have fallen silent, as a system does that gets no answer; not the subscriptions, which
// the store has to replace by itself.
func (l *link) end() {
	for _, c := range l.open() {
		if c.silent() && !c.subscription {
			c.reset()
		}
	}
}

func (l *link) forget(c *conn) {
	l.set(func(l *link) { l.conns = slices.DeleteFunc(l.conns, func(o *conn) bool { return o == c }) })
}

func (l *link) tally(into map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for what := range maps.Keys(l.counts) {
		into[what] += l.counts[what]
	}
}
