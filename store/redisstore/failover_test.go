package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/testlog"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// keep repeats what a leader does until it is answered: in a failover some calls go astray.
func keep(t *testing.T, what string, call func(context.Context) error) {
	t.Helper()
	var err error
	until(t, func() bool {
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err = call(short); errors.Is(err, store.ErrPermanent) || errors.Is(err, store.ErrLost) {
			t.Fatalf("%s: %v", what, err)
		}
		return err == nil
	})
}

// goesOn checks that a lease, its records and the hints about it have come through a failover.
func goesOn(t *testing.T, s *redisstore.Store, l store.Lease, number uint64, hints chan bool) {
	t.Helper()
	keep(t, "renew", func(ctx context.Context) error { _, err := s.Renew(ctx, l); return err })
	keep(t, "commit", func(ctx context.Context) error { return s.Commit(ctx, l, number, nil) })
	keep(t, "post", func(ctx context.Context) error { return s.Post(ctx, l.Group, fmt.Sprint(number), nil) })
	for len(hints) > 0 {
		<-hints
	}
	until(t, func() bool { // until the subscription stands on the new primary, too
		var other store.Lease
		c := candidate("a", strconv.FormatInt(time.Now().UnixNano(), 10))
		keep(t, "acquire", func(ctx context.Context) (err error) { other, err = s.Acquire(ctx, "other", c); return err })
		keep(t, "release", func(ctx context.Context) error { return s.Release(ctx, other) })
		return len(hints) > 0
	})
}

// replicated waits until the replicas of a primary have what was written last.
func replicated(t *testing.T, primary *redistest.Server, replicas int) {
	t.Helper()
	client := primary.Client()
	until(t, func() bool {
		role, err := client.Do(t.Context(), "ROLE").Slice()
		must(t, err)
		return len(role[2].([]any)) >= replicas
	})
	// WAIT counts the writes of its own connection, but none from before the first replica: one that has received nothing
	// yet is not behind them.
	do(t, client, "SET", "last", "x")
	until(t, func() bool {
		n, err := client.Wait(t.Context(), replicas, time.Second).Result()
		must(t, err)
		return n >= int64(replicas)
	})
}

func isPrimary(t *testing.T, s *redistest.Server) bool {
	t.Helper()
	client := redis.NewClient(&redis.Options{Addr: s.Addr()}) // some tests ask again and again: the server's would pile up
	defer client.Close()
	role, err := client.Do(t.Context(), "ROLE").Slice()
	must(t, err)
	return role[0] == "master"
}

// promote makes a replica of a cluster the primary in good order. The cluster drops an attempt that has not succeeded
// within 5 s, without a word.
func promote(t *testing.T, next *redistest.Server) {
	t.Helper()
	client, asked := next.Client(), time.Time{}
	until(t, func() bool {
		if isPrimary(t, next) {
			return true
		}
		if time.Since(asked) > 6*time.Second {
			do(t, client, "CLUSTER", "FAILOVER")
			asked = time.Now()
		}
		return false
	})
}

func TestALeaseComesThroughTheDeathOfAPrimary(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*redistest.Server){
		"killed": (*redistest.Server).Kill, "frozen": (*redistest.Server).Stop,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := redistest.StartSentinels(t)
			s := openFailover(t, servers, nil)
			hints := watched(t, s, "other")
			<-hints
			l := lead(t, s, "a", "n1")
			must(t, s.Commit(t.Context(), l, 1, nil))
			old := servers.Primary(t.Context())
			replicated(t, old, 2)
			end(old)
			until(t, func() bool { p := servers.Primary(t.Context()); return p != nil && p != old })
			goesOn(t, s, l, 2, hints)
		})
	}
}

// TestAPrimaryThatWasReplacedWhileItStoodStillIsNotAsked: it goes on as a primary for seconds, and a store has open
// connections to it.
func TestAPrimaryThatWasReplacedWhileItStoodStillIsNotAsked(t *testing.T) {
	t.Parallel()
	servers := redistest.StartSentinels(t)
	s, idle := openFailover(t, servers, nil), openFailover(t, servers, nil)
	l := lead(t, s, "a", "n1")
	if _, err := idle.Leader(t.Context(), "g"); err != nil { // a follower, which then sleeps
		t.Fatal(err)
	}
	old := servers.Primary(t.Context())
	replicated(t, old, 2)
	old.Stop()
	until(t, func() bool { p := servers.Primary(t.Context()); return p != nil && p != old })
	old.Cont()
	for i := range 20 {
		_, err := idle.Acquire(t.Context(), fmt.Sprint("g", i), candidate("b", "n2"))
		must(t, err)
		keep(t, "renew", func(ctx context.Context) error { _, err := s.Renew(ctx, l); return err })
	}
	if !isPrimary(t, old) {
		t.Error("the old primary knows already that it is none: nothing was shown")
	}
	if keys := old.Client().Keys(t.Context(), "singleton:*:lease").Val(); len(keys) != 1 {
		t.Errorf("the old primary has given %v", keys)
	}
}

func TestASentinelThatHangsHoldsUpNothing(t *testing.T) {
	t.Parallel()
	servers := redistest.StartSentinels(t)
	servers.Sentinels[0].Stop()
	defer servers.Sentinels[0].Cont()
	s := openFailover(t, servers, nil)
	l := lead(t, s, "a", "n1")
	old := servers.Servers[0]
	replicated(t, old, 2)
	old.Kill()
	keep(t, "renew", func(ctx context.Context) error { _, err := s.Renew(ctx, l); return err })

	for _, one := range servers.Sentinels[1:] { // without any of them the primary stays what it is
		one.Kill()
	}
	keep(t, "renew", func(ctx context.Context) error { _, err := s.Renew(ctx, l); return err })
	_, err := openFailover(t, servers, nil).Leader(t.Context(), "g")
	wantTransient(t, err, "no Sentinel has named a primary")
}

// TestWhatAFailoverHasLostIsToldAndTokensGrow cuts the replicas off before the last writes. The primary then dies with
// them.
func TestWhatAFailoverHasLostIsToldAndTokensGrow(t *testing.T) {
	t.Parallel()
	servers := redistest.StartSentinels(t)
	s, ctx := openFailover(t, servers, nil), t.Context()
	kept := lead(t, s, "a", "n1")
	must(t, s.Commit(ctx, kept, 1, nil))
	replicated(t, servers.Servers[0], 2)
	cutOff(t, servers.Servers[0], servers.Servers[1:])
	must(t, s.Commit(ctx, kept, 2, nil))
	lost, err := s.Acquire(ctx, "lost", candidate("a", "n1"))
	must(t, err)
	servers.Servers[0].Kill()
	for _, r := range servers.Servers[1:] {
		r.Cont()
	}
	keep(t, "position", func(ctx context.Context) error {
		_, number, err := s.Position(ctx, "g")
		if err == nil && number != 1 {
			t.Errorf("the last commit is %d, want 1: the second was to be lost", number)
		}
		return err
	})
	if err := s.Commit(ctx, kept, 3, nil); !errors.Is(err, store.ErrGap) {
		t.Errorf("a commit after one that is lost: %v, want %v", err, store.ErrGap)
	}
	if _, err := s.Renew(ctx, lost); !errors.Is(err, store.ErrLost) {
		t.Errorf("a lease that is lost: %v, want %v", err, store.ErrLost)
	}
	next, err := s.Acquire(ctx, "lost", candidate("b", "n2"))
	must(t, err)
	if next.Token <= lost.Token {
		t.Errorf("token %d after %d", next.Token, lost.Token)
	}
}

// cutOff lets nothing more reach the replicas of a primary: what their sockets hold already would.
func cutOff(t *testing.T, primary *redistest.Server, replicas []*redistest.Server) {
	t.Helper()
	for _, r := range replicas {
		r.Stop()
	}
	do(t, primary.Client(), "CLIENT", "KILL", "TYPE", "replica")
}

func TestALeaseComesThroughAFailoverOfACluster(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t)
	s, ctx := openCluster(t, nodes, nil), t.Context()
	hints := watched(t, s, "other")
	<-hints
	l := lead(t, s, "a", "n1")
	must(t, s.Commit(ctx, l, 1, nil))
	old, err := nodes.Owner(ctx, nodes.Nodes[0], "{g}")
	must(t, err)
	next := nodes.Replica(old)
	replicated(t, old, 1)

	promote(t, next)
	goesOn(t, s, l, 2, hints)
	until(t, func() bool { return !isPrimary(t, old) })
	must(t, nodes.Formed())
	replicated(t, next, 1)

	next.Kill()
	goesOn(t, s, l, 3, hints)
	must(t, next.Restart())
	must(t, nodes.Formed())
	replicated(t, old, 1)

	old.Stop()
	goesOn(t, s, l, 4, hints)
	old.Cont()
	goesOn(t, s, l, 5, hints)
	must(t, nodes.Formed())

	// Two nodes are gone that have nothing to do with the group: the whole cluster is down.
	other, err := nodes.Owner(ctx, next, "{other}")
	must(t, err)
	for _, n := range []*redistest.Server{other, nodes.Replica(other)} {
		n.Kill()
	}
	until(t, func() bool {
		_, err = s.Renew(ctx, l)
		return err != nil && strings.Contains(err.Error(), "CLUSTERDOWN")
	})
	wantTransient(t, err, "CLUSTERDOWN")
	for _, n := range []*redistest.Server{other, nodes.Replica(other)} {
		must(t, n.Restart())
	}
	keep(t, "renew", func(ctx context.Context) error { _, err := s.Renew(ctx, l); return err })
}

// TestALeaseComesThroughTheMoveOfItsSlot moves it to a node that is new, step by step.
func TestALeaseComesThroughTheMoveOfItsSlot(t *testing.T) {
	t.Parallel()
	nodes, ctx := redistest.StartCluster(t), t.Context()
	to, err := nodes.Grow(ctx)
	must(t, err)
	allowed := rules(t, "singleton", "+cluster|slots", "+asking")
	grant(t, allowed, nodes.Nodes...)
	options := nodes.Options()
	options.Addrs = options.Addrs[:3] // the new node is found out
	options.Username, options.Password = "few", "pw"
	client := redis.NewClusterClient(options)
	defer client.Close()
	s := open(t, client, nil)
	c := candidate("a", "n1")
	c.Info = []byte("here")
	l, err := s.Acquire(ctx, "g", c)
	must(t, err)
	others := []store.Lease{l} // their groups lie elsewhere, and some on the same node
	for i := range 9 {
		o, err := s.Acquire(ctx, fmt.Sprintf("other%d", i), candidate("a", "n1"))
		must(t, err)
		others = append(others, o)
	}
	renew := func() error { // in one batch with the others, whose renewals are granted whatever becomes of it
		errs := together(ctx, s, others)
		granted(t, errs, 0)
		return errs[0]
	}
	number := uint64(0)
	leads := func() error {
		if err := renew(); err != nil {
			return err
		}
		number++
		return s.Commit(ctx, l, number, []store.Change{{Bucket: "job", Key: "k", Value: []byte("v")}})
	}
	must(t, leads())

	from, err := nodes.Owner(ctx, nodes.Nodes[0], "{g}")
	must(t, err)
	ids := map[*redistest.Server]string{}
	for _, n := range []*redistest.Server{from, to} {
		ids[n], err = nodes.ID(ctx, n)
		must(t, err)
	}
	slot := from.Client().ClusterKeySlot(ctx, "{g}").Val()
	do(t, to.Client(), "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[from])
	do(t, from.Client(), "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[to])
	must(t, leads()) // all keys are there still

	host, port, _ := net.SplitHostPort(to.Addr())
	move := func(keys ...string) {
		args := []any{"MIGRATE", host, port, "", 0, 5000, "KEYS"}
		for _, k := range keys {
			args = append(args, k)
		}
		do(t, from.Client(), args...)
	}
	keys := from.Client().Keys(ctx, "singleton:{g}:*").Val()
	move("singleton:{g}:fence")
	wantTransient(t, renew(), "TRYAGAIN") // some keys are here, some there
	for _, k := range keys {
		if k != "singleton:{g}:fence" {
			move(k)
		}
	}
	must(t, leads()) // ASK, and the new owner knows no script
	grant(t, rules(t, "singleton", "+cluster|slots"), to)
	wantPermanent(t, renew(), "NOPERM", "grant")
	grant(t, allowed, to)
	do(t, to.Client(), "SCRIPT", "FLUSH")
	must(t, leads())
	for _, n := range []*redistest.Server{to, from} {
		do(t, n.Client(), "CLUSTER", "SETSLOT", slot, "NODE", ids[to])
	}
	must(t, leads()) // MOVED
	do(t, to.Client(), "SCRIPT", "FLUSH")
	must(t, leads())
	leader, err := s.Leader(ctx, "g")
	if err != nil || leader.Token != l.Token {
		t.Errorf("%+v, %v; want token %d", leader, err, l.Token)
	}
	if n := to.Client().Exists(ctx, "singleton:{g}:lease").Val(); n != 1 {
		t.Error("the slot was not moved")
	}
}

func TestARingIsRefused(t *testing.T) {
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	defer ring.Close()
	s := redisstore.New(ring, nil)
	wantPermanent(t, acquires(t, s), "Ring", "its leases stay behind")
	must(t, s.Close())
	none := redisstore.NewFailover(&redis.FailoverOptions{MasterName: "main"}, nil)
	wantPermanent(t, acquires(t, none), "SentinelAddrs")
	must(t, none.Close())
}

// TestAClientThatAsksSentinelsItselfServesWithAWarning: what it does cannot be told from outside.
func TestAClientThatAsksSentinelsItselfServesWithAWarning(t *testing.T) {
	servers, log := sentinels.get(t), &testlog.Log{}
	client := redis.NewFailoverClient(servers.Options())
	defer client.Close()
	s := open(t, client, &redisstore.Options{Prefix: "own", Logger: textLogger(log)})
	for range 3 {
		must(t, acquires(t, s))
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), "NewFailover") {
		t.Errorf("got %d warnings:\n%s", n, log.String())
	}
	slots := redis.NewFailoverClusterClient(servers.Options()) // replicas that nothing is to be read from
	defer slots.Close()
	must(t, acquires(t, open(t, slots, &redisstore.Options{Prefix: "own-slots"})))
}
