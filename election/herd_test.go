package election_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

// TestAHerdDoesNotAskAtOnceWhenItsLeadersLeaseEnds has 300 followers know that they are so many.
func TestAHerdDoesNotAskAtOnceWhenItsLeadersLeaseEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		l, err := s.Acquire(t.Context(), "g", store.Candidate{
			Replica: store.Replica{ID: "first"}, Nonce: "n", TTL: lease, Session: time.Hour, Start: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		var all []*replica
		for range 300 {
			all = append(all, run(t, s, election.Config{}, untilEnd))
		}
		asked := func() (n int) {
			for _, r := range all {
				n += r.wire.count("acquire")
			}
			return n
		}
		leads := func() (n int) {
			for _, r := range all {
				if r.Term() != nil {
					n++
				}
			}
			return n
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
		before := asked()
		pass(15 * time.Millisecond)
		if leads() != 1 {
			t.Errorf("%d lead 15 ms after the end of the lease", leads())
		}
		if n := asked() - before; n > 50 {
			t.Errorf("%d of 300 ask within 15 ms", n)
		}
		pass(1300 * time.Millisecond)
		if n := asked() - before; n < 250 {
			t.Errorf("%d of 300 have asked until all have had their turn", n)
		}
		synctest.Wait()
	})
}
