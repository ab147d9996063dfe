package redlock

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-singleton/singleton/store"
)

// A commit that a minority has made when the lease has gone may be what the next leader finds: it is not called lost.
func TestACommitIsLostOnlyWhereNoServerHasIt(t *testing.T) {
	for _, c := range []struct {
		name    string
		numbers []uint64 // of the last commit; 99 is a silent server
		want    error    // errNoAnswer: nobody knows
	}{
		{"nobody has it", []uint64{5, 5, 5, 4, 5}, store.ErrLost},
		{"a majority has it", []uint64{6, 6, 5, 6, 4}, nil},
		{"a majority has gone on", []uint64{7, 7, 5, 7, 4}, store.ErrStale},
		{"one has it", []uint64{5, 5, 5, 6, 5}, errNoAnswer},
		{"one does not say", []uint64{5, 5, 5, 99, 5}, errNoAnswer},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, len(c.numbers), Config{})
				l := lease()
				for i, number := range c.numbers {
					nodes[i].ledger.Head, nodes[i].ledger.Held = head{At: point{l.Token, number}}, false
					if number == 99 {
						nodes[i].fail = errNoAnswer
					}
				}
				err := s.Commit(within(t), l, 6, nil)
				synctest.Wait()
				if c.want == errNoAnswer {
					if err == nil || store.Definite(err) {
						t.Errorf("got %v, want that nobody knows", err)
					}
				} else if !errors.Is(err, c.want) {
					t.Errorf("got %v, want %v", err, c.want)
				}
			})
		})
	}
}
