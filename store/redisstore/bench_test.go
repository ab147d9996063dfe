package redisstore_test

import (
	"fmt"
	"testing"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
)

// BenchmarkAcquireRenewCommit measures the calls of an election and of a leader on a real server, one after another, and
// counts the requests that each takes.
func BenchmarkAcquireRenewCommit(b *testing.B) {
	server := redistest.Start(b)
	s := open(b, server.Client(), nil)
	ctx := b.Context()
	nonces := 0
	fresh := func() string { nonces++; return fmt.Sprintf("n%d", nonces) }
	l, number := lead(b, s, "a", fresh()), uint64(0)
	commit := func(changes ...store.Change) {
		number++
		must(b, s.Commit(ctx, l, number, changes))
	}
	var full []store.Change
	for i := range store.MaxChanges {
		full = append(full, store.Change{Bucket: "run", Key: fmt.Sprint(i), Value: make([]byte, 200)})
	}
	for _, c := range []struct {
		name string
		op   func()
	}{
		{"held acquire", func() { _, _ = s.Acquire(ctx, "g", candidate("b", "other")) }},
		{"renew", func() { _, err := s.Renew(ctx, l); must(b, err) }},
		{"commit of one change", func() { commit(full[0]) }},
		{"commit of 100 changes", func() { commit(full...) }},
		{"read of 100 records", func() { must(b, readAll(s, ctx, "run")) }},
		{"release and acquire", func() {
			must(b, s.Release(ctx, l))
			l, number = lead(b, s, "a", fresh()), 0
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			c.op()
			before := scripts(b, server)
			n := 0
			for b.Loop() {
				c.op()
				n++
			}
			b.StopTimer()
			b.ReportMetric(float64(scripts(b, server)-before)/float64(n), "requests/op")
		})
	}
}
