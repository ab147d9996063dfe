package histories

import (
	"encoding/binary"
	"slices"
)

// pending is a list of calls without an answer that may still take effect: two bytes for the place of each in the
// history, so that states can be compared. One that never takes effect just stays.
type pending string

func (p pending) places() (places []int) {
	for i := 0; i < len(p); i += 2 {
		places = append(places, int(binary.BigEndian.Uint16([]byte(p[i:i+2]))))
	}
	return places
}

func (p pending) with(i int) pending {
	return p + pending(binary.BigEndian.AppendUint16(nil, uint16(i)))
}

func (p pending) without(place int) (left pending) {
	for _, i := range p.places() {
		if i != place {
			left = left.with(i)
		}
	}
	return left
}

// suspend is s after the call at i was made.
func (h history) suspend(s state, i int) state {
	if o := h[i]; o.action == renew {
		if _, ok := s.holds(o); ok {
			s.loose = true
		}
		return s
	}
	if o := h[i]; o.action != acquire || !h.asks(s.pending, o.campaign) {
		s.pending = s.pending.with(i)
	}
	return h.tidy(s)
}

// asks tells whether an acquire of c is pending. One is kept for all: how many there are makes no difference that counts.
func (h history) asks(p pending, c campaign) bool {
	return slices.ContainsFunc(p.places(), func(i int) bool { return h[i].action == acquire && h[i].campaign == c })
}

// tidy forgets the pending calls that can have no effect any more: commits and writes of a term that is over, all of a
// campaign that is refused, and releases to which nothing is left.
func (h history) tidy(s state) state {
	var left pending
	for _, i := range s.pending.places() {
		o, ok := h[i], false
		switch o.action {
		case commit, write:
			if _, ok = s.holds(o); ok && o.action == commit {
				ok = o.number > s.last(o)
			}
		case acquire:
			ok = s.now <= o.matters && !s.refuses(o.campaign)
			s.loose = s.loose || s.owner == o.campaign // it may extend its own lease
		case release:
			ok = s.owner == o.campaign || o.again && !s.refuses(o.campaign) || h.asks(s.pending, o.campaign)
		}
		if ok {
			left = left.with(i)
		}
	}
	s.pending = left
	return s
}

// void drops the pending acquires of a campaign that has been released: they are granted nothing.
func (h history) void(s state, released campaign) state {
	var left pending
	for _, i := range s.pending.places() {
		if h[i].action != acquire || h[i].campaign != released {
			left = left.with(i)
		}
	}
	s.pending = left
	return s
}

// settle returns s and the states that it may turn into because pending calls take effect before o does.
func (h history) settle(s state, o operation) []state {
	states := []state{s}
	for n := 0; n < len(states); n++ {
		for _, i := range states[n].pending.places() {
			if next, ok := h.fire(states[n], i, o); ok && !slices.Contains(states, next) {
				states = append(states, next)
			}
		}
	}
	if o.seen.client == 0 {
		return states
	}
	// A grant that got no answer matters only to who is told of it, and here it is told.
	for _, s := range states[:len(states):len(states)] {
		if o.ghost && o.seen.token > s.token {
			states = append(states, s.haunt(o))
		}
		for _, i := range s.pending.places() {
			if a := h[i]; a.action == acquire && a.campaign.client == o.seen.client && a.campaign != s.owner {
				states = append(states, h.tidy(s.grant(a)))
			}
		}
	}
	return states
}

// grant is s after the acquire a, which gets an answer only when it is repeated, was granted the lease.
func (s state) grant(a operation) state {
	s.now = max(s.now, a.called)
	s = s.expire()
	s.owner, s.token, s.exact, s.loose = a.campaign, s.token+1, false, true
	s.earliest = s.since
	if !a.early {
		s.earliest = max(s.since, a.called) + int64(a.ttl) - slack(a.ttl)
	}
	return s
}

// haunt is s after the leader that o names was granted the lease without ever being told. Which of its campaigns that was
// is not known, nor when it gives up: that lease may end at any time.
func (s state) haunt(o operation) state {
	s = s.expire()
	s.owner, s.token, s.exact, s.loose = campaign{client: o.seen.client}, o.seen.token, true, true
	s.earliest = s.since
	return s
}

// fire returns s after the pending call at i took effect, where that can matter: acquires come last, in settle.
func (h history) fire(s state, i int, next operation) (state, bool) {
	o := h[i]
	s.now = max(s.now, o.called)
	switch o.action {
	case acquire:
		return s, false
	case release:
		if s.owner != o.campaign && (next.action != acquire || next.campaign != o.campaign) {
			return s, false
		}
		s = h.void(s.release(o), o.campaign)
	case commit, write:
		mine, ok := s.holds(o)
		if !ok || !s.lives() || o.action == commit && o.number != s.last(o)+1 {
			return s, false
		}
		s = mine.put(o)
	}
	s.pending = s.pending.without(i)
	return h.tidy(s), true
}
