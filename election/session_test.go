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
		pass(10 * lease)
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
				pass(lease / 4)
				run(t, s, election.Config{}, untilEnd)
				session, release := hold(t, r)
				end(r, s)
				for range 100 {
					pass(lease / 10)
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
				pass(lease)
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
		pass(time.Minute)
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
		pass(time.Second)
		session, release := hold(t, r)
		defer release()
		synctest.Wait()
		for range 600 {
			pass(100 * time.Millisecond)
			if !session.Valid() || !alive(t, s, session.ID()) {
				t.Fatal("the session is over")
			}
		}
	})
}

func TestB55IdleSessionLastsWhileAFollowerSleepsForALongerLease(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		run(t, s, election.Config{Lease: time.Minute}, untilEnd)
		synctest.Wait()
		r := run(t, s, election.Config{Lease: 5 * time.Second}, untilEnd)
		pass(time.Second)
		id := r.ID()
		for range 600 {
			pass(500 * time.Millisecond)
			if r.ID() != id || !alive(t, s, id) {
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
		pass(time.Minute)
		leader.stop(nil)
		synctest.Wait()
		if !r.leads() || r.Session() != session || session.Remaining() != r.Term().Remaining() {
			t.Errorf("leads %v, %v left of the session", r.leads(), session.Remaining())
		}
		joins := r.wire.count("join")
		pass(time.Minute)
		if r.wire.count("join") != joins || !session.Valid() {
			t.Error("a leader joins")
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
			pass(5 * lease) // longer than the session that the lease left behind
			_ = other.Resign(t.Context())
			synctest.Wait()
			if !r.leads() || r.ID() != id || !r.Session().Valid() {
				t.Fatalf("leads %v, ID %s after %s", r.leads(), r.ID(), id)
			}
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
		pass(2 * lease)
		release()
		<-r.done
		if !errors.Is(r.err, store.ErrPermanent) {
			t.Errorf("Run returned %v", r.err)
		}
	})
}
