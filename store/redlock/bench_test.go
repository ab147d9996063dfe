//go:build linux

package redlock_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redlock"
)

// measured runs a benchmark on three healthy servers, with one of the three hung, and with one cut off.
func measured(b *testing.B, run func(*testing.B, *redlock.Store)) {
	for _, c := range []struct {
		name   string
		breaks func(*redistest.Node)
	}{
		{"three healthy", func(*redistest.Node) {}},
		{"one of three hung", (*redistest.Node).Stop},
		{"one of three cut off", (*redistest.Node).Cut},
	} {
		b.Run(c.name, func(b *testing.B) {
			nodes := redistest.StartNodes(b, 3, redistest.AppendOnly()) // with a sync of the disk for each write
			run(b, connect(b, nodes.Addrs(), func() { c.breaks(nodes.All[0]) }))
		})
	}
}

// connect returns a store on servers at addrs, with a lease that is over and a ledger, and calls broken.
func connect(b *testing.B, addrs []string, broken func()) *redlock.Store {
	var clients []*redis.Client
	for _, addr := range addrs {
		c := redis.NewClient(&redis.Options{Addr: addr})
		b.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	s, err := redlock.New(clients, redlock.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	l := leads(b, s, "first")
	if err := errors.Join(s.Commit(b.Context(), l, 1, nil), s.Release(b.Context(), l)); err != nil {
		b.Fatal(err)
	}
	broken()
	return s
}

// leads acquires the lease of an hour.
func leads(b *testing.B, s *redlock.Store, nonce string) store.Lease {
	l, err := s.Acquire(b.Context(), "g", store.Candidate{
		Replica: store.Replica{ID: "a"}, Nonce: nonce, TTL: time.Hour, Session: time.Hour, Start: true,
	})
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func BenchmarkAcquire(b *testing.B) {
	measured(b, func(b *testing.B, s *redlock.Store) {
		for n := 0; b.Loop(); n++ {
			l := leads(b, s, fmt.Sprint("n", n))
			b.StopTimer()
			if err := s.Release(b.Context(), l); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
	})
}

func BenchmarkRenew(b *testing.B) {
	measured(b, func(b *testing.B, s *redlock.Store) {
		l := leads(b, s, "n")
		for b.Loop() {
			if _, err := s.Renew(b.Context(), l); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkCommitOfOneTick(b *testing.B) {
	measured(b, func(b *testing.B, s *redlock.Store) {
		l := leads(b, s, "n")
		value, number := []byte(strings.Repeat("v", 200)), uint64(0)
		for b.Loop() {
			number++
			changes := []store.Change{{Bucket: "job", Key: "j", Value: value}, {Bucket: "run", Key: "r", Value: value, Delete: number%2 == 0}}
			if err := s.Commit(b.Context(), l, number, changes); err != nil {
				b.Fatal(err)
			}
		}
	})
}
