package histories

import (
	"slices"
	"testing"

	"github.com/anishathalye/porcupine"
)

// forgeries returns copies of h in which one answer each has been replaced by a wrong one, by what is wrong.
func (h history) forgeries() map[string]history {
	forged := map[string]history{}
	forge := func(what string, i int, change func(*operation)) {
		f := slices.Clone(h)
		change(&f[i])
		forged[what] = f.prepare()
	}
	var last operation // the grant answered last before the call at hand
	for i, o := range h {
		before := slices.DeleteFunc(slices.Clone(h[:i]), func(g operation) bool {
			return g.action != acquire || g.outcome != done || g.returned >= o.called
		})
		if len(before) > 0 {
			last = before[len(before)-1]
		}
		switch {
		case o.action == commit && o.outcome == lost && last.seen.token > o.token && !h[:i].mayHaveCommitted(o):
			forge("a stale commit accepted", i, func(o *operation) { o.outcome = done })
		case o.action == acquire && o.outcome == done && last.seen.token != 0 && last.campaign != o.campaign:
			forge("a token twice", i, func(o *operation) { o.seen.token = last.seen.token })
		case o.action == readAll && o.outcome == done:
			forge("a value that nobody has written", i, func(o *operation) { o.seen.value = "0-0" })
		case o.action == position && o.outcome == done && o.seen.number > 0:
			forge("a position that nobody has committed", i, func(o *operation) { o.seen.number += 1000 })
		}
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
