//go:build unix

package singleton_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

const (
	lease    = 3 * time.Second  // one whose end a test waits for; short pauses of a busy machine do not end it
	long     = 10 * time.Second // one that lives through long ones, and is renewed often enough to wait for
	far      = 15 * time.Second // one whose end no test waits for: what comes before it has another reason
	patience = 30 * time.Second // how long a test waits for what must come
)

// group is a group of replicas on a Redis of its own.
type group struct {
	t      *testing.T
	name   string
	server *redistest.Server
	admin  *redis.Client // the test's own connections, past every proxy
	calls  chan *call    // of lead, of all replicas, in order

	reach     func() store.Store // opens a store where the group has more than one server; else nil
	forgetful bool               // the test makes the store forget leases: two replicas may hold one, as they have been told

	mu    sync.Mutex
	terms []*election.Term
}

func newGroup(t *testing.T, opts ...redistest.Option) *group {
	t.Helper()
	server := redistest.Start(t, opts...)
	return &group{t: t, name: "g", server: server, admin: server.Client(), calls: make(chan *call, 1000)}
}

// proxy returns a network of its own before the group's server.
func (g *group) proxy() *redistest.Proxy {
	g.t.Helper()
	return redistest.StartProxy(g.t, g.server.Addr())
}

// store returns a store on the server at addr, with a client of its own.
func (g *group) store(addr string, change ...func(*redis.Options)) *redisstore.Store {
	opts := &redis.Options{Addr: addr, ClientName: "store"}
	for _, c := range change {
		c(opts)
	}
	client := redis.NewClient(opts)
	g.t.Cleanup(func() { _ = client.Close() })
	return g.storeOn(client)
}

// open returns a store on the group's server or servers.
func (g *group) open() store.Store {
	if g.reach != nil {
		return ends(g, g.reach())
	}
	return g.store(g.server.Addr())
}

// storeOn returns a store on a client.
func (g *group) storeOn(client *redis.Client) *redisstore.Store {
	return ends(g, redisstore.New(client, &redisstore.Options{Logger: g.log()}))
}

// ends closes a store at the end of the test.
func ends[S store.Store](g *group, st S) S {
	g.t.Cleanup(func() {
		if err := st.Close(); err != nil {
			g.t.Error(err)
		}
	})
	return st
}

func (g *group) log() *slog.Logger { return slog.New(slog.NewTextHandler(g.t.Output(), nil)) }

// replica is an elector that runs.
type replica struct {
	*election.Elector
	group *group
	stop  context.CancelFunc // ends the context of Run
	done  chan struct{}      // closed when Run has returned
	err   error              // by then
}

// call is one call of lead.
type call struct {
	*election.Term
	by    *replica
	ctx   context.Context
	ended time.Time     // when untilEnd saw the end of ctx
	over  chan struct{} // closed when lead has returned
}

// untilEnd is work that ends with its context.
func untilEnd(c *call) error {
	<-c.ctx.Done()
	c.ended = time.Now()
	return context.Cause(c.ctx)
}

// start starts a replica that does work whenever it leads; the test's end ends it.
func (g *group) start(st store.Leases, cfg election.Config, work func(*call) error) *replica {
	g.t.Helper()
	r := g.replica(st, cfg)
	r.run(work)
	return r
}

// replica makes a replica that does not run yet.
func (g *group) replica(st store.Leases, cfg election.Config) *replica {
	g.t.Helper()
	if cfg.Group == "" {
		cfg.Group = g.name
	}
	if cfg.Lease == 0 {
		cfg.Lease = lease
	}
	if cfg.Logger == nil {
		cfg.Logger = g.log().With("r", cfg.ID)
	}
	e, err := election.New(st, cfg)
	if err != nil {
		g.t.Fatal(err)
	}
	return &replica{Elector: e, group: g}
}

func (r *replica) run(work func(*call) error) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	r.stop, r.done, r.err = stop, done, nil
	go func() {
		defer close(done)
		r.err = r.Run(ctx, func(ctx context.Context, term *election.Term) error {
			c := &call{Term: term, by: r, ctx: ctx, over: make(chan struct{})}
			defer close(c.over)
			r.group.enter(term)
			r.group.calls <- c
			return work(c)
		})
	}()
	r.group.t.Cleanup(func() {
		stop()
		<-done
	})
}

// end stops the replica, waits for it, and checks what Run has returned.
func (r *replica) end() {
	r.group.t.Helper()
	r.stop()
	receive(r.group.t, r.done, "the return of Run")
	if r.err != nil {
		r.group.t.Errorf("Run returned %v", r.err)
	}
}

// enter checks, whenever a replica begins to lead, that no other one believes to lead (E1) and that the token is higher
// than all before (E3).
func (g *group) enter(term *election.Term) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, other := range g.terms {
		if other.Lease().Group != term.Lease().Group {
			continue
		}
		if !g.forgetful && other.Valid() {
			g.t.Errorf("%v leads beside %v", term.Lease(), other.Lease())
		}
		if other.Token() >= term.Token() {
			g.t.Errorf("the token of %v is not higher than that of %v", term.Lease(), other.Lease())
		}
	}
	g.terms = append(g.terms, term)
}

// next waits until a replica begins to lead.
func (g *group) next() *call {
	g.t.Helper()
	return receive(g.t, g.calls, "a leader")
}

// newest returns the last call that has begun: c, unless a pause of this machine has ended its term.
func (g *group) newest(c *call) *call {
	for {
		select {
		case c = <-g.calls:
		default:
			return c
		}
	}
}

// nobodyElse checks that no replica has begun to lead since the last call that was taken.
func (g *group) nobodyElse() {
	g.t.Helper()
	select {
	case c := <-g.calls:
		g.t.Errorf("%v has begun to lead", c.Lease())
	default:
	}
}

// key returns one of the group's keys in Redis.
func (g *group) key(what string) string { return "singleton:{" + g.name + "}:" + what }

// left returns how long the lease lives on in Redis; not positive when it is not there.
func (g *group) left() time.Duration {
	g.t.Helper()
	left, err := g.admin.PTTL(g.t.Context(), g.key("lease")).Result()
	if err != nil {
		g.t.Error(err)
	}
	return left
}

// holder returns what the lease in Redis says: token, replica and nonce; "" when there is none.
func (g *group) holder() string {
	g.t.Helper()
	value, err := g.admin.Get(g.t.Context(), g.key("lease")).Result()
	if err != nil && err != redis.Nil {
		g.t.Error(err)
	}
	return value
}

// inRedis returns what the lease in Redis says while term holds it.
func inRedis(term *election.Term) string {
	l := term.Lease()
	return fmt.Sprintf("%d %s %s", l.Token, l.Replica, l.Nonce)
}

// renewals waits until the lease in Redis has been extended n times.
func (g *group) renewals(n int) {
	g.t.Helper()
	for range n {
		before := g.left()
		eventually(g.t, "a renewal", func() bool {
			now := g.left()
			renewed := now > before
			before = now
			return renewed
		})
	}
}

// end returns when the lease ends in Redis if it is not renewed, by the clock that this machine and Redis share.
func (g *group) end() time.Time {
	g.t.Helper()
	var now *redis.TimeCmd
	var left *redis.DurationCmd
	_, err := g.admin.TxPipelined(g.t.Context(), func(p redis.Pipeliner) error {
		now, left = p.Time(g.t.Context()), p.PTTL(g.t.Context(), g.key("lease"))
		return nil
	})
	if err != nil || left.Val() <= 0 {
		g.t.Fatalf("there is no lease: %v", err)
	}
	return now.Val().Add(left.Val())
}

// mark has the server keep a key until the lease ends unless it is renewed, and for plus more; the function tells
// whether that time is not over yet, by the server's clock.
func (g *group) mark(plus time.Duration) (early func() bool) {
	g.t.Helper()
	if err := g.admin.Set(g.t.Context(), "mark", "", g.left()+plus).Err(); err != nil {
		g.t.Fatal(err)
	}
	return func() bool {
		g.t.Helper()
		there, err := g.admin.Exists(g.t.Context(), "mark").Result()
		if err != nil {
			g.t.Error(err)
		}
		return there == 1
	}
}

// receive waits for what comes over a channel, or for its being closed.
func receive[T any](t *testing.T, from <-chan T, what string) T {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case v := <-from:
		return v
	case <-timer.C:
		t.Fatalf("waited %v in vain for %s", patience, what)
		panic("not reached")
	}
}

// eventually asks again and again until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !so() {
		select {
		case <-again.C:
		case <-limit.C:
			t.Fatalf("waited %v in vain for %s", patience, what)
		}
	}
}
