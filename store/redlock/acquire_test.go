package redlock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/store"
)

// held is an answer that somebody else holds the lease.
func held(replica string, token uint64, left time.Duration) claimed {
	return claimed{Outcome: claimHeld, Holder: holder{Replica: replica, Attempt: replica, Token: token, Remaining: left}}
}

func granted(counter, token uint64) claimed {
	return claimed{Outcome: claimGranted, Counter: counter, Token: token}
}

const none = outcome(0) // no answer

func TestAcquireByWhatNodesAnswer(t *testing.T) {
	never, ended, lost := claimed{}, claimed{Outcome: claimEnded}, claimed{Outcome: claimLost}
	grant := granted(0, 0)
	b := held("b", 5, time.Minute)
	for _, c := range []struct {
		name      string
		answers   []claimed
		want      string // nil, held, ended, lost, unknown
		withdrawn bool
	}{
		{"all grant", []claimed{grant, grant, grant}, "nil", false},
		{"a majority grants, one is silent", []claimed{grant, never, grant}, "nil", false},
		{"a majority grants, one is held", []claimed{b, grant, grant}, "nil", false},
		{"one grants, two are silent", []claimed{grant, never, never}, "unknown", true},
		{"a majority is held by one", []claimed{b, b, grant}, "held", true},
		{"a majority is held by one, one is silent", []claimed{never, b, b}, "held", true},
		{"each is held by another", []claimed{b, held("c", 6, time.Second), held("d", 7, time.Second)}, "unknown", true},
		{"one is held, one grants, one is silent", []claimed{b, grant, never}, "unknown", true},
		{"a majority knows no session", []claimed{ended, grant, ended}, "ended", true},
		{"one knows no session", []claimed{ended, grant, grant}, "nil", false},
		{"one says that the nonce was released", []claimed{lost, grant, never}, "lost", true},
		{"a minority of five is held", []claimed{b, grant, grant, b, grant}, "nil", false},
		{"two of five are held, one is silent", []claimed{b, grant, grant, b, never}, "unknown", true},
		{"one of three that answer of five knows the session", []claimed{ended, never, ended, b, never}, "ended", true},
		{"two of three that answer of five know the session", []claimed{never, never, b, grant, ended}, "ended", true},
		{"two of five know no session, and no majority answers", []claimed{ended, ended, never, never, never}, "unknown", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, len(c.answers), Config{})
				for i, a := range c.answers {
					if nodes[i].claim = a; a.Outcome == none {
						nodes[i].fail = errNoAnswer
					}
				}
				who := candidate("a")
				who.Start = false
				l, err := s.Acquire(within(t), "g", who)
				synctest.Wait()
				got := "unknown"
				held, isHeld := errors.AsType[*store.HeldError](err)
				switch {
				case err == nil:
					got = "nil"
				case isHeld:
					got = "held"
					if held.Leader.Replica != "b" || held.Leader.Token != 5 || held.Leader.Remaining != time.Minute {
						t.Errorf("held by %+v", held.Leader)
					}
				case errors.Is(err, store.ErrEnded):
					got = "ended"
				case errors.Is(err, store.ErrLost):
					got = "lost"
				case store.Definite(err):
					got = "definite"
				}
				if got != c.want {
					t.Errorf("%v, %v: want %s", l, err, c.want)
				}
				for i, n := range nodes {
					if (n.times("withdraw") > 0) != c.withdrawn {
						t.Errorf("Q4: node %d was told %d times that the attempt is over", i, n.times("withdraw"))
					}
				}
			})
		})
	}
}

// TestAcquiringAgainGivesTheLeaseThatAMajorityHolds has one server of three lose a lease, but not its token, and answer first.
func TestAcquiringAgainGivesTheLeaseThatAMajorityHolds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		for i, n := range nodes {
			n.claim, n.hold = granted(9, 9), time.Duration(i+1)*time.Millisecond
		}
		nodes[0].claim, nodes[0].settled = granted(9, 0), false
		if l, err := s.Acquire(within(t), "g", candidate("a")); err != nil || l.Token != 9 {
			t.Errorf("token %d, %v, want 9", l.Token, err)
		}
	})
}

func TestQ2TheTokenIsAboveAllThatAMajorityCanKnow(t *testing.T) {
	for _, c := range []struct {
		name    string
		answers []claimed
		floor   uint64
		want    uint64 // 0: the clock
	}{
		{"nothing is known", []claimed{granted(0, 0), granted(0, 0), granted(0, 0)}, 0, 0},
		{"the highest counter", []claimed{granted(1<<52, 0), granted(1<<52+5, 0), granted(7, 0)}, 0, 1<<52 + 6},
		{"the floor", []claimed{granted(1<<52, 0), granted(3, 0), granted(7, 0)}, 1<<52 + 9, 1<<52 + 10},
		{"the lease's own", []claimed{granted(9, 9), granted(9, 9), granted(5, 0)}, 0, 9},
		{"the lease's own, though a node has none", []claimed{granted(9, 9), granted(0, 0), granted(8, 0)}, 0, 9},
		{"another has been granted since", []claimed{granted(9, 9), granted(1<<52, 0), granted(0, 0)}, 0, 1<<52 + 1},
		{"another has got the same", []claimed{granted(1<<52, 1<<52), granted(1<<52, 0), granted(0, 0)}, 0, 1<<52 + 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				nodes[2].fail = errNoAnswer // what a majority knows is enough
				for i, a := range c.answers {
					nodes[i].claim = a
				}
				who := candidate("a")
				who.Floor = c.floor
				want := c.want
				if want == 0 {
					want = uint64(time.Now().UnixMicro())
				}
				l, err := s.Acquire(within(t), "g", who)
				if err != nil || l.Token != want {
					t.Errorf("token %d, %v, want %d", l.Token, err, want)
				}
				for i := range 2 {
					if nodes[i].times(fmt.Sprint("settle ", want)) != 1 {
						t.Errorf("node %d was asked %v", i, nodes[i].asked)
					}
				}
			})
		})
	}
}

func TestQ2AGrantWhoseTokenAMajorityRefusesIsWithdrawnAndTriedAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		nodes[0].settled, nodes[1].settled = false, false
		if _, err := s.Acquire(within(t), "g", candidate("a")); err == nil || store.Definite(err) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		for _, n := range nodes {
			if n.times("acquire") < 2 || n.times("withdraw") != n.times("acquire") {
				t.Errorf("asked %d times, withdrawn %d times", n.times("acquire"), n.times("withdraw"))
			}
		}
	})
}

func TestQ4ARepetitionThatFailsTakesNothingBack(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		nodes[0].claim, nodes[1].fail, nodes[2].fail = granted(9, 9), errNoAnswer, errNoAnswer
		if _, err := s.Acquire(within(t), "g", candidate("a")); err == nil || store.Definite(err) {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if n := nodes[0].times("withdraw"); n != 0 {
			t.Error("a lease that somebody may rely on was taken back")
		}
	})
}

func TestALateGrantGetsItsTokenToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		nodes[2].hold = time.Second
		l, err := s.Acquire(t.Context(), "g", candidate("a"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if nodes[2].times(fmt.Sprint("settle ", l.Token)) != 1 {
			t.Errorf("the node was asked %v", nodes[2].asked)
		}
	})
}

func TestAMajorityThatComesTooLateIsNone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		who := candidate("a")
		who.TTL = 20 * time.Millisecond
		for _, n := range nodes {
			n.hold = 9 * time.Millisecond // each phase; drift is 2.2 ms
		}
		if _, err := s.Acquire(within(t), "g", who); err == nil || store.Definite(err) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTheStoresTimeIsThatOfTheMiddleServer(t *testing.T) {
	now := time.Now()
	for _, c := range [][]time.Duration{{0, time.Hour, -time.Hour}, {0, time.Hour}, {0}} {
		var clocks []time.Time
		for _, d := range c {
			clocks = append(clocks, now.Add(d))
		}
		if got := median(clocks); !got.Equal(now) {
			t.Errorf("of %v got %v", c, got.Sub(now))
		}
	}
}

// TestANodeThatIsOnlySlowIsWaitedFor has one of two prompt nodes held by somebody who does not lead: the third is needed.
func TestANodeThatIsOnlySlowIsWaitedFor(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		nodes[0].claim = held("b", 0, time.Minute)
		nodes[2].hold = 200 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Acquire(ctx, "g", candidate("a")); err != nil {
			t.Errorf("got %v", err)
		}
		if n := nodes[1].times("acquire"); n != 1 {
			t.Errorf("%d tries, want one that waits for the slow node", n)
		}
	})
}

// TestWhatAGrantLeavesToDoCutsNoRenewalShort has a node grant a lease when it has been renewed, for longer, already.
func TestWhatAGrantLeavesToDoCutsNoRenewalShort(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		nodes[2].hold = 100 * time.Millisecond
		l, err := s.Acquire(within(t), "g", candidate("a"))
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
		l.TTL *= 10
		if _, err := s.Renew(within(t), l); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if n := nodes[2].times("renew"); n != 1 {
			t.Errorf("the node that is late was asked for %d renewals, want the one that counts", n)
		}
	})
}

// TestQ2AServerThatMayHaveForgottenATokenIsNotEnough has three servers up, one of which has come back with nothing: the two that
// grant first do not know the last token, the third does.
func TestQ2AServerThatMayHaveForgottenATokenIsNotEnough(t *testing.T) {
	for _, c := range []struct {
		name   string
		unsure []int
		silent bool // the third
		want   uint64
	}{
		{"one has forgotten, and the third answers later", []int{0}, false, 1<<52 + 1},
		{"all are new", []int{0, 1, 2}, false, 1<<52 + 1},
		{"one has forgotten, and the third is silent", []int{0}, true, 0},
		{"nobody has forgotten", nil, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				for _, i := range c.unsure {
					nodes[i].claim.Unsure = true
				}
				nodes[2].claim.Counter, nodes[2].hold = 1<<52, 100*time.Millisecond
				if c.silent {
					nodes[2].hold = time.Hour
				}
				want := c.want
				if want == 0 {
					want = uint64(time.Now().UnixMicro())
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if l, err := s.Acquire(ctx, "g", candidate("a")); err != nil || l.Token != want {
					t.Errorf("token %d, %v, want %d", l.Token, err, want)
				}
			})
		})
	}
}
