package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-singleton/singleton/store"
)

var leaseRules = []rule{
	{name: "a free lease is granted for what was asked", check: func(e *env) {
		l := e.lead("a", "n1")
		if l.Group != "g" || l.Replica != "a" || l.Nonce != "n1" || l.Token == 0 || l.TTL <= 0 || l.TTL > long || l.Time.IsZero() {
			e.Fatalf("got %+v", l)
		}
	}},
	{name: "a held lease is refused and its holder named", check: func(e *env) {
		l := e.lead("a", "n1")
		leader := e.held("g", candidate("b", "n2"))
		if leader.Replica != "a" || leader.Token != l.Token || leader.Remaining <= 0 || leader.Remaining > long {
			e.Fatalf("got %+v, want a with token %d", leader, l.Token)
		}
	}},
	{name: "who is refused is told how many replicas there are, or nothing of it", check: func(e *env) {
		e.lead("a", "n1")
		for i := range 20 {
			id := fmt.Sprintf("r%02d", i)
			_, err := e.s.Acquire(e.ctx, "g", candidate(id, "n"))
			held, ok := errors.AsType[*store.HeldError](err)
			if !ok || held.Replicas != 0 && held.Replicas != i+2 {
				e.Fatalf("acquire by %s, the replica %d: %+v, %v", id, i+2, held, err)
			}
		}
	}},
	{name: "B3 the nonce of the lease is granted that lease again and extends it", check: func(e *env) {
		first := e.lead("a", "n1")
		c := candidate("a", "n1")
		c.TTL = 10 * long
		again := e.acquire("g", c)
		e.equal(again.Token, first.Token)
		if left := e.held("g", candidate("b", "n2")).Remaining; left <= long {
			e.Fatalf("%v are left, want more than before", left)
		}
	}},
	{name: "B6 of two replicas with one ID one leads", check: func(e *env) {
		e.lead("a", "n1")
		e.held("g", candidate("a", "n2"))
	}},
	{name: "B6 owners whose names run into each other are told apart", check: func(e *env) {
		l := e.lead("worker-1", "0.x")
		e.held("g", candidate("worker-10", ".x"))
		e.held("g", candidate("worker-10", "0.x")) // also with the nonce of the other
		for _, other := range []store.Lease{
			{Group: "g", Replica: "worker-10", Nonce: ".x", Token: l.Token, Grant: l.Grant},
			{Group: "g", Replica: "worker-1", Nonce: "0", Token: l.Token, Grant: l.Grant},
			{Group: "g", Replica: "worker-1", Nonce: "0.x.y", Token: l.Token, Grant: l.Grant},
		} {
			_, err := e.s.Renew(e.ctx, other)
			e.want(err, store.ErrLost)
			e.release(other)
		}
		_, err := e.s.Renew(e.ctx, l)
		e.must(err)
	}},
	{name: "B7 groups with similar names are elections of their own", check: func(e *env) {
		groups := []string{"a", "ab", "a.b", "a-b", "A"}
		for _, g := range groups {
			e.acquire(g, candidate("r", "n-"+g))
		}
		e.release(store.Lease{Group: "a", Replica: "r", Nonce: "n-a"})
		for _, g := range groups[1:] {
			e.held(g, candidate("q", "m"))
		}
		e.acquire("a", candidate("q", "m"))
	}},
	{name: "B8 the holder's duration counts", check: func(e *env) {
		e.lead("a", "n1")
		c := candidate("b", "n2")
		c.TTL = short
		if left := e.held("g", c).Remaining; left <= 10*short {
			e.Fatalf("%v are left", left)
		}
	}},
	{name: "of many candidates at once one leads", check: func(e *env) {
		var wg sync.WaitGroup
		granted := make(chan store.Lease, 20)
		for i := range 20 {
			wg.Go(func() {
				if l, err := e.s.Acquire(e.ctx, "g", candidate(fmt.Sprintf("r%d", i), fmt.Sprintf("n%d", i))); err == nil {
					granted <- l
				}
			})
		}
		wg.Wait()
		e.equal(len(granted), 1)
		e.equal(e.held("g", candidate("last", "n")).Token, (<-granted).Token)
	}},
	{name: "a lease ends by itself", check: func(e *env) {
		c := candidate("a", "n1")
		c.TTL = short
		first := e.acquire("g", c)
		second := e.eventually(candidate("b", "n2"))
		if second.Token <= first.Token {
			e.Fatalf("token %d after %d", second.Token, first.Token)
		}
		_, err := e.s.Renew(e.ctx, first)
		e.want(err, store.ErrLost)
	}},
	{name: "a lease that ended with nobody after it is lost all the same", check: func(e *env) {
		c := candidate("a", "n1")
		c.TTL = short
		l := e.acquire("g", c)
		e.awaitNoLeader()
		_, err := e.s.Renew(e.ctx, l)
		e.want(err, store.ErrLost)
	}},
	{name: "a renewal lasts from then on for the lease's duration", check: func(e *env) {
		l := e.lead("a", "n1")
		for _, minutes := range []int{10, 1, 5} { // also earlier than it would have ended
			l.TTL = time.Duration(minutes) * long
			g, err := e.s.Renew(e.ctx, l)
			e.must(err)
			var left time.Duration
			e.until(func() bool { // of several servers, a slow one is told a little later
				left = e.held("g", candidate("b", "n2")).Remaining
				return left >= g.TTL-long/2
			})
			if g.TTL <= 0 || g.TTL > l.TTL || left > g.TTL || g.Time.Before(l.Time) {
				e.Fatalf("asked for %v, granted %v at %v, %v are left", l.TTL, g.TTL, g.Time, left)
			}
		}
	}},
	{name: "B5 a late release of an old term deletes nothing", check: func(e *env) {
		old := e.lead("a", "n1")
		e.release(old)
		l := e.lead("a", "n2")
		e.release(old)
		_, err := e.s.Renew(e.ctx, l)
		e.must(err)
	}},
	{name: "B5 a release by another deletes nothing", check: func(e *env) {
		l := e.lead("a", "n1")
		e.release(store.Lease{Group: "g", Replica: "b", Nonce: "n2", Token: l.Token})
		e.release(store.Lease{Group: "g", Replica: "b", Nonce: "n1", Token: l.Token})
		e.equal(e.held("g", candidate("b", "n3")).Replica, "a")
	}},
	{name: "releasing what is not held is done", check: func(e *env) {
		e.release(store.Lease{Group: "g", Replica: "a", Nonce: "n1"})
	}},
	{name: "a release that does not know its token frees the lease", check: func(e *env) {
		e.lead("a", "n1")
		e.release(store.Lease{Group: "g", Replica: "a", Nonce: "n1"})
		e.lead("b", "n2")
	}},
	{name: "the nonce released last is refused", check: func(e *env) {
		e.release(e.lead("a", "n1"))
		_, err := e.s.Acquire(e.ctx, "g", candidate("a", "n1"))
		e.want(err, store.ErrLost)
		_, err = e.s.Leader(e.ctx, "g")
		e.want(err, store.ErrNoLeader)
		e.lead("b", "n2")
		_, err = e.s.Acquire(e.ctx, "g", candidate("a", "n1"))
		e.want(err, store.ErrLost)
	}},
	{name: "B3 the nonce of an acquire that was given up is refused when it comes late", check: func(e *env) {
		for i := range 5 { // several followers give up at once
			e.release(store.Lease{Group: "g", Replica: "a", Nonce: fmt.Sprintf("n%d", i)})
		}
		for i := range 5 {
			_, err := e.s.Acquire(e.ctx, "g", candidate("a", fmt.Sprintf("n%d", i)))
			e.want(err, store.ErrLost)
		}
		e.lead("a", "n")
	}},
	{name: "another token than the lease's does not renew it", check: func(e *env) {
		l := e.lead("a", "n1")
		l.Token++
		_, err := e.s.Renew(e.ctx, l)
		e.want(err, store.ErrLost)
	}},
	{name: "the leader is told, and that there is none", check: func(e *env) {
		_, err := e.s.Leader(e.ctx, "g")
		e.want(err, store.ErrNoLeader)
		l := e.lead("a", "n1")
		leader, err := e.s.Leader(e.ctx, "g")
		e.must(err)
		if leader.Replica != "a" || leader.Token != l.Token || leader.Remaining <= 0 || leader.Remaining > long {
			e.Fatalf("got %+v", leader)
		}
		e.release(l)
		_, err = e.s.Leader(e.ctx, "g")
		e.want(err, store.ErrNoLeader)
	}},
}

// awaitNoLeader waits until group g has none.
func (e *env) awaitNoLeader() {
	e.Helper()
	e.until(func() bool {
		_, err := e.s.Leader(e.ctx, "g")
		return err != nil
	})
}
