package sim

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/store"
)

// leases is what an observer between the replicas and the store knows of lease and sessions: from what the store was
// asked and has answered, not from what it keeps.
type leases struct {
	fail     func(format string, args ...any)
	sessions map[string]time.Time // when each ends, unless it is refreshed
	births   map[string]int       // how often one was started: a late duplicate may start one anew on which nothing lives
	lease    store.Lease          // the last that was granted
	held     bool                 // it has not been released
	end      time.Time            // of the lease, unless it is renewed
	highest  uint64               // token
	grants   int                  // terms
}

func newLeases(fail func(string, ...any)) *leases {
	return &leases{fail: fail, sessions: make(map[string]time.Time), births: make(map[string]int)}
}

// holds reports whether the lease of a token is not over at that time.
func (l *leases) holds(token uint64, at time.Time) bool {
	return l.held && l.lease.Token == token && at.Before(l.end)
}

// alive reports whether the nth session of a replica is not over at that time.
func (l *leases) alive(replica string, n int, at time.Time) bool {
	return l.births[replica] == n && at.Before(l.sessions[replica])
}

// set starts or refreshes a session.
func (l *leases) set(replica string, end time.Time) {
	if _, alive := l.sessions[replica]; !alive {
		l.births[replica]++
	}
	l.sessions[replica] = end
}

// expire drops what is over: it stays so, though the store's clock goes back.
func (l *leases) expire(now time.Time) {
	l.held = l.held && now.Before(l.end)
	maps.DeleteFunc(l.sessions, func(_ string, end time.Time) bool { return !now.Before(end) })
}

// reload follows a store that has lost records: what it does not know any more is over. Tokens grow all the same.
func (l *leases) reload(st store.Store, now time.Time) {
	leader, err := st.Leader(context.Background(), group)
	l.held = err == nil && leader.Token == l.lease.Token
	l.end = now.Add(leader.Remaining)
	replicas, _ := st.Replicas(context.Background(), group)
	maps.DeleteFunc(l.sessions, func(id string, _ time.Time) bool {
		return !slices.ContainsFunc(replicas, func(r store.Replica) bool { return r.ID == id })
	})
}

// observe follows a call that the store has answered.
func (l *leases) observe(c line.Call, v any, err error, now time.Time) {
	l.expire(now)
	held, isHeld := errors.AsType[*store.HeldError](err)
	switch {
	case c.Op == "acquire" && isHeld:
		if !l.holds(held.Leader.Token, now) {
			l.fail("the store says that %s holds the lease, which is over", held.Leader.Replica)
		}
		l.lengthen(c.Candidate.ID, now.Add(c.Candidate.Session))
	case err != nil:
	case c.Op == "acquire":
		l.granted(v.(store.Lease), now)
	case c.Op == "renew":
		if !l.holds(c.Lease.Token, now) {
			l.fail("a lease is renewed that is over: token %d of %s", c.Lease.Token, c.Lease.Replica)
		}
		l.end = now.Add(v.(store.Grant).TTL)
		l.set(c.Lease.Replica, l.end)
	case c.Op == "release":
		if l.lease.Nonce == c.Lease.Nonce && l.lease.Replica == c.Lease.Replica {
			l.held = false
		}
	case c.Op == "join":
		l.lengthen(c.About, now.Add(v.(time.Duration)))
	case c.Op == "leave":
		delete(l.sessions, c.About)
	}
}

func (l *leases) granted(g store.Lease, now time.Time) {
	switch {
	case l.holds(g.Token, now) && l.lease.Nonce == g.Nonce:
	case l.held && now.Before(l.end):
		l.fail("%s is granted a lease that %s holds", g.Replica, l.lease.Replica)
	case g.Token <= l.highest:
		l.fail("%s is granted token %d after %d", g.Replica, g.Token, l.highest)
	default:
		l.grants++
	}
	l.lease, l.held, l.end = g, true, now.Add(g.TTL)
	l.highest = max(l.highest, g.Token)
	l.set(g.Replica, l.end)
}

func (l *leases) lengthen(replica string, end time.Time) {
	if end.After(l.sessions[replica]) {
		l.set(replica, end)
	}
}
