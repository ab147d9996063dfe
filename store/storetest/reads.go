package storetest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-singleton/singleton/store"
)

// many is more records than a store may give in one page.
const many = 2500

var readRules = []rule{
	{name: "a bucket that does not exist is empty", check: func(e *env) {
		e.equal(e.records("job"), "")
		e.equal(e.records(store.InboxBucket), "")
	}},
	{name: "thousands of records come once each and by key", check: func(e *env) {
		l := e.lead("a", "n1")
		want := e.fill(l, many, strings.Repeat("v", 100))
		var got []string
		for r, err := range e.s.Read(e.ctx, "g", &l, "job") {
			e.must(err)
			got = append(got, r.Key)
		}
		if !slices.Equal(got, want) {
			e.Fatalf("got %d keys, want %d in order", len(got), len(want))
		}
	}},
	{name: "the largest values come whole", check: func(e *env) {
		l := e.lead("a", "n1")
		value := strings.Repeat("v", store.MaxValue)
		for n := range 20 {
			e.commit(l, uint64(n+1), put("job", fmt.Sprintf("k%02d", n), value))
		}
		n := 0
		for r, err := range e.s.Read(e.ctx, "g", &l, "job") {
			e.must(err)
			if r.Key != fmt.Sprintf("k%02d", n) || string(r.Value) != value {
				e.Fatalf("record %d is %s with %d bytes", n, r.Key, len(r.Value))
			}
			n++
		}
		e.equal(n, 20)
	}},
	{name: "a leader whose lease is lost reads nothing", check: func(e *env) {
		l := e.lead("a", "n1")
		e.commit(l, 1, put("job", "x", "1"))
		e.release(l)
		n, err := e.read(&l, "job")
		e.want(err, store.ErrLost)
		e.equal(n, 0)
		e.lead("b", "n2")
		_, err = e.read(&l, "job")
		e.want(err, store.ErrLost)
		_, err = e.read(&l, "empty")
		e.want(err, store.ErrLost)
		n, err = e.read(nil, "job")
		e.must(err)
		e.equal(n, 1)
	}},
	{name: "each page is checked against the lease", check: func(e *env) {
		l := e.lead("a", "n1")
		e.fill(l, many, "v")
		n := 0
		var end error
		for _, err := range e.s.Read(e.ctx, "g", &l, "job") {
			if err != nil {
				end = err
				break
			}
			if n++; n == 1 {
				e.release(l)
			}
		}
		e.want(end, store.ErrLost)
		if n >= many {
			e.Fatalf("all %d records came", n)
		}
	}},
	{name: "a reader may stop early", check: func(e *env) {
		l := e.lead("a", "n1")
		e.fill(l, many, "v")
		for range e.s.Read(e.ctx, "g", &l, "job") {
			break
		}
		e.commit(l, many/store.MaxChanges+1)
	}},
	{name: "reading may be repeated", check: func(e *env) {
		l := e.lead("a", "n1")
		e.commit(l, 1, put("job", "x", "1"))
		records := e.s.Read(e.ctx, "g", &l, "job")
		for range 2 {
			n := 0
			for _, err := range records {
				e.must(err)
				n++
			}
			e.equal(n, 1)
		}
	}},
	{name: "what goes while it is read does not come, the rest does", check: func(e *env) {
		l := e.lead("a", "n1")
		keys := e.fill(l, many, "v")
		gone := keys[len(keys)-1]
		n := 0
		for r, err := range e.s.Read(e.ctx, "g", &l, "job") {
			e.must(err)
			if n++; n == 1 {
				e.commit(l, many/store.MaxChanges+1, remove("job", gone))
			}
			if r.Key == gone {
				e.Fatal("a record came that had gone")
			}
		}
		e.equal(n, many-1)
	}},
}

// fill commits n records from number 1 on, and returns their keys in order.
func (e *env) fill(l store.Lease, n int, value string) []string {
	e.Helper()
	var keys []string
	number := uint64(0)
	var changes []store.Change
	for i := range n {
		key := fmt.Sprintf("k%d", i*7919%n) // in no order
		keys = append(keys, key)
		changes = append(changes, put("job", key, value))
		if len(changes) == store.MaxChanges || i == n-1 {
			number++
			e.commit(l, number, changes...)
			changes = nil
		}
	}
	slices.Sort(keys)
	return keys
}
