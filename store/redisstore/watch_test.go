package redisstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/testlog"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// watched returns a channel that gets something for each hint.
func watched(t *testing.T, s store.Store, group string) chan bool {
	t.Helper()
	hints := make(chan bool, 1000)
	must(t, s.Watch(t.Context(), group, store.LeaseFree, func() { hints <- true }))
	return hints
}

// subscribe waits until n connections of a server subscribe.
func subscribe(t *testing.T, server *redistest.Server, n int) {
	t.Helper()
	client := server.Client()
	until(t, func() bool {
		list, err := client.Do(t.Context(), "CLIENT", "LIST", "TYPE", "PUBSUB").Text()
		must(t, err)
		return strings.Count(list, " addr=") == n
	})
}

func TestAllWatchersShareOneConnection(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	s := open(t, through(t, proxy), nil)
	var all []chan bool
	for i := range 200 {
		all = append(all, watched(t, s, fmt.Sprintf("group-%d", i%50)))
	}
	for _, hints := range all {
		<-hints
	}
	if n := proxy.Accepted(); n != 1 {
		t.Errorf("%d connections for 200 watchers", n)
	}
}

func TestB12WatchingOverAndOverLeavesNothing(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.Client(), nil)
	for i := range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		hints := make(chan bool, 10)
		must(t, s.Watch(ctx, fmt.Sprintf("g%d", i%3), store.LeaseFree, func() { hints <- true }))
		<-hints
		cancel()
	}
	subscribe(t, server, 0) // the last watcher has gone
	<-watched(t, s, "g")
	subscribe(t, server, 1)
}

func TestABrokenSubscriptionStandsAgainAndSaysSo(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.Client(), nil)
	hints, others := watched(t, s, "g"), watched(t, s, "h")
	<-hints
	<-others
	for name, breaks := range map[string]func(){
		"killed":  func() { do(t, server.Client(), "CLIENT", "KILL", "TYPE", "pubsub") },
		"restart": func() { must(t, server.Restart()) },
	} {
		breaks()
		<-hints
		<-others
		subscribe(t, server, 1)
		for len(hints) > 0 {
			<-hints
		}
		l, err := s.Acquire(t.Context(), "g", candidate("a", name))
		must(t, err)
		must(t, s.Release(t.Context(), l))
		<-hints
	}
}

func TestAConnectionThatDiesSilentlyIsReplaced(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	log := &testlog.Log{}
	s := open(t, through(t, proxy), &redisstore.Options{Logger: log.Logger(slog.LevelInfo)})
	redisstore.Silence(s, 50*time.Millisecond)
	hints := watched(t, s, "g")
	<-hints
	proxy.Replies.Drop()
	until(t, func() bool { return proxy.Accepted() > 1 }) // it tries others, in vain
	proxy.Replies.Pass()
	<-hints
	if !strings.Contains(log.String(), "died silently") {
		t.Errorf("the log does not say so:\n%s", log)
	}
}

func TestAQuietConnectionThatLivesIsKept(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	s := open(t, through(t, proxy), nil)
	redisstore.Silence(s, 300*time.Millisecond) // a server that takes longer to answer counts as dead
	<-watched(t, s, "g")
	client := server.Client()
	until(t, func() bool {
		return strings.Contains(client.Info(t.Context(), "commandstats").Val(), "cmdstat_ping:calls=5,")
	})
	if n := proxy.Accepted(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

func TestWatchReturnsAtOnceThoughNobodyAnswers(t *testing.T) {
	server := redistest.Start(t)
	server.Stop()
	s := open(t, server.Client(), nil)
	hints := watched(t, s, "g")
	server.Cont()
	<-hints
}

func TestAStoreMayBeClosedWhileNobodyAnswers(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.Client(), nil)
	<-watched(t, s, "g")
	server.Stop()
	must(t, s.Close())
	server.Cont()
}

func TestHintsForNobodyAreIgnored(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client()
	s := open(t, client, nil)
	hints := watched(t, s, "g")
	<-hints
	for _, channel := range []string{"singleton:{h}:wake", "singleton:{}:wake", "singleton:{g}:post", "singleton:{g\n}:wake", "singleton:{g}:wake"} {
		do(t, client, "PUBLISH", channel, "whatever\x00")
	}
	<-hints
	if n := len(hints); n != 0 {
		t.Errorf("%d hints more", n)
	}
}

func TestAUserThatMayNotSubscribeIsWarnedOnceAndServed(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	do(t, admin, "ACL", "SETUSER", "leader", "on", ">pw", "~singleton:*", "resetchannels", "+@all")
	log := &testlog.Log{}
	client := server.Client(func(o *redis.Options) { o.Username, o.Password = "leader", "pw" })
	s := open(t, client, &redisstore.Options{Logger: log.Logger(slog.LevelInfo)})
	hints := watched(t, s, "g")
	until(t, func() bool { return strings.Contains(log.String(), "no hints come") })
	must(t, s.Release(t.Context(), lead(t, s, "a", "n1"))) // the hint that it may not publish is nobody's failure
	do(t, admin, "ACL", "SETUSER", "leader", "allchannels")
	<-hints
	if n := strings.Count(log.String(), "no hints come"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log)
	}
}
