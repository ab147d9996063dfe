//go:build unix

package singleton_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
)

func TestB1RedisAcceptsAndNeverAnswers(t *testing.T) {
	t.Parallel()
	for name, silence := range map[string]func(*group, *redistest.Proxy) (end func()){
		"the process is stopped": func(g *group, _ *redistest.Proxy) func() {
			g.server.Stop()
			return g.server.Cont
		},
		"the network keeps requests to itself": func(_ *group, way *redistest.Proxy) func() {
			way.Requests.Hold()
			return way.Requests.Pass
		},
	} {
		for client, change := range map[string]func(*redis.Options){
			"usual client":            func(*redis.Options) {},
			"client without timeouts": func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = -1, -1 },
		} {
			t.Run(name+", "+client, func(t *testing.T) {
				t.Parallel()
				g := newGroup(t)
				way := g.proxy()
				r := g.start(g.store(way.Addr(), change), election.Config{ID: "a"}, untilEnd)
				leader := g.next()
				g.renewals(2)
				end := silence(g, way)
				leader = g.newest(leader)
				receive(t, leader.over, "the end of the term, while nothing answers") // silence goes on till then
				if cause := context.Cause(leader.ctx); !errors.Is(cause, election.ErrExpired) {
					t.Errorf("cause %v, want %v", cause, election.ErrExpired)
				}
				if leader.Valid() {
					t.Error("the term is valid")
				}
				if err := r.Check(); err != nil {
					t.Errorf("a Redis that does not answer is no failure of this process: %v", err)
				}
				end()
				g.next()
			})
		}
	}
}

func TestB2LateReplyToARenewalThenACut(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	way := g.proxy()
	g.start(g.store(way.Addr()), election.Config{ID: "a"}, untilEnd)
	leader := g.next()
	b := g.start(g.store(g.server.Addr()), election.Config{ID: "b"}, untilEnd)
	g.renewals(1)
	way.Replies.Hold()
	g.renewals(1) // in Redis; its reply is on the way
	if err := way.Replies.AwaitHeld(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	eventually(t, "60 % of the lease", func() bool { return g.left() <= 4*lease/10 || !leader.Valid() })
	way.Replies.Pass()
	way.Requests.Drop()
	if next := g.next(); next.by != b { // and the other one is not valid any more: enter has looked
		t.Error("the replica that was cut off leads")
	}
}

func TestB3LostReplyToAnAcquire(t *testing.T) {
	t.Parallel()
	for name, check := range map[string]func(g *group, r *replica, lost *loss){
		"asked again": func(g *group, r *replica, lost *loss) {
			granted := g.holder()
			if r.Term() != nil {
				g.t.Error("it leads without a reply")
			}
			lost.over.Store(true)
			if c := g.next(); inRedis(c.Term) != granted {
				g.t.Errorf("it leads with %s, although %s was granted", inRedis(c.Term), granted)
			}
		},
		"given up": func(g *group, r *replica, lost *loss) {
			early, begun, pauses := g.mark(0), time.Now(), watchPauses(g.t)
			r.stop()
			lost.over.Store(true)
			receive(g.t, r.done, "the return of Run")
			if value := g.holder(); value != "" && pauses(begun) < lease/30 { // it does not insist for long
				g.t.Errorf("%s stays behind", value)
			}
			if !early() {
				g.t.Error("the lease has only run out")
			}
			g.nobodyElse()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t)
			lost := &loss{word: []byte(g.key("lease"))}
			st := g.store(g.server.Addr(), dialing(lost.wrap))
			// Another group's acquire has Redis know the script: the reply that is lost is not that it does not.
			g.start(st, election.Config{ID: "a", Group: "other"}, untilEnd)
			g.next().by.end()
			r := g.start(st, election.Config{ID: "a", Lease: far}, untilEnd)
			eventually(t, "an acquire that Redis has carried out", func() bool { return g.holder() != "" })
			check(g, r, lost)
		})
	}
}

// dialing has a client wrap its connections.
func dialing(wrap func(net.Conn) net.Conn) func(*redis.Options) {
	return func(o *redis.Options) {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return wrap(conn), nil
		}
	}
}

// loss loses, until it is over, the replies to whatever contains word, and all later ones of the same connection.
type loss struct {
	word []byte
	over atomic.Bool
}

func (l *loss) wrap(conn net.Conn) net.Conn { return &mutedConn{Conn: conn, loss: l} }

type mutedConn struct {
	net.Conn
	loss  *loss
	muted atomic.Bool
}

func (c *mutedConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, c.loss.word) && !c.loss.over.Load() {
		c.muted.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *mutedConn) Read(b []byte) (int, error) {
	for {
		n, err := c.Conn.Read(b)
		if !c.muted.Load() || err != nil {
			return n, err
		}
	}
}

func TestB4ReleaseWhileTheContextOfRunIsOverAndItsConnectionGone(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	way := g.proxy()
	r := g.start(g.store(way.Addr()), election.Config{ID: "a", Lease: far}, func(c *call) error {
		<-c.ctx.Done()
		way.Cut()
		return nil
	})
	leader := g.next()
	early := g.mark(0)
	r.end()
	if g.holder() == inRedis(leader.Term) {
		t.Error("the lease is still there")
	}
	if !early() {
		t.Error("the lease has only run out")
	}
}

func TestB13ReleaseBetweenAFailedAcquireAndTheSubscription(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	a := g.start(g.store(g.server.Addr()), election.Config{ID: "a", Lease: far}, untilEnd)
	g.next()
	closed := &gate{word: []byte("subscribe"), open: make(chan struct{})}
	refused := make(chan store.Leader, 100)
	b := g.start(g.store(g.server.Addr(), dialing(closed.wrap)), election.Config{ID: "b", Lease: far, Callbacks: election.Callbacks{
		LeaderChanged: func(l store.Leader) { refused <- l },
	}}, untilEnd)
	receive(t, refused, "a failed acquire")
	early := g.mark(0)
	a.end()
	eventually(t, "the end of the leader's own subscription", func() bool {
		return g.admin.PubSubNumSub(t.Context(), g.key("wake")).Val()[g.key("wake")] == 0
	})
	close(closed.open)
	if next := g.next(); next.by != b {
		t.Error("the replica that has stopped leads")
	}
	if !early() {
		t.Error("the follower has waited for the end of a lease that was free")
	}
}

// gate keeps a client from sending what contains word until it is opened.
type gate struct {
	word []byte
	open chan struct{}
}

func (g *gate) wrap(conn net.Conn) net.Conn { return &gatedConn{Conn: conn, gate: g} }

type gatedConn struct {
	net.Conn
	gate *gate
}

func (c *gatedConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, c.gate.word) {
		<-c.gate.open
	}
	return c.Conn.Write(b)
}
