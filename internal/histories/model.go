package histories

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// slack is by how much the end of a lease may differ from what the clients' clock says: the server counts in whole
// milliseconds, by another clock.
func slack(ttl time.Duration) int64 { return int64(ttl/100 + 5*time.Millisecond) }

// state is one state that the lease and its record may be in. States are compared with ==.
type state struct {
	now int64 // it is at least so late

	owner    campaign // nobody: the zero campaign
	token    uint64   // of the last grant
	exact    bool     // false: the grant got no answer, and its token is at least this
	earliest int64    // instant at which the owner's lease can end by itself
	latest   int64    // instant at which it has
	since    int64    // instant at which the owner before may have gone
	loose    bool     // something without an answer may have extended it, or may yet: latest does not count

	value     string
	committed uint64 // token of the last commit
	number    uint64 // its number
	released  string // campaigns that will ask again, to be granted nothing: " 1.2 2.7 "

	pending pending // what may still take effect
}

func initial() state { return state{exact: true, released: " "} }

var hashSeed = maphash.MakeSeed()

// model is the object of the package documentation, for the checker. Calls without an answer are kept in the states, so
// that the checker itself only has to order the others: left to it, each would double what it has to try.
func (h history) model() porcupine.Model {
	return (&porcupine.NondeterministicModel{
		Init: func() []any { return []any{initial()} },
		Step: func(s, input, _ any) (next []any) {
			for _, n := range h.step(s.(state), input.(int)) {
				next = append(next, n)
			}
			return next
		},
		Hash:              func(s any) uint64 { return maphash.Comparable(hashSeed, s.(state)) },
		DescribeOperation: func(input, _ any) string { return h[input.(int)].String() },
		DescribeState:     func(s any) string { return s.(state).String() },
	}).ToModel()
}

// step returns the states that the call at i can lead to. None: it cannot have been answered as it was.
func (h history) step(s state, i int) (next []state) {
	o := h[i]
	if o.outcome == unknown {
		return []state{h.suspend(s, i)}
	}
	for _, s := range h.settle(s, o) {
		s.now = max(s.now, o.called)
		if s.lives() && s.now <= o.returned {
			next = append(next, s.apply(o)...)
		}
		if s = s.expire(); s.now <= o.returned {
			next = append(next, s.apply(o)...)
		}
	}
	for i, s := range next {
		if o.action == release {
			s = h.void(s, o.campaign)
		}
		next[i] = h.tidy(s)
	}
	return next
}

// lives tells whether the owner's lease, where there is one, may not have ended by itself.
func (s state) lives() bool { return s.owner == (campaign{}) || s.loose || s.now <= s.latest }

// expire is s after the owner's lease, where there is one, has ended by itself.
func (s state) expire() state {
	s.now = max(s.now, s.earliest)
	return s.vacate(s.earliest)
}

// vacate is s without the owner, where there is one, whose lease may have ended at since.
func (s state) vacate(since int64) state {
	if s.owner != (campaign{}) {
		s.owner, s.since, s.earliest, s.latest, s.loose = campaign{}, since, 0, 0, false
	}
	return s
}

// apply returns s after o took effect and was answered as it was, if it can have been.
func (s state) apply(o operation) []state {
	mine, ok := s.holds(o)
	switch o.action {
	case acquire:
		return s.acquire(o)
	case renew:
		switch {
		case !ok:
			return s.when(o, lost, answer{})
		case o.outcome == ended && s.earliest <= o.returned: // the session, which ends with the lease, was looked at last
			return []state{mine}
		}
		return mine.extend(o).when(o, done, answer{})
	case release:
		return s.release(o).when(o, done, answer{})
	case commit:
		last := s.last(o)
		switch {
		case o.number == last:
			return s.when(o, done, answer{})
		case o.number < last:
			return s.when(o, stale, answer{})
		case !ok:
			return s.when(o, lost, answer{})
		case o.number > last+1:
			return mine.when(o, gap, answer{})
		}
		return mine.put(o).when(o, done, answer{})
	case write:
		if !ok {
			return nil // nobody refuses it, and it must not be
		}
		return mine.put(o).when(o, done, answer{})
	case readAll:
		return s.when(o, done, answer{value: s.value})
	case readOwn:
		if !ok {
			return s.when(o, lost, answer{})
		}
		return mine.when(o, done, answer{value: s.value})
	case leader:
		if s.owner == (campaign{}) {
			return s.when(o, vacant, answer{})
		}
		return s.led(o, done)
	case position:
		return s.when(o, done, answer{token: s.committed, number: s.number})
	}
	panic("no such action: " + o.action)
}

func (s state) acquire(o operation) []state {
	switch {
	case s.refuses(o.campaign):
		return s.when(o, lost, answer{})
	case s.owner == o.campaign: // a repetition
		s, ok := s.bind(o.seen.token)
		if !ok {
			return nil
		}
		return s.extend(o).when(o, done, answer{token: s.token})
	case s.owner != (campaign{}):
		return s.led(o, held)
	case o.seen.token <= s.token:
		return nil
	}
	s.owner, s.token, s.exact = o.campaign, o.seen.token, true
	return s.extend(o).when(o, done, answer{token: s.token})
}

// release is s after the campaign of o has been given up.
func (s state) release(o operation) state {
	if s.owner == o.campaign {
		s = s.vacate(o.called)
	}
	if o.again && !s.refuses(o.campaign) {
		s.released += o.campaign.String() + " "
	}
	return s
}

func (s state) refuses(c campaign) bool { return strings.Contains(s.released, " "+c.String()+" ") }

// put is s after a commit or write has been applied.
func (s state) put(o operation) state {
	s.value = o.value
	if o.action == commit {
		s.committed, s.number = o.token, o.number
	}
	return s
}

// last is the number of the last commit of o's term.
func (s state) last(o operation) uint64 {
	if s.committed == o.token {
		return s.number
	}
	return 0
}

// led returns s if an answer can have named the owner as this one does.
func (s state) led(o operation, out outcome) []state {
	s, ok := s.bind(o.seen.token)
	if !ok {
		return nil
	}
	return s.when(o, out, answer{token: s.token, client: s.owner.client})
}

// when returns s if o was answered so.
func (s state) when(o operation, out outcome, seen answer) []state {
	if o.outcome != out || o.seen != seen {
		return nil
	}
	return []state{s}
}

// holds tells whether the lease that o is made under is the one that is held.
func (s state) holds(o operation) (state, bool) {
	if s.owner != o.campaign || s.owner == (campaign{}) {
		return s, false
	}
	return s.bind(o.token)
}

// bind tells whether the last grant can have had this token, and returns s if it had.
func (s state) bind(token uint64) (state, bool) {
	if token < s.token || s.exact && token != s.token {
		return s, false
	}
	s.token, s.exact = token, true
	return s, true
}

// extend is s after o has extended the owner's lease at some time between its call and its answer.
func (s state) extend(o operation) state {
	if !o.early {
		s.earliest = max(s.earliest, max(s.since, o.called)+int64(o.ttl)-slack(o.ttl))
	}
	s.latest = o.returned + int64(o.ttl) + slack(o.ttl) + o.lag
	return s
}

func (s state) String() string {
	owner, token := "nobody", fmt.Sprint(s.token)
	if s.owner != (campaign{}) {
		owner = fmt.Sprintf("%v until %.3f", s.owner, float64(s.earliest)/1e6)
		if s.loose {
			owner += " or longer"
		} else {
			owner += fmt.Sprintf(" to %.3f", float64(s.latest)/1e6)
		}
	}
	if !s.exact {
		token += " or more"
	}
	return fmt.Sprintf("[%s, token %s, value %q, position %d %d, %d pending]",
		owner, token, s.value, s.committed, s.number, len(s.pending)/2)
}
