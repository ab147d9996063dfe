package redlock

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-singleton/singleton/store"
)

// copyState copies the state of the first of three stubs to the second.
func copyState(t *testing.T, s *Store) error {
	t.Helper()
	term := newTerm(lease(), nil)
	term.begin(s.links[1])
	_, err := s.bring(within(t), term, s.links[0], s.links[1], head{})
	return err
}

// A full inbox comes with a copy in as many requests as it has pages: one for each message would take longer than a lease, and
// each failed copy would leave more of them waiting.
func TestQ5ACopyBringsAFullInboxPageByPage(t *testing.T) {
	for _, c := range []struct{ has, want int }{{0, store.MaxInbox / pageRecords}, {store.MaxInbox - 2*pageRecords, 2}, {store.MaxInbox, 0}} {
		t.Run(fmt.Sprint(c.has, " are there"), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				var all []string
				for i := range store.MaxInbox {
					all = append(all, fmt.Sprintf("m%05d", i))
				}
				nodes[0].inbox, nodes[1].inbox, nodes[2].inbox = all, slices.Clone(all[:c.has]), all
				nodes[1].ledger.Marker = "an earlier run"
				if err := copyState(t, s); err != nil {
					t.Fatal(err)
				}
				if n := nodes[1].times("deliver"); n != c.want || nodes[1].times("post") > 0 {
					t.Errorf("%d requests bring the messages that are missing, want %d", n, c.want)
				}
				if !slices.Equal(nodes[1].inbox, all) {
					t.Errorf("%d messages have come, want %d", len(nodes[1].inbox), len(all))
				}
			})
		})
	}
}

// A copy of many records is many requests: that one of them gets no answer must not be the end of them all.
func TestQ5ACopyGoesOnThoughRequestsAreLost(t *testing.T) {
	for _, what := range []string{"stage", "buckets", "read", "deliver"} {
		for _, c := range []struct {
			name string
			lost int
			want bool
		}{{"once", 1, true}, {"each time", 100, false}} {
			t.Run(what+" "+c.name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					nodes, s := stubs(t, 3, Config{})
					for _, n := range nodes {
						n.lose, n.shelf, n.inbox = slices.Repeat([]string{what}, c.lost), []string{"job"}, []string{"m"}
					}
					nodes[1].ledger.Marker, nodes[1].inbox = "an earlier run", nil
					if err := copyState(t, s); (err == nil) != c.want {
						t.Errorf("got %v", err)
					}
					if done := nodes[1].times("install") > 0; done != c.want {
						t.Errorf("installed: %v", done)
					}
				})
			})
		}
	}
}
