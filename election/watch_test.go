package election_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

// observe collects what Watch yields, and returns it and forgets it.
func observe(t *testing.T, s store.Leases) (seen func() string) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	var names []string
	go func() {
		defer close(done)
		for l, err := range election.Watch(ctx, s, "g") {
			if err != nil {
				names = append(names, err.Error())
				continue
			}
			name, _, _ := strings.Cut(l.Replica, "-")
			names = append(names, "<"+name+">")
		}
		names = append(names, "end")
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return func() string {
		synctest.Wait()
		got := strings.Join(names, " ")
		names = nil
		return got
	}
}

func TestWatchYieldsTheLeaderAndEachChange(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		seen := observe(t, s)
		expect := func(want string) {
			t.Helper()
			if got := seen(); got != want {
				t.Fatalf("seen %q, want %q", got, want)
			}
		}
		expect("<>")
		a := run(t, s, election.Config{ID: "a"}, untilEnd)
		pass(time.Second)
		expect("<a>")
		b := run(t, s, election.Config{ID: "b"}, untilEnd)
		pass(10 * lease)
		expect("")
		a.stop(nil)
		pass(time.Second)
		if got := seen(); got != "<b>" && got != "<> <b>" {
			t.Fatalf("seen %q", got)
		}
		_ = b.Resign(t.Context()) // the same replica leads again, with another token
		pass(5 * time.Second)
		expect("<> <b>")
		b.wire.cut() // a crash, and nobody follows
		pass(10 * time.Minute)
		expect("<>")
		b.wire.follow(nil)
		pass(lease)
		expect("<b>")
	})
}

func TestWatchRetriesSilentlyAndEndsWithAPermanentFault(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := newWire(memstore.New())
		w.follow(func(string) fault { return fault{err: errReset} })
		seen := observe(t, w)
		pass(10 * time.Minute)
		if got := seen(); got != "" {
			t.Errorf("seen %q", got)
		}
		if n := w.count("leader"); n > 300 {
			t.Errorf("%d questions in ten minutes without an answer", n)
		}
		w.follow(nil)
		pass(6 * time.Second)
		if got := seen(); got != "<>" {
			t.Errorf("seen %q", got)
		}
		w.follow(func(string) fault { return fault{err: errWrong} })
		pass(6 * time.Second)
		if got := seen(); got != errWrong.Error()+" end" {
			t.Errorf("seen %q", got)
		}
	})
}

func TestWatchStopsWhenItsCallerDoes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		for l, err := range election.Watch(t.Context(), s, "g") {
			if err != nil || l != (store.Leader{}) {
				t.Errorf("%+v, %v", l, err)
			}
			break
		}
	})
}

func TestWatchAsksSeldom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		w := newWire(s)
		observe(t, w)
		pass(10 * lease)
		if n := w.count("leader"); n > 15 {
			t.Errorf("%d questions in ten leases", n)
		}
	})
}

func TestLeaderAsksTheStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := newReplica(t, s, election.Config{})
		if _, err := r.Leader(t.Context()); !errors.Is(err, store.ErrNoLeader) {
			t.Errorf("Leader: %v", err)
		}
		r.start(untilEnd)
		synctest.Wait()
		if l, err := r.Leader(t.Context()); err != nil || l.Replica != r.ID() || l.Token != r.Term().Token() {
			t.Errorf("Leader: %+v, %v", l, err)
		}
	})
}
