package redlock

import "testing"

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
