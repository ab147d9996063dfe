package redlock

import (
	"testing"
	"testing/synctest"
)

// A leader that looks again names the state it finds once more, though one that it finds the next time may be the state before:
// what was recorded of the first does not lead from the second to it.
func TestQ5ACopyIsOnlyCompletedByWhatFollowsOnIt(t *testing.T) {
	at := func(number uint64) head { return head{At: point{7, number}} }
	step := func(from, to uint64) write { return write{From: at(from), To: at(to)} }
	for _, c := range []struct {
		name string
		redo []write
		want []uint64 // where the steps lead that were recorded after 2
	}{
		{"commits", []write{step(1, 2), step(2, 3), step(3, 4)}, []uint64{3, 4}},
		{"a commit that was sent again", []write{step(2, 3), step(2, 3), step(3, 4)}, []uint64{3, 4}},
		{"a later state that was only named again", []write{step(3, 3), step(2, 2)}, nil},
		{"that, and the commit that leads to it", []write{step(3, 3), step(2, 2), step(2, 3)}, []uint64{3}},
		{"a commit without the one before", []write{step(3, 4)}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			term := newTerm(lease(), nil)
			term.redo = c.redo
			got := term.since(at(2).At, nil, false)
			if len(got) != len(c.want) {
				t.Fatalf("got %v, want %v", got, c.want)
			}
			for i, w := range got {
				if w.To != at(c.want[i]) {
					t.Errorf("step %d leads to %v, want %d", i, w.To, c.want[i])
				}
			}
		})
	}
}

// A source goes on while it is read. Pages of a later state do only where all that leads to it was recorded: a commit that had
// been sent before the copy began, and comes late, was not.
func TestQ5ACopyIsNoStateThatItsSourceHasPassed(t *testing.T) {
	for _, c := range []struct {
		name  string
		ahead uint64
		sent  uint64 // commits that were recorded
		want  bool
	}{
		{"it stands still", 0, 0, true},
		{"it stands still, and more was sent", 0, 1, true},
		{"it makes a step that was recorded", 1, 1, true},
		{"it makes a step that was not", 1, 0, false},
		{"it makes two steps, and one was recorded", 2, 1, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				at := head{At: point{7, 2}}
				nodes[0].ledger.Head, nodes[0].shelf, nodes[0].ahead = at, []string{"job"}, c.ahead
				term := newTerm(lease(), nil)
				term.begin(s.links[1])
				for from := at; from.At.Number < 2+c.sent; from = from.next() {
					term.record(write{Lease: lease(), From: from, To: from.next()})
				}
				_, err := s.bring(within(t), term, s.links[0], s.links[1], head{At: point{7, 1}})
				synctest.Wait()
				if installed := nodes[1].times("install") > 0; (err == nil) != c.want || installed != c.want {
					t.Errorf("got %v, installed: %v", err, installed)
				}
			})
		})
	}
}
