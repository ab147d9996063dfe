package election_test

import (
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

// herd is a group of 300 followers, all of whom have been told that they are so many.
type herd struct {
	all []*replica
}

// newHerd returns a herd at the moment at which its leader's lease has ended. What its followers hear of the next leader is
// what hears makes of it.
func newHerd(t *testing.T, hears func(taken func() bool) func() bool) herd {
	t.Helper()
	s := memstore.New()
	l, err := s.Acquire(t.Context(), "g", store.Candidate{
		Replica: store.Replica{ID: "first"}, Nonce: "n", TTL: lease, Session: time.Hour, Start: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	var h herd
	for range 300 {
		r := newReplica(t, s, election.Config{})
		r.wire.hears = hears
		r.start(untilEnd)
		h.all = append(h.all, r)
	}
	var end time.Time
	for range 6 { // a third each: all have asked again meanwhile
		pass(lease / 3)
		g, err := s.Renew(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		end = time.Now().Add(g.TTL)
	}
	pass(time.Until(end))
	return h
}

// asked returns how many attempts there have been.
func (h herd) asked() (n int) {
	for _, r := range h.all {
		n += r.wire.count("acquire")
	}
	return n
}

// leader returns the one that leads.
func (h herd) leader(t *testing.T) (leader *replica) {
	t.Helper()
	for _, r := range h.all {
		if r.Term() != nil && leader != nil {
			t.Fatal("two lead")
		}
		if r.Term() != nil {
			leader = r
		}
	}
	if leader == nil {
		t.Fatal("nobody leads")
	}
	return leader
}

const turns = 300*4*time.Millisecond + 100*time.Millisecond // until all of a herd have had their turn

func TestAHerdDoesNotAskAtOnceWhenItsLeadersLeaseEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHerd(t, func(func() bool) func() bool { return nil }) // nothing
		before := h.asked()
		pass(15 * time.Millisecond)
		h.leader(t)
		if n := h.asked() - before; n > 50 {
			t.Errorf("%d of 300 ask within 15 ms", n)
		}
		pass(turns)
		if n := h.asked() - before; n < 250 {
			t.Errorf("%d of 300 have asked until all have had their turn", n)
		}
	})
}

func TestOfAHerdThatHearsOfTheNextLeaderOnlyThoseAskWhoComeFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHerd(t, func(taken func() bool) func() bool { return taken })
		before := h.asked()
		pass(turns)
		h.leader(t)
		if n := h.asked() - before; n > 50 {
			t.Errorf("%d of 300 ask", n)
		}
		pass(lease)
		if n := h.asked() - before; n < 300 || n > 700 {
			t.Errorf("300 have asked %d times within a lease", n)
		}
		for _, r := range h.all {
			if r.logged("session has ended") > 0 {
				t.Fatal("a follower that passed has lost its session")
			}
		}
	})
}

func TestE5OfAHerdOneLeadsWhenTheLeaseEndsThoughAllHaveHeardOfAnother(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHerd(t, func(func() bool) func() bool { return func() bool { return true } })
		pass(15 * time.Millisecond)
		h.leader(t)
	})
}

func TestE5OfAHerdOneLeadsWhenTheNextLeaderCrashesToo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		h := newHerd(t, func(taken func() bool) func() bool { return taken })
		pass(turns)
		first := h.leader(t)
		left := first.Term().UntilDeadline()
		first.wire.cut()
		pass(left + lease/100 + 30*time.Millisecond)
		if second := h.leader(t); second == first {
			t.Error("the first leads on")
		}
		first.wire.follow(nil)
	})
}
