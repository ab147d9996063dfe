package election_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store/memstore"
)

func TestStopDoesNotWaitForARenewalWithoutAnAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := run(t, memstore.New(), election.Config{}, untilEnd)
		synctest.Wait()
		r.wire.follow(func(op string) fault { return fault{mute: op == "renew"} })
		pass(third)
		if n := r.wire.count("renew"); n != 1 {
			t.Fatalf("%d renewals", n)
		}
		stopped := time.Now()
		r.stop(nil)
		<-r.done
		if took := time.Since(stopped); took != 0 || r.wire.count("release") != 1 {
			t.Errorf("Run has returned after %v and %d releases", took, r.wire.count("release"))
		}
	})
}

func TestE2WhatTheWallClockHasEndedIsNotRenewed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := run(t, memstore.New(), election.Config{}, untilEnd)
		pass(third - time.Millisecond)
		r.ahead.Store(int64(lease)) // no timer has looked at the clocks since
		pass(time.Millisecond)
		if n := r.wire.count("renew"); n != 0 || r.logged("term has ended", election.ErrExpired.Error()) != 1 {
			t.Errorf("%d renewals; log: %s", n, r.logs.String())
		}
	})
}
