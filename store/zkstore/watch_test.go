package zkstore_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/zkstore"
)

// watched returns a channel that gets something for each hint.
func watched(t *testing.T, s store.Store, group string) chan bool {
	t.Helper()
	hints := make(chan bool, 1000)
	must(t, s.Watch(t.Context(), group, store.LeaseFree, func() { hints <- true }))
	return hints
}

func TestB12AllWatchersShareOneConnectionAndTheLastTakesItAway(t *testing.T) {
	proxy := netproxy.Start(t, server.Addr())
	s := through(t, proxy.Addr(), zkstore.Config{Chroot: chrootOf(t), SessionTimeout: timeout})
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
	proxy := netproxy.Start(t, server.Addr())
	c := zkstore.Config{Chroot: chrootOf(t), SessionTimeout: timeout}
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
	proxy := netproxy.Start(t, server.Addr())
	s := through(t, proxy.Addr(), zkstore.Config{Chroot: chrootOf(t), SessionTimeout: timeout})
	<-watched(t, s, "g")
	lead(t, s, "a", "n1")
	proxy.Requests.Drop()
	proxy.Replies.Drop()
	must(t, s.Close())
}
