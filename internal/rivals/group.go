package rivals

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
)

// Group is several replicas, each on a store of its own. It fails the test when two believe to lead at the moment at which
// one begins to (E1), or when a token does not grow (E3).
type Group struct {
	t       testing.TB
	elected chan *Term

	mu    sync.Mutex
	terms []*Term
}

// Term is one term of a replica as its work sees it.
type Term struct {
	*election.Term
	ID      string
	Context context.Context
	Ended   chan struct{} // closed at the instant that the context ended
	End     time.Time     // that instant
}

// New returns a group without replicas.
func New(t testing.TB) *Group { return &Group{t: t, elected: make(chan *Term, 1000)} }

// Start runs a replica until stop is called or the test ends.
func (g *Group) Start(id string, s store.Store, lease time.Duration) (stop func()) {
	g.t.Helper()
	e, err := election.New(s, election.Config{Group: "g", ID: id, Lease: lease})
	Must(g.t, err)
	ctx, cancel := context.WithCancel(context.Background())
	over := make(chan error, 1)
	go func() {
		over <- e.Run(ctx, func(ctx context.Context, leading *election.Term) error {
			c := &Term{Term: leading, ID: id, Context: ctx, Ended: make(chan struct{})}
			g.enter(c)
			<-ctx.Done()
			c.End = time.Now()
			close(c.Ended)
			return nil
		})
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-over; err != nil {
			g.t.Error(err)
		}
	})
	g.t.Cleanup(stop)
	return stop
}

// enter notes a term, and that nobody else believes to lead when it begins.
func (g *Group) enter(c *Term) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, other := range g.terms {
		if other.Valid() {
			g.t.Errorf("E1: %s leads with token %d while %s does with %d", c.ID, c.Token(), other.ID, other.Token())
		}
		if other.Token() >= c.Token() {
			g.t.Errorf("E3: token %d after %d", c.Token(), other.Token())
		}
	}
	g.terms = append(g.terms, c)
	g.elected <- c
}

// Next waits for the next term.
func (g *Group) Next() *Term {
	g.t.Helper()
	select {
	case c := <-g.elected:
		return c
	case <-time.After(Patience):
		g.t.Fatal("nobody leads")
		return nil
	}
}

// newest is the present term.
func (g *Group) newest(c *Term) *Term {
	for len(g.elected) > 0 {
		c = <-g.elected
	}
	return c
}

// Fault is one of the servers.
type Fault struct {
	Name string
	Do   func() (mend func())
	Lost bool // nobody can lead meanwhile
}

// Bear has the replicas live through faults, one after another. Each lasts until somebody has led for longer than atLeast, or
// until nobody does; whole waits until all servers serve again.
func (g *Group) Bear(faults []Fault, atLeast time.Duration, whole func()) {
	g.t.Helper()
	c := g.Next()
	for _, fault := range faults {
		c = g.newest(c)
		begin := time.Now()
		mend := fault.Do()
		if fault.Lost {
			<-c.Ended
			c = g.newest(c)
			if c.Valid() {
				g.t.Errorf("%s: %s leads", fault.Name, c.ID)
			}
			mend()
			c = g.Next()
			g.t.Logf("%s: %s leads after %v", fault.Name, c.ID, time.Since(begin).Round(time.Millisecond))
			continue
		}
		// The same leader or another commits on: a lease outlives the loss of a member.
		Until(g.t, "a leader while "+fault.Name, func() bool {
			c = g.newest(c)
			return c.Valid() && time.Since(begin) > atLeast
		})
		g.t.Logf("%s: %s leads, with token %d", fault.Name, c.ID, c.Token())
		mend()
		whole()
	}
}
