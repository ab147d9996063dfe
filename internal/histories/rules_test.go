package histories

import (
	"math"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// The calls of the histories below. Leases last 100 ms; campaign 1.1 is the first of client 1.

func at(from, to int64, o operation) operation {
	o.client, o.ttl = max(o.client, o.campaign.client, 1), 100*time.Millisecond
	o.called, o.returned = from*int64(time.Millisecond), to*int64(time.Millisecond)
	if o.outcome == "" {
		o.outcome = done
	}
	return o
}

// open is a call from then on that gets no answer.
func open(from int64, o operation) operation {
	o.outcome = unknown
	o = at(from, 0, o)
	o.returned = math.MaxInt64
	return o
}

func nonce(client, round int) campaign { return campaign{client, round} }

func acquired(c campaign, token uint64) operation {
	return operation{action: acquire, campaign: c, seen: answer{token: token}}
}

func heldBy(c campaign, client int, token uint64) operation {
	return operation{action: acquire, campaign: c, outcome: held, seen: answer{token: token, client: client}}
}

func asked(c campaign) operation { return operation{action: acquire, campaign: c} }

func renewed(c campaign, token uint64) operation {
	return operation{action: renew, campaign: c, token: token}
}

func released(c campaign) operation { return operation{action: release, campaign: c} }

func committed(c campaign, token, number uint64, value string) operation {
	return operation{action: commit, campaign: c, token: token, number: number, value: value}
}

func wrote(c campaign, token uint64, value string) operation {
	return operation{action: write, campaign: c, token: token, value: value}
}

func saw(value string) operation { return operation{action: readAll, seen: answer{value: value}} }

func led(client int, token uint64) operation {
	return operation{action: leader, seen: answer{client: client, token: token}}
}

func placed(token, number uint64) operation {
	return operation{action: position, seen: answer{token: token, number: number}}
}

func answered(o operation, out outcome) operation {
	o.outcome = out
	return o
}

var a1, a2, b1, b2 = nonce(1, 1), nonce(1, 2), nonce(2, 1), nonce(2, 2)

func TestModelRefusesWhatNoFencedLeaseDoes(t *testing.T) {
	for name, h := range map[string]history{
		"a token twice": {
			at(0, 1, acquired(a1, 7)), at(2, 3, released(a1)), at(4, 5, acquired(b1, 7)),
		},
		"a token that goes back": {
			at(0, 1, acquired(a1, 7)), at(2, 3, released(a1)), at(4, 5, acquired(b1, 6)),
		},
		"a token that goes back after an unanswered grant": {
			at(0, 1, acquired(a1, 7)), at(2, 3, released(a1)), open(4, asked(b1)), at(5, 6, led(2, 9)), open(7, released(b1)),
			at(8, 9, acquired(a2, 8)),
		},
		"another token for the same campaign": {
			at(0, 1, acquired(a1, 7)), at(2, 3, acquired(a1, 8)),
		},
		"a second campaign while the first holds": {
			at(0, 1, acquired(a1, 7)), at(10, 20, acquired(b1, 8)),
		},
		"a second campaign before the renewed lease ends": {
			at(0, 1, acquired(a1, 7)), at(80, 81, renewed(a1, 7)), at(120, 121, acquired(b1, 8)),
		},
		"a campaign of the same client while another holds": {
			at(0, 1, acquired(a1, 7)), at(10, 20, acquired(a2, 8)),
		},
		"a grant after the release": {
			at(0, 1, acquired(a1, 7)), at(2, 3, released(a1)), at(4, 5, acquired(a1, 8)),
		},
		"a late grant after the release": {
			open(0, asked(a1)), at(2, 3, released(a1)), at(4, 5, led(1, 7)),
		},
		"a lease that outlives its time": {
			at(0, 1, acquired(a1, 7)), at(150, 151, committed(a1, 7, 1, "x")),
		},
		"a lease lost before its time": {
			at(0, 1, acquired(a1, 7)), at(50, 51, answered(renewed(a1, 7), lost)),
		},
		"a session that ends before its time": {
			at(0, 1, acquired(a1, 7)), at(50, 51, answered(renewed(a1, 7), ended)),
		},
		"no leader while one holds": {
			at(0, 1, acquired(a1, 7)), at(50, 51, operation{action: leader, outcome: vacant}),
		},
		"held by nobody": {
			at(0, 1, acquired(a1, 7)), at(2, 3, released(a1)), at(4, 5, heldBy(b1, 1, 7)),
		},
		"a stale write accepted": {
			at(0, 1, acquired(a1, 7)), at(150, 151, acquired(b1, 8)), at(152, 153, wrote(a1, 7, "x")),
		},
		"a stale commit accepted": {
			at(0, 1, acquired(a1, 7)), at(150, 151, acquired(b1, 8)), at(152, 153, committed(a1, 7, 1, "x")),
		},
		"an unanswered write of a term that is over": {
			at(0, 1, acquired(a1, 7)), open(2, wrote(a1, 7, "x")),
			at(150, 151, acquired(b1, 8)), at(152, 153, saw("")), at(154, 155, saw("x")),
		},
		"a commit lost": {
			at(0, 1, acquired(a1, 7)), at(2, 3, committed(a1, 7, 1, "x")), at(4, 5, saw("")),
		},
		"a commit applied twice (B49)": {
			at(0, 1, acquired(a1, 7)), open(2, committed(a1, 7, 1, "x")), at(3, 4, committed(a1, 7, 1, "x")),
			at(5, 6, committed(a1, 7, 2, "y")), at(7, 8, saw("x")),
		},
		"a gap accepted": {
			at(0, 1, acquired(a1, 7)), at(2, 3, committed(a1, 7, 2, "x")),
		},
		"a gap that is none": {
			at(0, 1, acquired(a1, 7)), at(2, 3, answered(committed(a1, 7, 1, "x"), gap)),
		},
		"a position that goes back": {
			at(0, 1, acquired(a1, 7)), at(2, 3, committed(a1, 7, 1, "x")), at(4, 5, placed(7, 1)), at(6, 7, placed(0, 0)),
		},
		"a value that goes back": {
			at(0, 1, acquired(a1, 7)), open(2, committed(a1, 7, 1, "x")), at(3, 4, saw("x")), at(5, 6, saw("")),
		},
		"a read of the old leader after a commit of the new one": {
			at(0, 1, acquired(a1, 7)), at(150, 151, acquired(b1, 8)), at(152, 153, committed(b1, 8, 1, "x")),
			at(154, 155, operation{action: readOwn, campaign: a1, token: 7}),
		},
	} {
		if verdict := h.prepare().judge(); verdict != porcupine.Illegal {
			t.Errorf("%s: %v\n%s", name, verdict, h.lines())
		}
	}
}

func TestModelAcceptsWhatAFencedLeaseMayDo(t *testing.T) {
	for name, h := range map[string]history{
		"an unanswered acquire that took a token": {
			at(0, 1, acquired(a1, 7)), at(2, 3, released(a1)), open(4, asked(b1)),
			at(5, 6, heldBy(a2, 2, 8)), at(120, 121, acquired(a2, 9)),
		},
		"an unanswered acquire that nobody sees": {
			open(0, asked(a1)), at(2, 3, acquired(b1, 1)),
		},
		"an unanswered acquire repeated": {
			open(0, asked(a1)), at(5, 6, led(1, 7)), at(8, 9, acquired(a1, 7)), at(10, 11, committed(a1, 7, 1, "x")),
		},
		"an unanswered acquire that arrives after a whole term of another": {
			open(0, asked(a1)), at(5, 6, acquired(b1, 7)), at(7, 8, released(b1)), at(9, 10, heldBy(b2, 1, 8)),
		},
		"a duplicate of an acquire that takes the lease again after its end": {
			open(0, asked(a1)), at(1, 2, acquired(a1, 7)),
			at(150, 151, answered(renewed(a1, 7), lost)), at(152, 153, led(1, 8)),
			at(154, 155, answered(committed(a1, 7, 1, "x"), lost)),
		},
		"an unanswered commit applied late, before the release": {
			at(0, 1, acquired(a1, 7)), open(2, committed(a1, 7, 1, "x")), at(3, 4, saw("")), open(5, released(a1)),
			at(6, 7, saw("x")), at(8, 9, acquired(b1, 8)),
		},
		"an unanswered commit that is never applied": {
			at(0, 1, acquired(a1, 7)), open(2, committed(a1, 7, 1, "x")), at(3, 4, released(a1)), at(5, 6, saw("")),
		},
		"two unanswered commits": {
			at(0, 1, acquired(a1, 7)), open(2, committed(a1, 7, 1, "x")),
			open(3, committed(a1, 7, 2, "y")), at(4, 5, placed(7, 2)), at(6, 7, saw("y")),
		},
		"a commit that arrives after the next (B49)": {
			at(0, 1, acquired(a1, 7)), open(2, committed(a1, 7, 1, "x")), at(3, 4, committed(a1, 7, 1, "x")),
			at(5, 6, committed(a1, 7, 2, "y")), at(7, 8, saw("y")), at(9, 10, answered(committed(a1, 7, 1, "x"), stale)),
		},
		"the last commit answered again after the end of the lease": {
			at(0, 1, acquired(a1, 7)), open(2, committed(a1, 7, 1, "x")),
			at(150, 151, acquired(b1, 8)), at(152, 153, committed(a1, 7, 1, "x")),
		},
		"a commit sent three times, the first of them applied before the end of the lease": {
			at(0, 1, acquired(a1, 7)), open(50, committed(a1, 7, 1, "x")), open(120, committed(a1, 7, 1, "x")),
			at(150, 151, committed(a1, 7, 1, "x")),
		},
		"an unanswered release": {
			at(0, 1, acquired(a1, 7)), open(2, released(a1)), at(3, 4, heldBy(b1, 1, 7)), at(5, 6, acquired(b1, 8)),
		},
		"an unanswered release that is not done": {
			at(0, 1, acquired(a1, 7)), open(2, released(a1)), at(50, 51, heldBy(b1, 1, 7)), at(120, 121, acquired(b1, 8)),
		},
		"a lease that ends a few milliseconds early by another clock": {
			at(0, 1, acquired(a1, 7)), at(97, 98, acquired(b1, 8)),
		},
		"an unanswered renewal that came": {
			at(0, 1, acquired(a1, 7)), open(90, renewed(a1, 7)), at(150, 151, committed(a1, 7, 1, "x")),
		},
		"an unanswered renewal that did not": {
			at(0, 1, acquired(a1, 7)), open(90, renewed(a1, 7)), at(120, 121, acquired(b1, 8)),
		},
		"a released campaign that asks again and is refused": {
			at(0, 1, acquired(a1, 7)), open(2, released(a1)), at(4, 5, answered(asked(a1), lost)),
		},
		"a stale commit refused": {
			at(0, 1, acquired(a1, 7)), at(150, 151, acquired(b1, 8)), at(152, 153, answered(committed(a1, 7, 1, "x"), lost)),
		},
	} {
		if verdict := h.prepare().judge(); verdict != porcupine.Ok {
			t.Errorf("%s: %v\n%s", name, verdict, h.lines())
		}
	}
}
