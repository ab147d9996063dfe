package storetest

import (
	"context"
	"fmt"
	"testing"

	"github.com/go-singleton/singleton/store"
)

var hintRules = []rule{
	{name: "a hint comes when the subscription stands", check: func(e *env) {
		e.watch("g", store.LeaseFree).await(e.T)
		e.watch("g", store.InboxFilled).await(e.T)
		e.watch("g", store.LeaseFree).await(e.T) // also to one that joins a subscription that stands
	}},
	{name: "B13 a release wakes every follower", check: func(e *env) {
		first, second := e.watch("g", store.LeaseFree), e.watch("g", store.LeaseFree)
		l := e.lead("a", "n1")
		first.settle(e.T)
		second.settle(e.T)
		e.release(l)
		first.await(e.T)
		second.await(e.T)
	}},
	{name: "a message wakes the leader", check: func(e *env) {
		w := e.watch("g", store.InboxFilled)
		w.settle(e.T)
		e.post("1", "one")
		w.await(e.T)
	}},
	{name: "a hint is no grant", check: func(e *env) {
		w := e.watch("g", store.LeaseFree)
		l := e.lead("a", "n1")
		w.settle(e.T)
		e.release(l)
		e.lead("b", "n2")
		w.await(e.T)
		e.equal(e.held("g", candidate("c", "n3")).Replica, "b")
	}},
	{name: "hints are of one topic and group", check: func(e *env) {
		other := []*hints{e.watch("h", store.LeaseFree), e.watch("g", store.InboxFilled), e.watch("g.", store.LeaseFree)}
		w := e.watch("g", store.LeaseFree)
		l := e.lead("a", "n1")
		w.settle(e.T)
		for _, o := range other {
			o.settle(e.T)
		}
		e.release(l)
		w.await(e.T)
		for _, o := range other {
			o.none(e.T)
		}
	}},
	{name: "hints end with their context and others go on", check: func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx)
		ended := make(hints, 100)
		e.must(e.s.Watch(ctx, "g", store.LeaseFree, ended.hint))
		w := e.watch("g", store.LeaseFree)
		ended.settle(e.T)
		w.settle(e.T)
		cancel()
		round := 0
		e.until(func() bool { // the store may see the end a moment later
			round++
			ended.drain()
			e.release(e.lead("a", fmt.Sprintf("n%d", round)))
			w.await(e.T)
			return len(ended) == 0
		})
	}},
	{name: "watching again after the last watcher has gone works", check: func(e *env) {
		for range 20 {
			ctx, cancel := context.WithCancel(e.ctx)
			w := make(hints, 100)
			e.must(e.s.Watch(ctx, "g", store.LeaseFree, w.hint))
			w.await(e.T)
			cancel()
		}
	}},
}

// hints collects calls; it never blocks the caller, as the contract wants.
type hints chan struct{}

func (h hints) hint() {
	select {
	case h <- struct{}{}:
	default:
	}
}

func (e *env) watch(group string, t store.Topic) *hints {
	e.Helper()
	h := make(hints, 100)
	e.must(e.s.Watch(e.ctx, group, t, h.hint))
	return &h
}

// await waits for a hint.
func (h hints) await(t *testing.T) {
	t.Helper()
	select {
	case <-h:
	case <-t.Context().Done():
		t.Fatal("no hint came")
	}
}

// settle waits until the subscription stands and forgets what has come so far.
func (h hints) settle(t *testing.T) {
	t.Helper()
	h.await(t)
	h.drain()
}

func (h hints) drain() {
	for len(h) > 0 {
		<-h
	}
}

// none checks that nothing has come.
func (h hints) none(t *testing.T) {
	t.Helper()
	if n := len(h); n > 0 {
		t.Fatalf("%d hints came that are not for this watcher", n)
	}
}
