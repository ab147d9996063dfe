//go:build unix

package singleton_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
)

// TestE1NeverTwoLeadersWhateverBreaks breaks the way of each leader to Redis, or Redis, in turn. That nobody else believes
// to lead is checked whenever a replica begins to.
func TestE1NeverTwoLeadersWhateverBreaks(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	ways := map[*replica]*redistest.Proxy{}
	for _, id := range []string{"a", "b", "c"} {
		way := g.proxy()
		ways[g.start(g.store(way.Addr()), election.Config{ID: id}, untilEnd)] = way
	}
	leader := g.next()
	for _, fault := range []struct {
		name        string
		begin, mend func(*call, *redistest.Proxy)
	}{
		{"requests are lost",
			func(_ *call, way *redistest.Proxy) { way.Requests.Drop() },
			func(_ *call, way *redistest.Proxy) { way.Requests.Pass() }},
		{"replies are lost",
			func(_ *call, way *redistest.Proxy) { way.Replies.Drop() },
			func(_ *call, way *redistest.Proxy) { way.Replies.Pass() }},
		{"requests arrive when another leads",
			func(_ *call, way *redistest.Proxy) { way.Requests.Hold() },
			func(_ *call, way *redistest.Proxy) { way.Requests.Pass() }},
		{"replies arrive when another leads",
			func(_ *call, way *redistest.Proxy) { way.Replies.Hold() },
			func(_ *call, way *redistest.Proxy) { way.Replies.Pass() }},
		{"connections are reset",
			func(_ *call, way *redistest.Proxy) { way.Requests.Reset() },
			func(_ *call, way *redistest.Proxy) { way.Requests.Pass() }},
		{"Redis stands still",
			func(c *call, _ *redistest.Proxy) {
				g.server.Stop()
				receive(t, c.over, "the end of the term")
				g.server.Cont()
			},
			func(*call, *redistest.Proxy) {}},
		{"it resigns",
			func(c *call, _ *redistest.Proxy) {
				if err := c.by.Resign(t.Context()); err != nil {
					t.Error(err)
				}
			},
			func(*call, *redistest.Proxy) {}},
	} {
		way := ways[leader.by]
		g.renewals(1)
		fault.begin(leader, way)
		next := g.next()
		if leader.Valid() {
			t.Errorf("%s: the old leader goes on", fault.name)
		}
		fault.mend(leader, way)
		leader = next
	}
}

func TestE2ContextEndsBeforeTheLeaseWhenRedisStopsAnswering(t *testing.T) {
	t.Parallel()
	for name, cut := range map[string]func(*redistest.Proxy){
		"requests are lost":     func(way *redistest.Proxy) { way.Requests.Drop() },
		"replies are lost":      func(way *redistest.Proxy) { way.Replies.Drop() },
		"connections are reset": func(way *redistest.Proxy) { way.Requests.Reset() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t)
			way := g.proxy()
			r := g.start(g.store(way.Addr()), election.Config{ID: "a"}, untilEnd)
			leader := g.next()
			g.renewals(2)
			cut(way)
			pauses := watchPauses(t)
			leader = g.newest(leader)
			end := g.end()
			receive(t, leader.over, "the end of the term")
			before(t, leader.ended, end, pauses)
			if cause := context.Cause(leader.ctx); !errors.Is(cause, election.ErrExpired) {
				t.Errorf("cause %v, want %v", cause, election.ErrExpired)
			}
			if leader.Valid() || r.Term() != nil {
				t.Error("the term is valid after its context has ended")
			}
		})
	}
}

func TestE3TokensGrowThoughTheStoreForgetsOrIsAnotherOne(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	lead := func(st store.Store) *call { // a process of its own, which remembers nothing
		r := g.start(st, election.Config{ID: "a", Lease: far}, untilEnd)
		c := g.next() // and its token is higher than all before
		r.end()
		return c
	}
	lead(g.store(g.server.Addr()))
	if err := g.admin.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	lead(g.store(g.server.Addr()))
	if err := g.server.RestartEmpty(); err != nil {
		t.Fatal(err)
	}
	lead(g.store(g.server.Addr()))
	last := lead(g.store(redistest.Start(t).Addr()))

	// A token ahead of every clock, which the store then forgets: who has seen it goes on above it.
	ahead := last.Token() + uint64(time.Hour/time.Microsecond)
	if err := g.admin.HSet(t.Context(), g.key("fence"), "token", strconv.FormatUint(ahead, 10)).Err(); err != nil {
		t.Fatal(err)
	}
	st := g.store(g.server.Addr())
	leader := g.start(st, election.Config{ID: "leader", Lease: far}, untilEnd)
	if c := g.next(); c.Token() <= ahead {
		t.Fatalf("token %d after %d", c.Token(), ahead)
	}
	seen := make(chan store.Leader, 100)
	g.start(st, election.Config{ID: "follower", Lease: far, Callbacks: election.Callbacks{
		LeaderChanged: func(l store.Leader) { seen <- l },
	}}, untilEnd)
	receive(t, seen, "a follower that knows the leader")
	if err := g.admin.Del(t.Context(), g.key("fence")).Err(); err != nil {
		t.Fatal(err)
	}
	leader.end()
	g.next()
}

// TestE4StoppingLeaderReleasesAfterItsWorkAndAFollowerLeadsAtOnce is B4 too: the context of Run is over while all this
// happens.
func TestE4StoppingLeaderReleasesAfterItsWorkAndAFollowerLeadsAtOnce(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	st := g.store(g.server.Addr())
	finished := make(chan struct{})
	a := g.start(st, election.Config{ID: "a", Lease: 2 * lease}, func(c *call) error {
		<-finished
		return nil
	})
	leader := g.next()
	b := g.start(st, election.Config{ID: "b", Lease: 2 * lease}, untilEnd)
	a.stop()
	receive(t, leader.ctx.Done(), "the end of the context")
	g.renewals(4) // more than one lease has gone by
	if !leader.Valid() || g.holder() != inRedis(leader.Term) {
		t.Error("the lease is over before the work has returned")
	}
	g.nobodyElse()
	early := g.mark(0)
	close(finished)
	if next := g.next(); next.by != b {
		t.Error("the replica that stops leads again")
	}
	if !early() {
		t.Error("the follower has waited for the end of the lease")
	}
	receive(t, a.done, "the return of Run")
}

func TestE5FollowerLeadsWhenTheLeaseOfACrashedLeaderEnds(t *testing.T) {
	t.Parallel()
	succeed(t, newGroup(t))
}

func TestB14FollowerLeadsInTimeBesideTenThousandKeysThatExpire(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	keep(t, g.admin, 10_000)
	succeed(t, g)
}

// succeed lets a leader vanish, and checks that a follower leads within a lease of the lease's end: not after a polling
// interval, and not when Redis gets to telling of the expiry, which it may do much later. It logs how long it took.
func succeed(t *testing.T, g *group) {
	t.Helper()
	way := g.proxy()
	g.start(g.store(way.Addr()), election.Config{ID: "a"}, untilEnd)
	g.next()
	b := g.start(g.store(g.server.Addr()), election.Config{ID: "b"}, untilEnd)
	g.renewals(3)
	way.Requests.Drop() // nothing is heard of it any more
	early := g.mark(lease)
	end := g.end()
	next := g.next()
	took := time.Since(end)
	if next.by != b {
		t.Error("the replica that was cut off leads")
	}
	if !early() {
		t.Error("nobody led for a lease and more after the end of the lease")
	}
	t.Logf("the follower led %v after the end of the lease", took)
}

// keep puts n keys that live for a second to three minutes.
func keep(t *testing.T, client *redis.Client, n int) {
	t.Helper()
	_, err := client.Pipelined(t.Context(), func(p redis.Pipeliner) error {
		for i := range n {
			p.Set(t.Context(), "other:"+strconv.Itoa(i), strings.Repeat("x", 100), time.Duration(i)*18*time.Millisecond+time.Second)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestE6TransientFaultsEndNoTerm(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	way := g.proxy()
	way.Requests.Reset()
	r := g.start(g.store(way.Addr()), election.Config{ID: "a", Lease: long}, untilEnd)
	eventually(t, "three attempts to reach Redis", func() bool { return way.Accepted() > 3 })
	if r.Term() != nil {
		t.Error("it leads without having reached Redis")
	}
	g.nobodyElse()
	way.Requests.Pass()
	leader := g.next()
	for name, fault := range map[string]func() error{
		"clients are thrown out": func() error { return g.admin.ClientKillByFilter(t.Context(), "TYPE", "normal", "SKIPME", "yes").Err() },
		"connections are reset":  func() error { way.Cut(); return nil },
		"scripts are forgotten":  func() error { return g.admin.ScriptFlush(t.Context()).Err() },
		"a reply is torn":        func() error { way.Replies.CutAfter(5); return nil },
		"Redis pauses":           func() error { return g.admin.ClientPause(t.Context(), long/5).Err() },
	} {
		if err := fault(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		g.renewals(1)
		if !leader.Valid() || g.holder() != inRedis(leader.Term) {
			t.Errorf("the term has ended after this: %s", name)
		}
	}
	g.nobodyElse()
}

func TestE6PermanentFaultEndsATermAtItsDeadline(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	user(t, g.admin, "worker", "on", ">secret", "~singleton:*", "&singleton:*", "+@all")
	r := g.start(g.store(g.server.Addr(), as("worker", "secret")), election.Config{ID: "a"}, untilEnd)
	leader := g.next()
	g.renewals(2)
	user(t, g.admin, "worker", "nocommands")
	pauses := watchPauses(t)
	leader = g.newest(leader)
	end := g.end()
	receive(t, leader.over, "the end of the term")
	before(t, leader.ended, end, pauses)
	if early := end.Sub(leader.ended); early > lease/2 {
		t.Errorf("the term ended %v before its lease, although the permission could have come back", early)
	}
	if cause := context.Cause(leader.ctx); !errors.Is(cause, election.ErrExpired) {
		t.Errorf("cause %v, want %v", cause, election.ErrExpired)
	}
	receive(t, r.done, "the return of Run")
	permanent(t, r.err, "NOPERM", "grant")
}

// as changes the credentials of a client.
func as(name, password string) func(*redis.Options) {
	return func(o *redis.Options) { o.Username, o.Password = name, password }
}

// user changes a user of the server.
func user(t *testing.T, admin *redis.Client, name string, rules ...string) {
	t.Helper()
	args := []any{"ACL", "SETUSER", name}
	for _, r := range rules {
		args = append(args, r)
	}
	if err := admin.Do(t.Context(), args...).Err(); err != nil {
		t.Fatal(err)
	}
}

// permanent checks that an error is of the kind that no retry heals, and says all of words.
func permanent(t *testing.T, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, store.ErrPermanent) {
		t.Errorf("got %v, want %v", err, store.ErrPermanent)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q does not say %q", err, w)
		}
	}
}
