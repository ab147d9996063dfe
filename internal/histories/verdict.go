package histories

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// patience is how long the checker may take for a history; one that it has not decided by then proves nothing.
const patience = 20 * time.Second

// around is how many calls a failing test prints before the first that has no place.
const around = 60

// operations is h for the checker, whose inputs are places in h. A call without an answer only begins to be pending.
func (h history) operations() []porcupine.Operation {
	operations := make([]porcupine.Operation, len(h))
	for i, o := range h {
		operations[i] = porcupine.Operation{ClientId: o.client - 1, Input: i, Call: o.called, Return: o.returned}
		if o.outcome == unknown {
			operations[i].Return = o.called
		}
	}
	return operations
}

// judge decides whether the object of the package documentation could have given these answers.
func (h history) judge() porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(h.model(), h.operations(), patience)
}

// explain judges again, leaves the whole history among the test's artifacts and prints where the order breaks.
func (h history) explain(t *testing.T) {
	t.Helper()
	_, info := porcupine.CheckOperationsVerbose(h.model(), h.operations(), patience)
	dir := t.ArtifactDir()
	if err := os.WriteFile(filepath.Join(dir, "history.txt"), []byte(h.lines()), 0o600); err != nil {
		t.Error(err)
	}
	if err := porcupine.VisualizePath(h.model(), info, filepath.Join(dir, "history.html")); err != nil {
		t.Error(err)
	}
	placed := map[int]bool{} // the longest order that was found
	var longest []int
	for _, order := range info.PartialLinearizations()[0] {
		if len(order) > len(longest) {
			longest = order
		}
	}
	for _, i := range longest {
		placed[i] = true
	}
	first := len(h)
	for i := range h {
		if !placed[i] {
			first = i
			break
		}
	}
	from, to := max(0, first-around), min(len(h), first+around/4)
	t.Logf("calls %d to %d of %d; the first that no order has a place for is call %d; all are in %s, kept with -artifacts\n%s",
		from+1, to, len(h), first+1, dir, h[from:to].lines())
	if first < len(h) {
		t.Logf("no place for: %s", h[first].line())
	}
}
