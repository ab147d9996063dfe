package redlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/store"
)

// readAll reads a bucket under a lease and returns how that went.
func readAll(ctx context.Context, s *Store, l store.Lease) error {
	for _, err := range s.Read(ctx, l.Group, &l, "job") {
		return err
	}
	return nil
}

func TestQ5ATakeoverWritesBackTheNewestStateOfServersThatGrantedAndLostNothing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 5, Config{})
		for i, at := range []point{{9, 9}, {4, 8}, {4, 6}, {4, 6}, {4, 5}} {
			nodes[i].ledger.Head = head{At: at, Base: point{3, 1}}
			nodes[i].hold = time.Duration(i+1) * time.Millisecond // those that do not count are the first to answer
		}
		nodes[0].ledger.Held, nodes[0].effect = false, writeLost
		nodes[1].ledger.Marker = "an earlier run"
		if err := readAll(within(t), s, lease()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		want := head{At: point{Token: 7}, Base: point{4, 6}}
		for _, n := range nodes[2:4] {
			if got := n.report().Head; got != want {
				t.Errorf("%s has state %v, want %v", n.id, got, want)
			}
		}
	})
}

// A node that was sent what was found first may have it, under the same token: a second state beside it could be taken for
// the one that counts by whoever leads next.
func TestQ5ATermWritesBackNothingElseThanWhatItFoundFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		l, err := s.Acquire(within(t), "g", candidate("a"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // what a call goes on with in the background asks the nodes, too
		for _, n := range nodes {
			n.ledger.Head, n.effect = head{At: point{4, 6}}, writeBehind
		}
		nodes[2].fail = errNoAnswer
		if err := readAll(within(t), s, l); err == nil || store.Definite(err) {
			t.Fatalf("got %v, want that nobody knows", err)
		}
		synctest.Wait()
		nodes[0].ledger.Head = head{At: point{4, 7}}
		nodes[0].effect, nodes[1].effect = writeDone, writeDone
		if err := readAll(within(t), s, l); !errors.Is(err, store.ErrGap) {
			t.Errorf("got %v, want that the term cannot go on", err)
		}
		synctest.Wait()
		nodes[0].ledger.Head = head{At: point{4, 6}}
		if err := readAll(within(t), s, l); err != nil {
			t.Errorf("got %v where what was found first is there", err)
		}
	})
}

// A server that took a higher token, of a campaign that came to nothing, never holds the lease of this term. Where its records
// are needed, because another server may have lost some, only another term can read them.
func TestQ6ATermThatNeedsAServerWithAHigherTokenEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, c := range []struct {
			repaired renewal
			over     bool // the lease
			want     error
		}{{renewLost, false, nil}, {renewOutrun, false, store.ErrGap}, {renewOutrun, true, nil}} {
			nodes, s := stubs(t, 3, Config{})
			l, err := s.Acquire(within(t), "g", candidate("a"))
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait() // what the call goes on with in the background asks the nodes, too
			nodes[0].renewal, nodes[0].repaired, nodes[0].ledger.Held = renewLost, c.repaired, false
			nodes[1].ledger.Marker = "an earlier run"
			for _, n := range nodes {
				n.ledger.Head = head{At: point{4, 6}}
			}
			synctest.Wait()
			l.TTL = time.Minute
			if _, err := s.Renew(within(t), l); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if c.over {
				time.Sleep(l.TTL)
			}
			if err := readAll(within(t), s, l); err == nil || !errors.Is(err, c.want) && (c.want != nil || store.Definite(err)) {
				t.Errorf("got %v after a repair of outcome %v, want %v", err, c.repaired, c.want)
			}
		}
	})
}

// A new group may have been made on some nodes when its first leader went: the next one makes it on all.
func TestQ6ANewGroupThatWasMadeOnAMinorityIsMadeOnAll(t *testing.T) {
	for _, c := range []struct {
		name string
		at   head // of the one node that has a ledger
		want bool
	}{
		{"nothing was committed", head{At: point{Token: 5}}, true},
		{"something was committed", head{At: point{5, 1}}, false},
		{"something had been committed before", head{At: point{Token: 5}, Base: point{4, 2}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				nodes[0].ledger.Head = c.at
				for _, n := range nodes[1:] {
					n.ledger.Marker, n.effect = "", writeBehind
				}
				err := s.restore(within(t), s.term(lease()))
				if (err == nil) != c.want {
					t.Errorf("got %v", err)
				}
				synctest.Wait()
				if made := nodes[1].times("install") > 0; made != c.want {
					t.Errorf("made on the others: %v", made)
				}
			})
		})
	}
}

// A server that gets the whole state gets the messages of a majority that has surely lost none, or nothing: it counts for that
// majority from then on.
func TestQ5ACopyTakesNoMessagesOfServersThatMayHaveLostSome(t *testing.T) {
	for _, c := range []struct {
		name   string
		silent bool // the other server that is sure
		want   bool
	}{{"a majority is sure", false, true}, {"one is sure, and another silent", true, false}} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				nodes[1].ledger.Marker = "an earlier run"
				if c.silent {
					nodes[2].fail = errNoAnswer
				}
				err := copyState(t, s)
				synctest.Wait()
				if installed := nodes[1].times("install") > 0; (err == nil) != c.want || installed != c.want {
					t.Errorf("got %v, installed: %v", err, installed)
				}
			})
		})
	}
}
