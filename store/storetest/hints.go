package storetest

import (
	"context"
	"fmt"

	"github.com/go-singleton/singleton/store"
)

var hintRules = []rule{
	{name: "a hint comes when the subscription stands", check: func(e *env) {
		e.watch("g", store.LeaseFree).await(e)
		e.watch("g", store.InboxFilled).await(e)
		e.watch("g", store.LeaseFree).await(e) // also to one that joins a subscription that stands
	}},
	{name: "B13 a release wakes every follower", check: func(e *env) {
		first, second := e.watch("g", store.LeaseFree), e.watch("g", store.LeaseFree)
		l := e.lead("a", "n1")
		first.settle(e)
		second.settle(e)
		e.release(l)
		first.await(e)
		second.await(e)
	}},
	{name: "a message wakes the leader", check: func(e *env) {
		w := e.watch("g", store.InboxFilled)
		w.settle(e)
		e.post("1", "one")
		w.await(e)
	}},
	{name: "a hint is no grant", check: func(e *env) {
		w := e.watch("g", store.LeaseFree)
		l := e.lead("a", "n1")
		w.settle(e)
		e.release(l)
		e.lead("b", "n2")
		w.await(e)
		e.equal(e.held("g", candidate("c", "n3")).Replica, "b")
	}},
	{name: "hints are of one topic and group", check: func(e *env) {
		other := []*hints{e.watch("h", store.LeaseFree), e.watch("g", store.InboxFilled), e.watch("g.", store.LeaseFree)}
		w := e.watch("g", store.LeaseFree)
		l := e.lead("a", "n1")
		w.settle(e)
		for _, o := range other {
			o.settle(e)
		}
		e.release(l)
		w.await(e)
		for _, o := range other {
			o.none(e)
		}
	}},
	{name: "hints end with their context and others go on", check: func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx)
		ended := make(hints, 100)
		e.must(e.s.Watch(ctx, "g", store.LeaseFree, ended.hint))
		w := e.watch("g", store.LeaseFree)
		ended.settle(e)
		w.settle(e)
		cancel()
		round := 0
		e.until(func() bool { // the store may see the end a moment later
			round++
			ended.drain()
			e.release(e.lead("a", fmt.Sprintf("n%d", round)))
			w.await(e)
			return len(ended) == 0
		})
	}},
	{name: "watching again after the last watcher has gone works", check: func(e *env) {
		for range 20 {
			ctx, cancel := context.WithCancel(e.ctx)
			w := make(hints, 100)
			e.must(e.s.Watch(ctx, "g", store.LeaseFree, w.hint))
			w.await(e)
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
func (h hints) await(e *env) {
	e.Helper()
	select {
	case <-h:
	case <-e.ctx.Done():
		e.Fatal("no hint came")
	}
}

// settle waits until the subscription stands and forgets what has come so far.
func (h hints) settle(e *env) {
	e.Helper()
	h.await(e)
	h.drain()
}

func (h hints) drain() {
	for len(h) > 0 {
		<-h
	}
}

// none checks that nothing has come.
func (h hints) none(e *env) {
	e.Helper()
	if n := len(h); n > 0 {
		e.Fatalf("%d hints came that are not for this watcher", n)
	}
}
