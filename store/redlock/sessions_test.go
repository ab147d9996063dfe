package redlock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/store"
)

func TestASessionThatIsPromisedIsStartedWhereItIsMissingAndNotCalledEnded(t *testing.T) {
	ask := func(t *testing.T, s *Store, call string) error {
		var err error
		if call == "acquire" {
			who := candidate("a")
			who.Start = false
			_, err = s.Acquire(within(t), "g", who)
		} else {
			_, err = s.Join(within(t), "g", store.Replica{ID: "a"}, 10*time.Second, false)
		}
		synctest.Wait()
		return err
	}
	for _, call := range []string{"acquire", "join"} {
		t.Run(call, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				if _, err := s.Join(within(t), "g", store.Replica{ID: "a"}, 10*time.Second, true); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				nodes[0].claim = held("b", 5, time.Minute)
				for _, n := range nodes[1:] { // one was away, the other has restarted and may have forgotten it
					n.claim, n.left = claimed{Outcome: claimEnded}, 0
				}
				nodes[2].up = time.Second
				before := nodes[1].times("join true")
				if err := ask(t, s, call); err == nil || store.Definite(err) {
					t.Errorf("got %v, want that nobody knows", err)
				}
				if got := nodes[1].times("join true"); got != before+1 {
					t.Errorf("started %d times where it was missing, want once", got-before)
				}
				time.Sleep(10 * time.Second)
				if err := ask(t, s, call); !errors.Is(err, store.ErrEnded) {
					t.Errorf("got %v when nothing is promised any more, want ErrEnded", err)
				}
				if got := nodes[1].times("join true"); got != before+1 {
					t.Error("a session that has ended was started again")
				}
			})
		})
	}
}

// A granted lease ends the session with it, also earlier: later than that, nobody may have it started again.
func TestALeaseShortensWhatIsPromised(t *testing.T) {
	bubble(t, func(t *testing.T) {
		_, s := stubs(t, 3, Config{})
		if _, err := s.Join(within(t), "g", store.Replica{ID: "a"}, time.Minute, true); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Acquire(within(t), "g", candidate("a")); err != nil { // for 10 s
			t.Fatal(err)
		}
		synctest.Wait()
		time.Sleep(10 * time.Second)
		if s.lives("g", "a") {
			t.Error("the session outlives the lease")
		}
	})
}

func TestANodeThatAnswersLateIsGivenTheSessionToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		nodes[0].claim, nodes[1].claim, nodes[2].claim = held("b", 5, time.Minute), held("b", 5, time.Minute), claimed{Outcome: claimEnded}
		nodes[2].hold = 500 * time.Millisecond
		if _, err := s.Acquire(within(t), "g", candidate("a")); !errors.As(err, new(*store.HeldError)) {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if nodes[2].times("join true") != 1 {
			t.Errorf("the node was asked %v", nodes[2].asked)
		}
	})
}

// Only a grant shortens a session: an attempt whose token too few nodes take leaves it as it is.
func TestAnAttemptThatFailsShortensNoSession(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		nodes[0].settled, nodes[1].settled = false, false
		if _, err := s.Acquire(within(t), "g", candidate("a")); err == nil {
			t.Fatal("it was granted")
		}
		synctest.Wait()
		for i, n := range nodes {
			if n.times("renew") != 0 {
				t.Errorf("node %d was asked to set the session's end", i)
			}
		}
		for _, n := range nodes {
			n.settled = true
		}
		nodes[2].hold = 100 * time.Millisecond // it grants late, and ends the session with the lease all the same
		if _, err := s.Acquire(within(t), "g", candidate("a")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		synctest.Wait()
		for i, n := range nodes {
			if n.times("renew") == 0 {
				t.Errorf("node %d was not told that the session ends with the lease", i)
			}
		}
	})
}
