package storetest

import (
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

var sessionRules = []rule{
	{name: "a session starts by Join and is listed with its info", check: func(e *env) {
		for _, id := range []string{"b", "a", "c"} {
			granted, err := e.s.Join(e.ctx, "g", store.Replica{ID: id, Info: []byte("about \x00" + id)}, long, true)
			e.must(err)
			if granted <= long/2 || granted > long {
				e.Fatalf("granted %v", granted)
			}
		}
		replicas, err := e.s.Replicas(e.ctx, "g")
		e.must(err)
		e.equal(len(replicas), 3)
		for i, id := range []string{"a", "b", "c"} {
			e.equal(replicas[i].ID, id)
			e.equal(string(replicas[i].Info), "about \x00"+id)
		}
	}},
	{name: "a session starts by a granted Acquire and by a held one", check: func(e *env) {
		e.lead("a", "n1")
		e.held("g", candidate("b", "n2"))
		e.equal(e.ids(), "a b ")
	}},
	{name: "a refresh without info keeps it", check: func(e *env) {
		c := candidate("a", "n1")
		c.Info = []byte("about a")
		l := e.acquire("g", c)
		_, err := e.s.Renew(e.ctx, l)
		e.must(err)
		e.sessionLeft("a")
		e.join("a", long)
		replicas, err := e.s.Replicas(e.ctx, "g")
		e.must(err)
		e.equal(string(replicas[0].Info), "about a")
	}},
	{name: "refreshing a session that is not there is refused and creates nothing", check: func(e *env) {
		_, err := e.s.Join(e.ctx, "g", store.Replica{ID: "a"}, long, false)
		e.want(err, store.ErrEnded)
		c := candidate("a", "n1")
		c.Start = false
		_, err = e.s.Acquire(e.ctx, "g", c)
		e.want(err, store.ErrEnded)
		_, err = e.s.Leader(e.ctx, "g")
		e.want(err, store.ErrNoLeader)
		e.lead("b", "n2")
		_, err = e.s.Acquire(e.ctx, "g", c)
		e.want(err, store.ErrEnded)
		e.equal(e.ids(), "b ")
	}},
	{name: "a session that is alive is refreshed by Join and Acquire", check: func(e *env) {
		e.join("a", long)
		c := candidate("a", "n1")
		c.Start = false
		l := e.acquire("g", c)
		e.release(l)
		e.lead("b", "n2")
		c.Nonce = "n3"
		e.held("g", c)
		e.sessionLeft("a")
	}},
	{name: "a session that has ended is not revived but may be started", check: func(e *env) {
		e.join("a", short)
		e.until(func() bool { return e.ids() == "" })
		e.wait(short) // of several servers, each ends it a little after it was asked, and one that still knows it may answer next
		_, err := e.s.Join(e.ctx, "g", store.Replica{ID: "a"}, long, false)
		e.want(err, store.ErrEnded)
		e.until(func() bool { return e.ids() == "" }) // of several servers, a slow one may know it a little longer still
		e.join("a", long)
		e.equal(e.ids(), "a ")
	}},
	{name: "Join only lengthens", check: func(e *env) {
		e.join("a", 10*long)
		if left := e.join("a", long); left <= 9*long || left > 10*long {
			e.Fatalf("%v are left", left)
		}
		if left := e.join("a", 20*long); left <= 19*long {
			e.Fatalf("%v are left", left)
		}
	}},
	{name: "a held Acquire only lengthens", check: func(e *env) {
		e.lead("a", "n1")
		e.join("b", 10*long)
		c := candidate("b", "n2")
		c.Session = long
		e.held("g", c)
		if left := e.sessionLeft("b"); left <= 9*long {
			e.Fatalf("%v are left", left)
		}
		c.Session = 20 * long
		e.held("g", c)
		if left := e.sessionLeft("b"); left <= 19*long {
			e.Fatalf("%v are left", left)
		}
	}},
	{name: "a granted Acquire sets the session's end to the lease's, also earlier", check: func(e *env) {
		e.join("a", 10*long)
		e.lead("a", "n1")
		e.endTogether("a")
		c := candidate("a", "n1")
		c.TTL = 20 * long
		e.acquire("g", c)
		e.endTogether("a")
	}},
	{name: "Renew sets the session's end to the lease's, also earlier", check: func(e *env) {
		l := e.lead("a", "n1")
		e.join("a", 10*long)
		_, err := e.s.Renew(e.ctx, l)
		e.must(err)
		e.endTogether("a")
		l.TTL = 20 * long
		_, err = e.s.Renew(e.ctx, l)
		e.must(err)
		e.endTogether("a")
	}},
	{name: "Renew revives no session", check: func(e *env) {
		l := e.lead("a", "n1")
		e.must(e.s.Leave(e.ctx, "g", "a"))
		_, err := e.s.Renew(e.ctx, l)
		e.want(err, store.ErrEnded)
		e.equal(e.ids(), "")
		_, err = e.s.Renew(e.ctx, store.Lease{Group: "g", Replica: "b", Nonce: "n2", Token: l.Token, Grant: l.Grant})
		e.want(err, store.ErrLost)
	}},
	{name: "the session goes on after a release", check: func(e *env) {
		e.release(e.lead("a", "n1"))
		e.equal(e.ids(), "a ")
	}},
	{name: "Leave ends a session, and again is done", check: func(e *env) {
		e.join("a", long)
		e.join("b", long)
		e.must(e.s.Leave(e.ctx, "g", "a"))
		e.must(e.s.Leave(e.ctx, "g", "a"))
		e.equal(e.ids(), "b ")
	}},
	{name: "many sessions that are over leave no trace", check: func(e *env) {
		for id := range strings.FieldsSeq(strings.Repeat("x", 3) + " p q r s t u v w y z 1 2 3 4 5") {
			e.join(id, short)
		}
		e.join("alive", long)
		e.until(func() bool { return e.ids() == "alive " })
	}},
	{name: "a wiped store knows no session", wipes: true, check: func(e *env) {
		e.lead("a", "n1")
		e.harness.Wipe(e.T)
		c := candidate("a", "n2")
		c.Start = false
		_, err := e.s.Acquire(e.ctx, "g", c)
		e.want(err, store.ErrEnded)
		e.equal(e.ids(), "")
	}},
}

// endTogether checks that the session of the leader ends when its lease does; each of the two is told in milliseconds.
func (e *env) endTogether(id string) {
	e.Helper()
	leader, err := e.s.Leader(e.ctx, "g")
	e.must(err)
	if left := e.sessionLeft(id); left > leader.Remaining+time.Millisecond+e.harness.Apart || left < leader.Remaining-30*time.Second {
		e.Fatalf("%v of the session are left, %v of the lease", left, leader.Remaining)
	}
}
