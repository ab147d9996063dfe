package redlock

import (
	"context"
	"strconv"
	"time"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// connect opens the client's store on the nodes.
func (c *simClient) connect() store.Store {
	var nodes []node
	for _, n := range c.nodes {
		l := &simLink{client: c, to: n, who: c.name + ">" + n.name, back: n.name + ">" + c.name}
		nodes, c.ways = append(nodes, l), append(c.ways, l)
	}
	return &line.Line{Store: fromNodes(nodes, Config{}), Replica: c.name, Carrier: simTurns{c}}
}

// simTurns has each call of a client to its store begin when the root says so.
type simTurns struct{ *simClient }

// Carry implements line.Carrier.
func (t simTurns) Carry(ctx context.Context, c line.Call, deliver func(context.Context) (any, error)) (any, error) {
	t.turn(c.Op + " " + c.About)
	return deliver(ctx)
}

// Hint implements line.Carrier.
func (t simTurns) Hint(_ line.Call, hint func()) { hint() }

// turn lets a goroutine that has woken wait until it may go on. Of a client that is being closed so much ends at once that
// nobody can say in which order, and none of it is heard of any more.
func (c *simClient) turn(what string) {
	if !c.closed.Load() {
		c.bus.wait(c, what)
	}
}

// surroundings are what the client's goroutines see of the world. Those that its store begins have names, by which those
// that do the same are told apart.
func (c *simClient) surroundings() context.Context {
	w := world.Seeded(c.seed, c.name, func() time.Duration { return 0 })
	w.Turn = func() { c.turn(world.Callers(4)) }
	w.Fork = func(ctx context.Context) context.Context {
		name, forked := "#"+strconv.FormatUint(c.forks.Add(1), 10), *w
		forked.Turn = func() { c.turn(name) }
		return context.WithValue(world.With(ctx, &forked), simForked{}, name)
	}
	return world.With(context.Background(), w)
}

// simForked is where a context has the name of its goroutine.
type simForked struct{}

func simNameOf(ctx context.Context) string {
	name, _ := ctx.Value(simForked{}).(string)
	return name
}

// disconnect closes the client's store. What it has left under way is not heard of any more.
func (c *simClient) disconnect() {
	c.closed.Store(true)
	for _, l := range c.ways {
		l.closed.Store(true)
	}
	if err := c.store.Close(); err != nil {
		c.fail("%s does not close its store: %v", c.name, err)
	}
}
