package histories

import (
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// forgeries returns copies of h in which one answer each has been replaced by a wrong one, by what is wrong.
func (h history) forgeries() map[string]history {
	type forgery struct {
		place int
		forge func(*operation)
	}
	found := map[string]forgery{} // the last of each kind
	for i, o := range h {
		var last operation // the grant answered before this call
		for _, g := range h[:i] {
			if g.action == acquire && g.outcome == done && g.returned < o.called {
				last = g
			}
		}
		switch {
		case o.action == commit && o.outcome == lost && last.seen.token > o.token && !h[:i].mayHaveCommitted(o):
			found["a stale commit accepted"] = forgery{i, func(o *operation) { o.outcome = done }}
		case o.action == acquire && o.outcome == done && last.seen.token != 0 && last.campaign != o.campaign:
			found["a token twice"] = forgery{i, func(o *operation) { o.seen.token = last.seen.token }}
		case (o.action == readAll || o.action == readOwn) && o.outcome == done:
			found["a value that nobody has written"] = forgery{i, func(o *operation) { o.seen.value = "0-0" }}
		case o.action == position && o.outcome == done && o.seen.number > 0:
			found["a position that nobody has committed"] = forgery{i, func(o *operation) { o.seen.number += 1000 }}
		}
	}
	forged := map[string]history{}
	for what, f := range found {
		copied := slices.Clone(h)
		f.forge(&copied[f.place])
		forged[what] = copied.prepare()
	}
	return forged
}

// mayHaveCommitted tells whether an earlier send of o, which is then rightly answered again, got no answer.
func (h history) mayHaveCommitted(o operation) bool {
	return slices.ContainsFunc(h, func(e operation) bool {
		return e.action == commit && e.outcome == unknown && e.campaign == o.campaign && e.number == o.number
	})
}

// refuseForgeries shows that the verdict on h means something: one wrong answer among hundreds is found. It returns how many it
// has tried.
func (h history) refuseForgeries(t *testing.T) int {
	t.Helper()
	forgeries := h.forgeries()
	for what, forged := range forgeries {
		if verdict := forged.judge(); verdict != porcupine.Illegal {
			t.Errorf("the same history with %s: %v", what, verdict)
		}
	}
	return len(forgeries)
}
