package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
)

func TestB16FlushedScriptsAreLoadedAgain(t *testing.T) {
	client := redistest.Start(t).Client()
	s := open(t, client, nil)
	l := lead(t, s, "a", "n1")
	for number := range uint64(3) {
		do(t, client, "SCRIPT", "FLUSH")
		_, err := s.Renew(t.Context(), l)
		must(t, err)
		must(t, s.Commit(t.Context(), l, number+1, nil))
	}
}

// TestB16FlushedScriptsAreLoadedAgainBetweenRenewalsInOnePipeline is one server with ten groups, renewed at the same time.
func TestB16FlushedScriptsAreLoadedAgainBetweenRenewalsInOnePipeline(t *testing.T) {
	client := redistest.Start(t).Client()
	s := open(t, client, nil)
	var leases []store.Lease
	for i := range 10 {
		l, err := s.Acquire(t.Context(), fmt.Sprintf("g%d", i), candidate("a", "n1"))
		must(t, err)
		leases = append(leases, l)
	}
	for range 3 {
		do(t, client, "SCRIPT", "FLUSH")
		var renewals sync.WaitGroup
		for _, l := range leases {
			renewals.Go(func() {
				if _, err := s.Renew(t.Context(), l); err != nil {
					t.Errorf("%s: %v", l.Group, err)
				}
			})
		}
		renewals.Wait()
	}
}

func TestRestartsKeepWhatTheServerKept(t *testing.T) {
	server := redistest.Start(t, redistest.AppendOnly())
	s, ctx := open(t, server.Client(), nil), t.Context()
	l := lead(t, s, "a", "n1")
	must(t, s.Commit(ctx, l, 1, []store.Change{{Bucket: "job", Key: "k", Value: []byte("v")}}))
	must(t, server.Restart())
	until(t, func() bool { _, err := s.Renew(ctx, l); return err == nil })
	must(t, s.Commit(ctx, l, 1, nil))
	must(t, s.Commit(ctx, l, 2, nil))
	must(t, server.RestartEmpty())
	until(t, func() bool { _, err := s.Renew(ctx, l); return errors.Is(err, store.ErrLost) })
	next, err := s.Acquire(ctx, "g", candidate("a", "n2"))
	if err != nil || next.Token <= l.Token {
		t.Errorf("token %d after %d, %v", next.Token, l.Token, err)
	}
}

func TestALostTailIsAGap(t *testing.T) {
	server := redistest.Start(t, redistest.AppendOnly())
	s, ctx := open(t, server.Client(), nil), t.Context()
	l := lead(t, s, "a", "n1")
	for number := range uint64(3) {
		must(t, s.Commit(ctx, l, number+1, nil))
	}
	server.Kill()
	files, err := filepath.Glob(filepath.Join(server.Dir(), "appendonlydir", "*.incr.aof"))
	must(t, err)
	if len(files) != 1 {
		t.Fatalf("append-only files %v", files)
	}
	info, err := os.Stat(files[0])
	must(t, err)
	must(t, os.Truncate(files[0], info.Size()-5))
	must(t, server.Restart())
	var number uint64
	until(t, func() bool { _, number, err = s.Position(ctx, "g"); return err == nil })
	if number != 2 {
		t.Fatalf("the last commit is %d, want 2: the third was to be lost", number)
	}
	if err := s.Commit(ctx, l, 4, nil); !errors.Is(err, store.ErrGap) {
		t.Errorf("the fourth commit: %v, want %v", err, store.ErrGap)
	}
}

func TestB3WhatAFrozenServerFindsWhenItThawsLeavesNoLease(t *testing.T) {
	server := redistest.Start(t)
	s, ctx := open(t, server.Client(), nil), t.Context()
	must(t, s.Release(ctx, lead(t, s, "a", "n0")))
	for round := range 10 {
		l := store.Lease{Group: "g", Replica: "a", Nonce: fmt.Sprintf("m%d", round)}
		before := scripts(t, server)
		server.Stop()
		short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		if _, err := s.Acquire(short, "g", candidate("a", l.Nonce)); err == nil {
			t.Fatal("a frozen server answered")
		}
		cancel()
		server.Cont() // the acquire lies in its socket, and may be read before the release or after it
		must(t, s.Release(ctx, l))
		until(t, func() bool { return scripts(t, server) >= before+2 })
		if _, err := s.Leader(ctx, "g"); !errors.Is(err, store.ErrNoLeader) {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}
