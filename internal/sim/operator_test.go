package sim

import (
	"context"
	"time"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/scheduler"
)

// operator is somebody who asks the leader for this and that, from a process of its own.
type operator struct {
	*scheduler.Inspector
	node  *node
	ctx   context.Context
	going int                  // how many requests are on their way; for the root
	taken map[string]time.Time // those that the store has taken, by ID; for the root
}

func (s *scene) newOperator() *operator {
	n := &node{name: "op", since: time.Now()}
	way := carrier{s, n}
	in, err := scheduler.NewInspector(&line.Line{Store: s.store, Replica: n.name, Carrier: way}, group, "op")
	if err != nil {
		s.t.Fatal(err)
	}
	w := world.Seeded(s.seed, n.name, n.wall)
	w.Turn = way.turn
	ctx, cancel := context.WithCancel(world.With(context.Background(), w))
	n.cancel = cancel
	return &operator{Inspector: in, node: n, ctx: ctx, taken: make(map[string]time.Time)}
}

// asks brings one request to the store, or does not; nobody waits for its answer.
func (s *scene) asks(what string, ask func(context.Context) (*scheduler.Request, error)) {
	o := s.operator
	s.trace.say("%s asks: %s", o.node.name, what)
	o.going++
	go func() {
		carrier{s, o.node}.wait("asks " + what)
		r, err := ask(o.ctx)
		outcome := "is in the store"
		if err != nil {
			outcome = err.Error()
		}
		s.bus.put(o.node.name, "done "+what, func() {
			o.going--
			if err == nil {
				o.taken[r.ID] = time.Now()
			}
			s.trace.note(true, o.node.name, "has asked:", what+":", outcome)
		})
	}()
}

// request asks for something that is drawn.
func (c *chance) request() {
	o, b := c.operator, c.bus
	j := c.jobs[b.rand.IntN(len(c.jobs))].name
	switch b.rand.IntN(10) {
	case 0, 1:
		c.asks("trigger "+j, func(ctx context.Context) (*scheduler.Request, error) { return o.Trigger(ctx, j, time.Time{}) })
	case 2, 3:
		c.asks("pause "+j, func(ctx context.Context) (*scheduler.Request, error) { return o.Pause(ctx, j, scheduler.Pause{}) })
		b.after(b.between(0, 40*time.Second), func() { c.resume(j) })
	case 4:
		until := time.Now().Add(b.between(time.Second, 40*time.Second)).Truncate(time.Second)
		c.asks("pause "+j+" for a while", func(ctx context.Context) (*scheduler.Request, error) {
			return o.Pause(ctx, j, scheduler.Pause{Until: until})
		})
	case 5:
		c.asks("pause all", func(ctx context.Context) (*scheduler.Request, error) { return o.Pause(ctx, "", scheduler.Pause{}) })
		b.after(b.between(0, 20*time.Second), func() { c.resume("") })
		b.after(40*time.Second, func() { c.resume("") }) // the first is refused where it comes before its pause
	case 6, 7:
		if all := c.working(); len(all) > 0 {
			run := all[b.rand.IntN(len(all))].run.ID()
			c.asks("cancel "+brief(run), func(ctx context.Context) (*scheduler.Request, error) { return o.Cancel(ctx, run) })
		}
	case 8:
		c.asks("reset "+j, func(ctx context.Context) (*scheduler.Request, error) { return o.Reset(ctx, j) })
	case 9:
		c.asks("resign", o.Resign)
	}
}

func (c *chance) resume(job string) {
	c.asks("resume "+job, func(ctx context.Context) (*scheduler.Request, error) { return c.operator.Resume(ctx, job) })
}

// resumeAll ends all pauses, and once more when a pause that was on its way has come.
func (c *chance) resumeAll() {
	for _, d := range []time.Duration{0, 3*c.lease + 5*time.Second} {
		c.bus.after(d, func() {
			c.resume("")
			for _, j := range c.jobs {
				c.resume(j.name)
			}
		})
	}
}
