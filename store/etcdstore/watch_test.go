package etcdstore_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/internal/testlog"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

// watched returns a channel that gets something for each hint.
func watched(t *testing.T, s store.Store, group string) chan bool {
	t.Helper()
	hints := make(chan bool, 1000)
	must(t, s.Watch(t.Context(), group, store.LeaseFree, func() { hints <- true }))
	return hints
}

func TestB12AllWatchersShareOneConnectionAndTheLastTakesItAway(t *testing.T) {
	t.Parallel()
	proxy := netproxy.Start(t, server.Addr())
	s := through(t, proxy.Addr(), etcdstore.Config{Prefix: prefixOf(t)})
	var all []chan bool
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 100 {
		hints := make(chan bool, 100)
		must(t, s.Watch(ctx, fmt.Sprint("g", i%20), store.LeaseFree, func() { hints <- true }))
		all = append(all, hints)
	}
	for _, hints := range all {
		<-hints
	}
	if n := proxy.Accepted(); n != 1 {
		t.Errorf("%d connections for 100 watchers", n)
	}
	cancel()
	until(t, "the end of the connection", func() bool { return proxy.Open() == 0 })
}

func TestABrokenWatchStandsAgainAndSaysSo(t *testing.T) {
	t.Parallel()
	proxy := netproxy.Start(t, server.Addr())
	c := etcdstore.Config{Prefix: prefixOf(t)}
	s, other := through(t, proxy.Addr(), c), open(t, c)
	hints := watched(t, s, "g")
	<-hints
	for round, breaks := range []func(){proxy.Cut, func() {
		proxy.Replies.Drop()
		until(t, "another connection", func() bool { return proxy.Accepted() > 3 })
		proxy.Replies.Pass()
	}} {
		breaks()
		<-hints
		for len(hints) > 0 {
			<-hints
		}
		must(t, other.Release(short(t), lead(t, other, "a", fmt.Sprint("n", round))))
		<-hints
	}
}

func TestAStoreMayBeClosedWhileNobodyAnswers(t *testing.T) {
	t.Parallel()
	proxy := netproxy.Start(t, server.Addr())
	s := through(t, proxy.Addr(), etcdstore.Config{Prefix: prefixOf(t)})
	<-watched(t, s, "g")
	l := lead(t, s, "a", "n1")
	proxy.Requests.Hold()
	over := make(chan error, 1)
	go func() { over <- s.Commit(short(t), l, 1, nil) }()
	must(t, proxy.Requests.AwaitHeld(short(t), 1))
	must(t, s.Close())
	if err := <-over; err == nil || store.Definite(err) {
		t.Errorf("a commit under way, which may have been done: %v", err)
	}
}

// TestAWatchThatHasFallenBehindACompactionIsAskedForAgain has the servers end a watch that they cannot tell any more what it
// has missed: more lies in the inbox than fits on the way, and then it is compacted.
func TestAWatchThatHasFallenBehindACompactionIsAskedForAgain(t *testing.T) {
	t.Parallel()
	private := etcdtest.Start(t)
	proxy := netproxy.Start(t, private.Addr())
	log := &testlog.Log{}
	s := through(t, proxy.Addr(), etcdstore.Config{Logger: log.Logger(slog.LevelDebug)})
	other := open(t, etcdstore.Config{Endpoints: []string{private.Addr()}})
	hints := make(chan bool, 10_000)
	must(t, s.Watch(t.Context(), "g", store.InboxFilled, func() { hints <- true }))
	<-hints
	proxy.Replies.Hold()
	message := make([]byte, store.MaxValue)
	slow := func() bool { return private.Metric("etcd_debugging_mvcc_slow_watcher_total") > 0 }
	for n, more := 0, 5; more > 0; n++ {
		must(t, other.Post(short(t), "g", fmt.Sprintf("%06d", n), message))
		if slow() {
			more--
		}
	}
	client := admin(t, private.Addr())
	now, err := client.Put(t.Context(), "now", "")
	must(t, err)
	_, err = client.Compact(t.Context(), now.Header.Revision)
	must(t, err)
	proxy.Replies.Pass()
	until(t, "the end of the watch", func() bool { return strings.Contains(log.String(), "have ended a watch") })
	for len(hints) > 0 {
		<-hints
	}
	until(t, "a hint about a new message", func() bool {
		must(t, other.Post(short(t), "g", fmt.Sprint("new", time.Now().UnixNano()), nil))
		return len(hints) > 0
	})
}
