//go:build unix

package singleton_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

func TestB5LeaseIsTakenAway(t *testing.T) {
	t.Parallel()
	for name, take := range map[string]func(g *group, leader *call) (owner string){
		"another owner's SET": func(g *group, leader *call) string {
			return g.usurp(leader)
		},
		"FLUSHALL": func(g *group, _ *call) string {
			if err := g.admin.FlushAll(g.t.Context()).Err(); err != nil {
				g.t.Fatal(err)
			}
			return ""
		},
		"DEL": func(g *group, _ *call) string {
			if err := g.admin.Del(g.t.Context(), g.key("lease")).Err(); err != nil {
				g.t.Fatal(err)
			}
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGroup(t)
			g.forgetful = true
			st := g.store(g.server.Addr())
			g.start(st, election.Config{ID: "a", Lease: 3 * lease}, untilEnd)
			leader := g.next()
			owner := take(g, leader)
			receive(t, leader.over, "the end of the term")
			// Not the deadline has ended it, but the first renewal.
			if cause := context.Cause(leader.ctx); !errors.Is(cause, election.ErrLost) {
				t.Errorf("cause %v, want %v", cause, election.ErrLost)
			}
			if owner != "" {
				if value := g.holder(); value != owner {
					t.Errorf("the lease of another owner is %q after the late release, want %q", value, owner)
				}
				leader.by.end()
				if value := g.holder(); value != owner {
					t.Errorf("the lease of another owner is %q after the stop, want %q", value, owner)
				}
				g.admin.PExpire(t.Context(), g.key("lease"), lease/3)
				g.start(st, election.Config{ID: "b"}, untilEnd)
			}
			next := g.next() // its token is higher than the one before
			if owner != "" && next.Token() <= leader.Token()+1000 {
				t.Errorf("token %d after the other owner's %d", next.Token(), leader.Token()+1000)
			}
		})
	}
}

// usurp has another owner overwrite the lease.
func (g *group) usurp(leader *call) (owner string) {
	owner = fmt.Sprintf("%d somebody else", leader.Token()+1000)
	if err := g.admin.Set(g.t.Context(), g.key("lease"), owner, far).Err(); err != nil {
		g.t.Fatal(err)
	}
	return owner
}

func TestB5LateReleaseDeletesNothingOfAnotherOwners(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	r := g.start(g.store(g.server.Addr()), election.Config{ID: "a", Lease: far}, untilEnd)
	owner := g.usurp(g.next())
	r.end() // before a renewal tells it: it releases
	if value := g.holder(); value != owner {
		t.Errorf("the lease of another owner is %q, want %q", value, owner)
	}
}

func TestB12HundredTermsLeaveNoConnectionAndNoSubscription(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	r := g.replica(g.store(g.server.Addr()), election.Config{ID: "a"})
	for i := range 94 {
		r.run(untilEnd)
		leader := g.next()
		if i%16 == 0 {
			if err := g.admin.Del(t.Context(), g.key("lease")).Err(); err != nil {
				t.Fatal(err)
			}
			receive(t, leader.over, "the loss of the term")
			g.next()
		}
		r.end()
	}
	// A store makes up to 8 connections for its calls, which stay, and one for all that watch, which goes with them.
	connections, subscriptions := 0, 0
	eventually(t, "the end of the last subscription", func() bool {
		list, err := g.admin.ClientList(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		connections, subscriptions = 0, 0
		for line := range strings.Lines(list) {
			if strings.Contains(line, " name=store ") {
				connections++
				if !strings.Contains(line, " sub=0 ") {
					subscriptions++
				}
			}
		}
		return subscriptions == 0
	})
	if connections > 8 {
		t.Errorf("%d connections are open", connections)
	}
}

func TestB15RenewalsGoOnWhileThePoolOfTheApplicationIsExhausted(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	client := g.server.Client(func(o *redis.Options) { o.PoolSize, o.PoolTimeout = 3, time.Millisecond })
	ended := make(chan error, 3)
	for range cap(ended) {
		go func() { ended <- client.BLPop(context.Background(), 0, "jobs").Err() }()
	}
	eventually(t, "blocked connections", func() bool {
		return strings.Contains(g.admin.Info(t.Context(), "clients").Val(), "blocked_clients:3\r\n")
	})
	if err := client.Ping(t.Context()).Err(); !errors.Is(err, redis.ErrPoolTimeout) {
		t.Fatalf("the pool is not exhausted: %v", err)
	}
	g.start(g.storeOn(client), election.Config{ID: "a", Lease: long}, untilEnd)
	leader := g.next()
	g.renewals(3)
	if !leader.Valid() {
		t.Error("the term has ended")
	}
	for range cap(ended) {
		if err := g.admin.RPush(t.Context(), "jobs", "x").Err(); err != nil {
			t.Fatal(err)
		}
		if err := receive(t, ended, "the application's own call"); err != nil {
			t.Error(err)
		}
	}
}

func TestB16ScriptFlushBetweenRenewalsAndCommits(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	st := g.store(g.server.Addr())
	g.start(st, election.Config{ID: "a", Lease: long}, untilEnd)
	leader := g.next()
	for number := range uint64(3) {
		if err := g.admin.ScriptFlush(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		put := []store.Change{{Bucket: "job", Key: fmt.Sprint(number), Value: []byte("x")}}
		if err := st.Commit(t.Context(), leader.Lease(), number+1, put); err != nil {
			t.Fatal(err)
		}
		g.renewals(1)
	}
	if !leader.Valid() || g.holder() != inRedis(leader.Term) {
		t.Error("the term has ended")
	}
	records := 0
	for _, err := range st.Read(t.Context(), g.name, nil, "job") {
		if err != nil {
			t.Fatal(err)
		}
		records++
	}
	if records != 3 {
		t.Errorf("%d of 3 records are there", records)
	}
}

func TestB17PermanentErrorsEndRun(t *testing.T) {
	t.Parallel()
	g := newGroup(t, redistest.Args("--requirepass", "secret"))
	g.admin = g.server.Client(func(o *redis.Options) { o.Password = "secret" })
	user(t, g.admin, "powerless", "on", ">secret", "~singleton:*", "&singleton:*", "+@connection", "+subscribe")
	user(t, g.admin, "halfway", "on", ">secret", "~singleton:*", "&singleton:*", "+@all", "-pexpire")
	user(t, g.admin, "elsewhere", "on", ">secret", "~other:*", "&singleton:*", "+@all")
	if err := g.admin.HSet(t.Context(), "singleton:{taken}:lease", "field", "value").Err(); err != nil {
		t.Fatal(err)
	}
	if err := g.admin.Set(t.Context(), "singleton:{used}:lease", "a lock of somebody's own", 0).Err(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, group   string
		change        func(*redis.Options)
		cause, remedy string
	}{
		{"no password", "g", as("", ""), "NOAUTH", "set one"},
		{"wrong password", "g", as("default", "guess"), "WRONGPASS", "set those that it knows"},
		{"unknown user", "g", as("nobody", "secret"), "WRONGPASS", "set those that it knows"},
		{"user without a command", "g", as("powerless", "secret"), "NOPERM", "grant what singleton doctor names"},
		{"user without a command of the scripts", "g", as("halfway", "secret"), "can't run this command", "grant what singleton doctor names"},
		{"user without the keys", "g", as("elsewhere", "secret"), "keys", "grant what singleton doctor names"},
		{"key of another type", "taken", as("", "secret"), "WRONGTYPE", "delete the key"},
		{"key of somebody else", "used", as("", "secret"), "something else than a lease", "DEL singleton:{used}:lease"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := &group{t: t, server: g.server, calls: make(chan *call, 10)}
			r := g.start(g.store(g.server.Addr(), c.change), election.Config{ID: "a", Group: c.group}, untilEnd)
			s, err := scheduler.New(g.store(g.server.Addr(), c.change), scheduler.Config{ID: "b", Group: c.group, Lease: lease})
			if err != nil {
				t.Fatal(err)
			}
			permanent(t, s.Run(t.Context()), c.cause, c.remedy)
			receive(t, r.done, "the return of Run")
			permanent(t, r.err, c.cause, c.remedy)
			g.nobodyElse()
		})
	}
}

// rewriting is a client of a kind that is used as it is, and whose commands something changes on their way.
type rewriting struct{ redis.UniversalClient }

// TestB17KeysThatAreRewrittenOnTheirWayEndRun gives each key of a call a slot of its own, as a proxy does that knows
// nothing of hash tags.
func TestB17KeysThatAreRewrittenOnTheirWayEndRun(t *testing.T) {
	t.Parallel()
	g := newGroup(t, redistest.Args("--cluster-enabled", "yes"))
	if err := g.admin.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a cluster", func() bool {
		return strings.Contains(g.admin.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	client := g.server.Client()
	client.AddHook(rewriter{})
	st := ends(g, redisstore.New(rewriting{client}, &redisstore.Options{Logger: g.log()}))
	r := g.start(st, election.Config{ID: "a"}, untilEnd)
	receive(t, r.done, "the return of Run")
	permanent(t, r.err, "CROSSSLOT", "let nothing on the way to the server rewrite keys")
	s, err := scheduler.New(st, scheduler.Config{ID: "b", Group: g.name, Lease: lease})
	if err != nil {
		t.Fatal(err)
	}
	permanent(t, s.Run(t.Context()), "CROSSSLOT", "let nothing on the way to the server rewrite keys")
	g.nobodyElse()
}

// rewriter is a hook that takes the braces out of keys.
type rewriter struct{}

func (rewriter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (rewriter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		withoutTags(cmd)
		return next(ctx, cmd)
	}
}

func (rewriter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			withoutTags(cmd)
		}
		return next(ctx, cmds)
	}
}

func withoutTags(cmd redis.Cmder) {
	for i, arg := range cmd.Args() {
		if key, ok := arg.(string); ok && strings.HasPrefix(key, "singleton:{") {
			cmd.Args()[i] = strings.NewReplacer("{", "", "}", "").Replace(key)
		}
	}
}
