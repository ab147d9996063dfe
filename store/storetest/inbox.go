package storetest

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/go-singleton/singleton/store"
)

var inboxRules = []rule{
	{name: "messages come in the order of their IDs", check: func(e *env) {
		e.post("018f-2", "second")
		e.post("018f-3", "third")
		e.post("018f-1", "first")
		e.equal(e.records(store.InboxBucket), "018f-1=first 018f-2=second 018f-3=third ")
	}},
	{name: "an ID that still lies there is not put twice", check: func(e *env) {
		e.post("1", "one")
		e.post("1", "other")
		e.equal(e.records(store.InboxBucket), "1=one ")
	}},
	{name: "the leader removes messages in a commit", check: func(e *env) {
		e.post("1", "one")
		e.post("2", "two")
		l := e.lead("a", "n1")
		n, err := e.read(&l, store.InboxBucket)
		e.must(err)
		e.equal(n, 2)
		e.commit(l, 1, remove(store.InboxBucket, "1"), put("seen", "1", "done"))
		e.equal(e.records(store.InboxBucket), "2=two ")
		e.want(e.s.Commit(e.ctx, l, 2, []store.Change{put(store.InboxBucket, "3", "three")}), store.ErrPermanent)
	}},
	{name: "anyone may post, with or without a leader", check: func(e *env) {
		e.post("1", "one")
		e.lead("a", "n1")
		e.post("2", "two")
		e.equal(e.records(store.InboxBucket), "1=one 2=two ")
	}},
	{name: "groups have inboxes of their own", check: func(e *env) {
		e.post("1", "one")
		e.must(e.s.Post(e.ctx, "h", "2", []byte("two")))
		e.equal(e.records(store.InboxBucket), "1=one ")
	}},
	{name: "a message may be as long as a value and no longer", check: func(e *env) {
		e.post("1", strings.Repeat("m", store.MaxValue))
		e.want(e.s.Post(e.ctx, "g", "2", make([]byte, store.MaxValue+1)), store.ErrTooLarge)
		n, err := e.read(nil, store.InboxBucket)
		e.must(err)
		e.equal(n, 1)
	}},
	{name: "a full inbox takes no more until one is removed", check: func(e *env) {
		e.fillInbox()
		e.want(e.s.Post(e.ctx, "g", "more", nil), store.ErrFull)
		e.post("00000", "again")
		l := e.lead("a", "n1")
		n, err := e.read(&l, store.InboxBucket)
		e.must(err)
		e.equal(n, store.MaxInbox)
		e.commit(l, 1, remove(store.InboxBucket, "00000"))
		e.post("more", "m")
		e.want(e.s.Post(e.ctx, "g", "much more", nil), store.ErrPermanent) // the ID has a blank
		e.want(e.s.Post(e.ctx, "g", "muchmore", nil), store.ErrFull)
	}},
}

// fillInbox posts as many messages as there may be, 00000 and so on.
func (e *env) fillInbox() {
	e.Helper()
	var ids []string
	for i := range store.MaxInbox {
		ids = append(ids, fmt.Sprintf("%05d", i))
	}
	if e.harness.Fill != nil {
		e.harness.Fill(e.T, ids)
		return
	}
	var wg sync.WaitGroup
	for part := range slices.Chunk(ids, len(ids)/8) {
		wg.Go(func() {
			for _, id := range part {
				if err := e.s.Post(e.ctx, "g", id, []byte("m")); err != nil {
					e.Errorf("message %s: %v", id, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
