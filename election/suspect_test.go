package election_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

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
				pass(time.Second)
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
				pass(3 * lease)
				if r.ID() == session.ID() {
					t.Error("the ID of a session that ended under a hold was used again")
				}
			})
		})
	}
}

// The store may grant a session that it knows for longer; an acquire that was given up, but is granted later, shortens it.
func TestSessionIsTrustedForNoLongerThanWasAskedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		r := run(t, s, election.Config{}, untilEnd)
		synctest.Wait() // it follows, with a session of several leases
		session, release := hold(t, r)
		defer release()
		synctest.Wait()
		if got := session.Remaining(); got <= 0 || got > span {
			t.Errorf("the session certainly lives for %v, want at most %v", got, span)
		}
	})
}

func TestErrEndedGivesANewIDWhileHoldsOnTheOldSessionLiveOn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		run(t, s, election.Config{}, untilEnd)
		synctest.Wait()
		r := run(t, s, election.Config{}, untilEnd)
		old, releaseOld := hold(t, r)
		t.Cleanup(releaseOld)
		synctest.Wait()
		if err := r.Leave(); err != nil {
			t.Fatal(err)
		}
		await(t, lease, "the store's answer ends the session", func() bool { return old.Context().Err() != nil })
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
		pass(time.Minute)
		r.stop(nil)
		pass(time.Minute)
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
		pass(time.Minute)
		id := r.ID()
		if !alive(t, s, id) {
			t.Fatal("an idle follower has no session")
		}
		if err := r.Leave(); err != nil {
			t.Fatal(err)
		}
		pass(lease + time.Second)
		if r.ID() == id || alive(t, s, id) || !alive(t, s, r.ID()) {
			t.Errorf("ID %s after %s", r.ID(), id)
		}
		if n := r.logged("session has ended", "before="+id); n != 1 {
			t.Errorf("logged %d times", n)
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
					pass(time.Minute)
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
		pass(time.Second)
		r.ahead.Store(int64(time.Hour)) // only the wall clock is wrong
		await(t, lease/10, "the term ends within a guard", func() bool { return term.Context().Err() != nil })
		pass(3 * lease)
		if !session.Valid() || r.ID() != session.ID() {
			t.Error("the session ended although the store knows it")
		}
		if !r.leads() {
			t.Error("it does not lead again")
		}
	})
}
