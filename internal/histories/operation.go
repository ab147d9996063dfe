package histories

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// campaign is one nonce: the how-manieth of which client, both from 1. The zero campaign is nobody.
type campaign struct{ client, round int }

func (c campaign) String() string { return fmt.Sprintf("%d.%d", c.client, c.round) }

// replica is the name of a client in the store.
func replica(client int) string { return fmt.Sprintf("r%d", client) }

// action is what a client asks for.
type action string

const (
	acquire  action = "acquire"
	renew    action = "renew"
	release  action = "release"
	commit   action = "commit"   // of a value, fenced
	write    action = "write"    // of a value, by a holder, checked by nobody
	readAll  action = "read"     // by anybody
	readOwn  action = "own read" // by a holder, checked
	leader   action = "leader"   // who holds the lease
	position action = "position"
)

// outcome is the word for an answer.
type outcome string

const (
	done    outcome = "done"
	held    outcome = "held" // by another
	lost    outcome = "lost"
	ended   outcome = "ended"
	stale   outcome = "stale"
	gap     outcome = "gap"
	vacant  outcome = "no leader"
	unknown outcome = "unknown"
)

// operation is one call and its answer.
type operation struct {
	client   int
	action   action
	campaign campaign
	token    uint64        // of the lease that it is made under; 0 for none
	number   uint64        // of a commit
	value    string        // that a commit or write puts
	ttl      time.Duration // that acquire and renew ask for

	outcome outcome
	seen    answer

	lag              int64 // ns for which the servers may keep a lease that is over
	dim, early       bool  // see Backend
	called, returned int64 // monotonic ns; math.MaxInt64 when the outcome is unknown
	again            bool  // a release of a campaign that asks again all the same
	ghost            bool  // names a leader by a grant that was never answered
	matters          int64 // until when an acquire without an answer may explain what others see
}

// answer is what a call tells about the object besides its outcome; what it does not tell is zero.
type answer struct {
	token  uint64 // granted, the leader's, or the position's
	number uint64 // the position's
	client int    // the leader
	value  string // read
}

func (o operation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", o.client, o.action)
	if o.campaign != (campaign{}) {
		fmt.Fprintf(&b, " %v", o.campaign)
	}
	if o.token != 0 {
		fmt.Fprintf(&b, " token %d", o.token)
	}
	if o.number != 0 {
		fmt.Fprintf(&b, " number %d", o.number)
	}
	if o.value != "" {
		fmt.Fprintf(&b, " value %s", o.value)
	}
	fmt.Fprintf(&b, ": %s", o.outcome)
	if o.seen.client != 0 {
		fmt.Fprintf(&b, " by %d", o.seen.client)
	}
	if o.seen.token != 0 {
		fmt.Fprintf(&b, " token %d", o.seen.token)
	}
	if o.seen.number != 0 {
		fmt.Fprintf(&b, " number %d", o.seen.number)
	}
	if o.seen.value != "" {
		fmt.Fprintf(&b, " value %s", o.seen.value)
	}
	return b.String()
}

// line is String with the times, in milliseconds since the start of the history.
func (o operation) line() string {
	until := "         "
	if o.returned != math.MaxInt64 {
		until = fmt.Sprintf("%9.3f", float64(o.returned)/1e6)
	}
	return fmt.Sprintf("%9.3f %s  %v", float64(o.called)/1e6, until, o)
}

// history is what has been recorded, by the time of the call.
type history []operation

// prepare sorts the calls, drops those that can tell nothing, and marks the releases that have to be remembered.
func (h history) prepare() history {
	h = slices.Clone(h)
	slices.SortStableFunc(h, func(a, b operation) int { return cmp.Compare(a.called, b.called) })
	for i, o := range h {
		h[i].again = o.action == release && slices.ContainsFunc(h[i:], func(later operation) bool {
			return later.action == acquire && later.campaign == o.campaign
		})
	}
	granted, known := map[campaign]int64{}, map[uint64]bool{} // when a campaign was told so last, and all tokens told
	for _, o := range h {
		if o.action == acquire && o.outcome == done {
			granted[o.campaign], known[o.seen.token] = max(granted[o.campaign], o.returned), true
		}
	}
	for i, o := range h {
		h[i].ghost = o.seen.client != 0 && !known[o.seen.token] && h.mayHaveGhost(o)
		h[i].matters = granted[o.campaign]
	}
	return slices.DeleteFunc(h, func(o operation) bool {
		if o.idle() {
			return true
		}
		if o.outcome != unknown {
			return false
		}
		switch o.action {
		case acquire:
			return o.matters == 0
		case release:
			return o.matters == 0 && !o.again
		case renew, commit, write:
			return false
		}
		return true
	})
}

// idle tells whether the answer says nothing, because it need not be that of one moment, and the call has done nothing.
func (o operation) idle() bool {
	return o.dim && (o.outcome == held || o.action == readAll || o.action == leader || o.action == position)
}

// mayHaveGhost tells whether the leader that o names has asked without an answer, and has not given that up.
func (h history) mayHaveGhost(o operation) bool {
	return slices.ContainsFunc(h, func(a operation) bool {
		return a.action == acquire && a.outcome == unknown && a.campaign.client == o.seen.client && a.called <= o.returned &&
			!slices.ContainsFunc(h, func(r operation) bool {
				return r.action == release && r.outcome == done && r.campaign == a.campaign && r.returned < o.called
			})
	})
}

// lines is the history for people.
func (h history) lines() string {
	var b strings.Builder
	b.WriteString("call ms   answer ms  client, call: answer\n")
	for _, o := range h {
		b.WriteString(o.line() + "\n")
	}
	return b.String()
}

// count returns how many calls satisfy all conditions.
func (h history) count(conditions ...func(operation) bool) (n int) {
	for _, o := range h {
		if !slices.ContainsFunc(conditions, func(holds func(operation) bool) bool { return !holds(o) }) {
			n++
		}
	}
	return n
}

func is(a action) func(operation) bool     { return func(o operation) bool { return o.action == a } }
func was(out outcome) func(operation) bool { return func(o operation) bool { return o.outcome == out } }
