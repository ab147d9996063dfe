package election_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

// alive reports whether the store has a session under id.
func alive(t *testing.T, s store.Store, id string) bool {
	t.Helper()
	replicas, err := s.Replicas(t.Context(), "g")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(replicas, func(r store.Replica) bool { return r.ID == id })
}

// hold takes the session of r, which has settled.
func hold(t *testing.T, r *replica) (*election.Session, func()) {
	t.Helper()
	synctest.Wait()
	s, release, err := r.Hold()
	if err != nil {
		t.Fatal(err)
	}
	return s, release
}

func TestSessionSharesTheLeaseOfATerm(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := newReplica(t, s, election.Config{Info: []byte("box 1")})
		if r.Session() != nil {
			t.Error("a session before Run")
		}
		r.start(untilEnd)
		synctest.Wait()
		session, release := hold(t, r)
		if session != r.Session() || session.ID() != r.ID() || session.Remaining() != r.Term().Remaining() || !session.Valid() {
			t.Errorf("session %s, %v left; term %v", session.ID(), session.Remaining(), r.Term().Remaining())
		}
		time.Sleep(10 * lease)
		if !session.Valid() || r.wire.count("join") != 0 {
			t.Errorf("valid %v, %d joins", session.Valid(), r.wire.count("join"))
		}
		replicas, err := s.Replicas(t.Context(), "g")
		if err != nil || len(replicas) != 1 || string(replicas[0].Info) != "box 1" {
			t.Errorf("replicas %+v, %v", replicas, err)
		}
		release()
		release() // a second time does nothing
	})
}

func TestHoldIsKeptWhateverBecomesOfTheTerm(t *testing.T) {
	for name, end := range map[string]func(*replica, *memstore.Store){
		"stop":   func(r *replica, _ *memstore.Store) { r.stop(nil) },
		"resign": func(r *replica, _ *memstore.Store) { _ = r.Resign(context.Background()) },
		"taken": func(r *replica, s *memstore.Store) {
			_ = s.Release(context.Background(), r.Term().Lease())
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				r := run(t, s, election.Config{}, untilEnd)
				time.Sleep(lease / 4)
				run(t, s, election.Config{}, untilEnd)
				session, release := hold(t, r)
				end(r, s)
				for range 100 {
					time.Sleep(lease / 10)
					synctest.Wait()
					if !session.Valid() || !alive(t, s, session.ID()) {
						t.Fatal("the held session is over")
					}
				}
				if r.leads() {
					t.Error("it still leads")
				}
				if n := r.wire.count("join"); n < 28 || n > 32 {
					t.Errorf("%d joins in ten leases", n)
				}
				if r.ID() != session.ID() {
					t.Errorf("ID %s, session %s", r.ID(), session.ID())
				}
				select {
				case <-r.done:
					t.Fatal("Run has returned under a hold")
				default:
				}
				release()
				synctest.Wait()
				before := r.wire.count("join")
				time.Sleep(lease)
				if r.wire.count("join") != before {
					t.Error("kept although nobody holds it")
				}
				if name == "stop" {
					<-r.done
					if _, _, err := r.Hold(); !errors.Is(err, election.ErrNotRunning) {
						t.Errorf("Hold after Run: %v", err)
					}
				}
			})
		})
	}
}

func TestReleaseDoesNotWaitForHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		other := run(t, s, election.Config{}, untilEnd)
		_, release := hold(t, r)
		r.stop(nil)
		synctest.Wait()
		if !other.leads() {
			t.Error("the lease was kept with the session")
		}
		release()
	})
}

func TestHoldOfAnIdleFollowerAsksTheStoreAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		r := run(t, s, election.Config{}, untilEnd)
		time.Sleep(time.Minute)
		if r.Session() != nil {
			t.Error("an idle follower knows of no session")
		}
		session, release := hold(t, r)
		defer release()
		synctest.Wait()
		if !session.Valid() || session != r.Session() || session.ID() != r.ID() {
			t.Error("not valid when the store has answered")
		}
		if got := session.Remaining(); got != span {
			t.Errorf("%v left, want %v: no more than was asked for", got, span)
		}
	})
}

func TestB55SessionIsKeptWhileAFollowerSleepsForALongerLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		run(t, s, election.Config{Lease: 30 * time.Second}, untilEnd)
		synctest.Wait()
		r := run(t, s, election.Config{Lease: 5 * time.Second}, untilEnd)
		time.Sleep(time.Second)
		session, release := hold(t, r)
		defer release()
		synctest.Wait()
		for range 600 {
			time.Sleep(100 * time.Millisecond)
			if !session.Valid() || !alive(t, s, session.ID()) {
				t.Fatal("the session is over")
			}
		}
	})
}

func TestFollowerWithAHoldCampaignsAndItsTermTakesTheSessionOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		leader := run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		r := run(t, s, election.Config{}, untilEnd)
		session, release := hold(t, r)
		defer release()
		time.Sleep(time.Minute)
		leader.stop(nil)
		synctest.Wait()
		if !r.leads() || r.Session() != session || session.Remaining() != r.Term().Remaining() {
			t.Errorf("leads %v, %v left of the session", r.leads(), session.Remaining())
		}
		joins := r.wire.count("join")
		time.Sleep(time.Minute)
		if r.wire.count("join") != joins || !session.Valid() {
			t.Error("a leader joins")
		}
	})
}

func TestHeldSessionEndsBeforeTheStoreCanEndIt(t *testing.T) {
	for _, role := range []string{"leader", "follower", "draining"} {
		t.Run(role, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				if role == "follower" {
					run(t, s, election.Config{}, untilEnd)
					synctest.Wait()
				}
				r := run(t, s, election.Config{}, untilEnd)
				synctest.Wait()
				session, release := hold(t, r)
				if role == "draining" {
					r.stop(nil)
				}
				time.Sleep(time.Second)
				r.wire.cut()
				<-session.Context().Done()
				if cause := context.Cause(session.Context()); cause != election.ErrExpired || session.Valid() {
					t.Errorf("cause %v, valid %v", cause, session.Valid())
				}
				if !alive(t, s, session.ID()) {
					t.Error("the store has ended it before")
				}
				r.wire.follow(nil)
				release()
				if role == "draining" {
					<-r.done
					return
				}
				time.Sleep(3 * lease)
				if r.ID() == session.ID() {
					t.Error("the ID of a session that ended under a hold was used again")
				}
			})
		})
	}
}

func TestErrEndedGivesANewIDWhileHoldsOnTheOldSessionLiveOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		r := run(t, s, election.Config{}, untilEnd)
		old, releaseOld := hold(t, r)
		synctest.Wait()
		if err := r.Leave(); err != nil {
			t.Fatal(err)
		}
		<-old.Context().Done()
		if cause := context.Cause(old.Context()); cause != store.ErrEnded || old.Valid() {
			t.Errorf("cause %v, valid %v", cause, old.Valid())
		}
		session, release := hold(t, r)
		synctest.Wait()
		if session.ID() == old.ID() || !session.Valid() || session.ID() != r.ID() || !alive(t, s, session.ID()) {
			t.Errorf("session %s after %s, valid %v", session.ID(), old.ID(), session.Valid())
		}
		if alive(t, s, old.ID()) {
			t.Error("the old session came back")
		}
		time.Sleep(time.Minute)
		r.stop(nil)
		time.Sleep(time.Minute)
		release()
		synctest.Wait()
		select {
		case <-r.done:
			t.Fatal("Run has returned under the old hold")
		default:
		}
		releaseOld()
		<-r.done
	})
}

func TestIdleFollowerWhoseSessionHasEndedGoesOnUnderAnotherID(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		r := run(t, s, election.Config{}, untilEnd)
		time.Sleep(time.Minute)
		id := r.ID()
		if !alive(t, s, id) {
			t.Fatal("an idle follower has no session")
		}
		if err := r.Leave(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(lease + time.Second)
		if r.ID() == id || alive(t, s, id) || !alive(t, s, r.ID()) {
			t.Errorf("ID %s after %s", r.ID(), id)
		}
		if n := r.logged("session has ended", "before="+id); n != 1 {
			t.Errorf("logged %d times", n)
		}
	})
}

func TestTermsOfOneReplicaKeepItsIDWhileNothingWasHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		id := r.ID()
		other := run(t, s, election.Config{}, untilEnd)
		for range 5 {
			_ = r.Resign(t.Context())
			time.Sleep(5 * lease) // longer than the session that the lease left behind
			_ = other.Resign(t.Context())
			synctest.Wait()
			if !r.leads() || r.ID() != id || !r.Session().Valid() {
				t.Fatalf("leads %v, ID %s after %s", r.leads(), r.ID(), id)
			}
		}
	})
}

func TestSessionIsSuspectAfterASuspendAndAskedForAtOnce(t *testing.T) {
	for _, answer := range []string{"alive", "ended", "none"} {
		t.Run(answer, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				s := memstore.New()
				run(t, s, election.Config{}, untilEnd)
				synctest.Wait()
				r := run(t, s, election.Config{}, untilEnd)
				session, release := hold(t, r)
				synctest.Wait()
				joins := r.wire.count("join")
				switch answer {
				case "ended":
					_ = r.Leave()
				case "none":
					r.wire.cut()
				}
				r.ahead.Store(int64(time.Hour))
				if session.Valid() {
					t.Error("valid although the wall clock says that it is over")
				}
				if session.Context().Err() != nil {
					t.Error("over without having asked")
				}
				doubt := time.Now()
				synctest.Wait()
				if r.wire.count("join") == joins {
					t.Error("nobody asked")
				}
				switch answer {
				case "alive":
					time.Sleep(time.Minute)
					if !session.Valid() {
						t.Error("not valid after the answer")
					}
				case "ended":
					if context.Cause(session.Context()) != store.ErrEnded {
						t.Errorf("cause %v", context.Cause(session.Context()))
					}
				case "none":
					<-session.Context().Done()
					if took := time.Since(doubt); took != lease/10 {
						t.Errorf("ended after %v, want the guard", took)
					}
				}
				release()
				r.wire.follow(nil)
			})
		})
	}
}

func TestSuspendedLeaderLosesItsTermButNotItsSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		session, release := hold(t, r)
		defer release()
		term := r.Term()
		time.Sleep(time.Second)
		r.ahead.Store(int64(time.Hour)) // only the wall clock is wrong
		await(t, lease/10, "the term ends within a guard", func() bool { return term.Context().Err() != nil })
		time.Sleep(3 * lease)
		if !session.Valid() || r.ID() != session.ID() {
			t.Error("the session ended although the store knows it")
		}
		if !r.leads() {
			t.Error("it does not lead again")
		}
	})
}

func TestHoldNeedsALedgerAndRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := newReplica(t, s, election.Config{})
		if _, release, err := r.Hold(); !errors.Is(err, election.ErrNotRunning) || release == nil {
			t.Errorf("before Run: %v", err)
		}
		e, err := election.New(leasesOnly{s}, election.Config{Group: "g"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- e.Run(ctx, untilEnd) }()
		synctest.Wait()
		if e.Term() == nil {
			t.Error("it does not lead")
		}
		if _, release, err := e.Hold(); err == nil || release == nil || !strings.Contains(err.Error(), "store.Ledger") {
			t.Errorf("without a ledger: %v", err)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// leasesOnly is a store without a ledger.
type leasesOnly struct{ store.Leases }

func TestPermanentFaultWhileASessionIsHeld(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		r := run(t, s, election.Config{}, untilEnd)
		session, release := hold(t, r)
		synctest.Wait()
		r.wire.follow(func(op string) fault { return fault{err: errWrong} })
		<-session.Context().Done()
		if cause := context.Cause(session.Context()); cause != election.ErrExpired {
			t.Errorf("cause %v", cause)
		}
		time.Sleep(2 * lease)
		release()
		<-r.done
		if !errors.Is(r.err, store.ErrPermanent) {
			t.Errorf("Run returned %v", r.err)
		}
	})
}
