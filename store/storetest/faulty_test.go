package storetest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
	"github.com/go-singleton/singleton/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func lead(t *testing.T, s store.Store) store.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), "g", store.Candidate{
		Replica: store.Replica{ID: "a"}, Nonce: "n1", TTL: time.Minute, Session: time.Minute, Start: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestScriptedFaultsBefallTheCallsInTurn(t *testing.T) {
	f := storetest.NewFaulty(memstore.New())
	f.Next(storetest.Renew, storetest.None, storetest.RequestLost, storetest.ReplyLost)
	l := lead(t, f)
	var got []bool
	for range 4 {
		_, err := f.Renew(t.Context(), l)
		got = append(got, errors.Is(err, storetest.ErrUnanswered))
	}
	if want := []bool{false, true, true, false}; !slices.Equal(got, want) {
		t.Errorf("unanswered %v, want %v", got, want)
	}
	if n := f.Calls(storetest.Renew); n != 4 {
		t.Errorf("%d calls were counted", n)
	}
}

func TestSameSeedGivesSameFaults(t *testing.T) {
	outcomes := func(seed uint64) (list []bool) {
		f := storetest.NewFaulty(memstore.New())
		f.Random(seed, 0.5)
		for range 100 {
			_, err := f.Join(t.Context(), "g", store.Replica{ID: "a"}, time.Minute, true)
			list = append(list, err == nil)
		}
		return list
	}
	if !slices.Equal(outcomes(1), outcomes(1)) {
		t.Error("one seed gave two histories")
	}
	if slices.Equal(outcomes(1), outcomes(2)) {
		t.Error("two seeds gave one history")
	}
	if !slices.Contains(outcomes(1), true) || !slices.Contains(outcomes(1), false) {
		t.Error("a chance of one half gave always the same")
	}
}

func TestWhatArrivesLateIsWhatWasSent(t *testing.T) {
	inner := memstore.New()
	f := storetest.NewFaulty(inner)
	f.Next(storetest.Commit, storetest.Delayed)
	l := lead(t, f)
	ctx, cancel := context.WithCancel(t.Context())
	changes := []store.Change{{Bucket: "job", Key: "k", Value: []byte("sent")}}
	if err := f.Commit(ctx, l, 1, changes); !errors.Is(err, storetest.ErrUnanswered) {
		t.Fatal(err)
	}
	cancel()
	copy(changes[0].Value, "late")
	changes[0].Key = "other"
	if n := f.Deliver(); n != 1 {
		t.Fatalf("%d calls were delivered", n)
	}
	for r, err := range inner.Read(t.Context(), "g", nil, "job") {
		if err != nil || r.Key != "k" || string(r.Value) != "sent" {
			t.Fatalf("%s=%s, %v", r.Key, r.Value, err)
		}
	}
}

func TestSilentCallsEndWithTheirContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := storetest.NewFaulty(memstore.New())
		f.Silent(true)
		f.Cut(true)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		begin := time.Now()
		_, err := f.Leader(ctx, "g")
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
	})
}

func TestPausedCallsGoOnWhenTheyAreResumed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New()
		f := storetest.NewFaulty(inner)
		request, reply := f.Pause(storetest.Acquire), f.PauseReply(storetest.Release)
		granted := make(chan store.Lease)
		go func() { granted <- lead(t, f) }()
		<-request.Reached()
		if _, err := inner.Leader(t.Context(), "g"); !errors.Is(err, store.ErrNoLeader) {
			t.Fatalf("a paused request arrived: %v", err)
		}
		request.Resume()
		l := <-granted
		released := make(chan error)
		go func() { released <- f.Release(t.Context(), l) }()
		<-reply.Reached()
		if _, err := inner.Leader(t.Context(), "g"); !errors.Is(err, store.ErrNoLeader) {
			t.Fatalf("a request whose reply is paused did not arrive: %v", err)
		}
		reply.Resume()
		if err := <-released; err != nil {
			t.Fatal(err)
		}
	})
}

func TestPausedCallThatIsGivenUpArrivesWhenDelivered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memstore.New()
		f := storetest.NewFaulty(inner)
		p := f.Pause(storetest.Post)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := f.Post(ctx, "g", "1", []byte("m")); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		<-p.Reached()
		if n := f.Deliver(); n != 1 {
			t.Fatalf("%d calls were delivered", n)
		}
		n := 0
		for range inner.Read(t.Context(), "g", nil, store.InboxBucket) {
			n++
		}
		if n != 1 {
			t.Errorf("%d messages, want 1", n)
		}
	})
}

func TestCutLosesHintsAndItsEndGivesOne(t *testing.T) {
	f := storetest.NewFaulty(memstore.New())
	hints := 0
	if err := f.Watch(t.Context(), "g", store.InboxFilled, func() { hints++ }); err != nil {
		t.Fatal(err)
	}
	f.Cut(true)
	if err := f.Post(t.Context(), "g", "1", nil); !errors.Is(err, storetest.ErrUnanswered) {
		t.Fatal(err)
	}
	if hints != 1 {
		t.Errorf("%d hints before the end of the cut, want the first alone", hints)
	}
	f.Cut(false)
	if hints != 2 {
		t.Errorf("%d hints after the end of the cut, want 2", hints)
	}
}
