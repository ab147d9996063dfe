package storetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

// scenario is one method as the fault rules use it: a call that is repeated until it is answered, and what happens after
// that before a late copy of it arrives.
type scenario struct {
	method  Method
	name    string
	prepare func(e *env)
	call    func(e *env) error
	done    func(e *env) bool // its effect can be seen; nil where there is none
	later   func(e *env)
	started bool // a late copy may start a session, which nobody refreshes
}

var scenarios = []scenario{
	{method: Acquire, name: "then another leads",
		call: func(e *env) error { return e.try(candidate("a", "n1")) },
		done: func(e *env) bool { return e.leads("a") },
		later: func(e *env) {
			e.release(store.Lease{Group: "g", Replica: "a", Nonce: "n1"})
			e.lead("b", "n2")
		}},
	{method: Acquire, name: "then it leads on and commits",
		call:  func(e *env) error { return e.try(candidate("a", "n1")) },
		done:  func(e *env) bool { return e.leads("a") },
		later: func(e *env) { e.commit(e.lead("a", "n1"), 1, put("job", "x", "1")) }},
	{method: Acquire, name: "then it has released and nobody leads",
		call:  func(e *env) error { return e.try(candidate("a", "n1")) },
		done:  func(e *env) bool { return e.leads("a") },
		later: func(e *env) { e.release(store.Lease{Group: "g", Replica: "a", Nonce: "n1"}) }},
	{method: Acquire, name: "while another leads, then it has left",
		prepare: func(e *env) { e.lead("b", "n2") },
		call: func(e *env) error {
			err := e.try(candidate("a", "n1"))
			if store.Definite(err) {
				return nil
			}
			return err
		},
		done:    func(e *env) bool { return strings.Contains(e.ids(), "a ") },
		later:   func(e *env) { e.must(e.s.Leave(e.ctx, "g", "a")) },
		started: true},
	{method: Renew, name: "then another leads",
		prepare: func(e *env) { e.lead("a", "n1") },
		call:    func(e *env) error { return e.renew() },
		done:    func(e *env) bool { return e.leaderLeft() > 5*long },
		later: func(e *env) {
			e.release(store.Lease{Group: "g", Replica: "a", Nonce: "n1"})
			e.lead("b", "n2")
		}},
	{method: Renew, name: "then its session has ended",
		prepare: func(e *env) { e.lead("a", "n1") },
		call:    func(e *env) error { return e.renew() },
		done:    func(e *env) bool { return e.leaderLeft() > 5*long },
		later:   func(e *env) { e.must(e.s.Leave(e.ctx, "g", "a")) }},
	{method: Release, name: "then the same process leads again",
		prepare: func(e *env) { e.lead("a", "n1") },
		call:    func(e *env) error { return e.s.Release(e.ctx, store.Lease{Group: "g", Replica: "a", Nonce: "n1"}) },
		done:    func(e *env) bool { return !e.leads("a") },
		later:   func(e *env) { e.commit(e.lead("a", "n2"), 1) }},
	{method: Join, name: "that starts, then it is refreshed",
		call:  func(e *env) error { return e.joins("a", true) },
		done:  func(e *env) bool { return e.ids() == "a " },
		later: func(e *env) { e.must(e.joins("a", false)) }},
	{method: Join, name: "that starts, then it has ended",
		call:    func(e *env) error { return e.joins("a", true) },
		done:    func(e *env) bool { return e.ids() == "a " },
		later:   func(e *env) { e.must(e.s.Leave(e.ctx, "g", "a")) },
		started: true},
	{method: Join, name: "that refreshes, then it has ended",
		prepare: func(e *env) { e.join("a", long) },
		call:    func(e *env) error { return e.joins("a", false) },
		later:   func(e *env) { e.must(e.s.Leave(e.ctx, "g", "a")) }},
	{method: Leave, name: "then the process has another session",
		prepare: func(e *env) { e.join("a-1", long) },
		call:    func(e *env) error { return e.s.Leave(e.ctx, "g", "a-1") },
		done:    func(e *env) bool { return e.ids() == "" },
		later:   func(e *env) { e.join("a-2", long) }},
	{method: Commit, name: "B49 then it has committed more",
		prepare: func(e *env) { e.commit(e.lead("a", "n1"), 1, put("job", "x", "1"), put("job", "old", "1")) },
		call:    func(e *env) error { return e.second() },
		done:    func(e *env) bool { return e.records("job") == "x=2 " },
		later:   func(e *env) { e.commit(e.lead("a", "n1"), 3, put("job", "x", "3"), put("job", "old", "3")) }},
	{method: Commit, name: "then another leads and has committed",
		prepare: func(e *env) { e.commit(e.lead("a", "n1"), 1, put("job", "x", "1"), put("job", "old", "1")) },
		call:    func(e *env) error { return e.second() },
		done:    func(e *env) bool { return e.records("job") == "x=2 " },
		later: func(e *env) {
			e.release(store.Lease{Group: "g", Replica: "a", Nonce: "n1"})
			e.commit(e.lead("b", "n2"), 1, put("job", "x", "b"))
		}},
	{method: Post, name: "then another is posted",
		call:  func(e *env) error { return e.s.Post(e.ctx, "g", "1", []byte("one")) },
		done:  func(e *env) bool { return e.records(store.InboxBucket) == "1=one " },
		later: func(e *env) { e.post("2", "two") }},
	{method: Leader, name: "",
		prepare: func(e *env) { e.lead("a", "n1") },
		call:    func(e *env) error { _, err := e.s.Leader(e.ctx, "g"); return err }},
	{method: Replicas, name: "",
		prepare: func(e *env) { e.lead("a", "n1") },
		call:    func(e *env) error { _, err := e.s.Replicas(e.ctx, "g"); return err }},
	{method: Position, name: "",
		prepare: func(e *env) { e.commit(e.lead("a", "n1"), 1) },
		call:    func(e *env) error { _, _, err := e.s.Position(e.ctx, "g"); return err }},
	{method: Read, name: "",
		prepare: func(e *env) { e.commit(e.lead("a", "n1"), 1, put("job", "x", "1"), put("job", "y", "2")) },
		call:    func(e *env) error { _, err := e.read(nil, "job"); return err }},
}

// faultRules are each fault on each scenario, and more.
func faultRules() []rule {
	var rules []rule
	for _, s := range scenarios {
		for _, fault := range []Fault{RequestLost, ReplyLost, Delayed, Duplicated} {
			name := strings.TrimSpace(fmt.Sprintf("%s %s", s.method, s.name))
			rules = append(rules, rule{name: fmt.Sprintf("%s, %v", name, fault), check: func(e *env) { s.suffer(e, fault) }})
		}
	}
	return append(rules, moreFaultRules...)
}

// suffer makes the call of s suffer a fault, repeats it until it is answered, and checks what the contract promises: it
// was done once, the repetition is answered as the first would have been, and a copy that comes late changes nothing.
func (s *scenario) suffer(e *env, fault Fault) {
	if s.prepare != nil {
		s.prepare(e)
	}
	before := e.state()
	faulty := NewFaulty(e.s)
	faulty.Next(s.method, fault)
	e.s = faulty
	err := s.call(e)
	e.equal(err == nil, fault == Duplicated)
	if err != nil && store.Definite(err) {
		e.Fatalf("what got no answer is said to be surely not done: %v", err)
	}
	if fault == RequestLost || fault == Delayed {
		e.equal(e.state(), before)
	}
	if s.done != nil {
		e.equal(s.done(e), fault == ReplyLost || fault == Duplicated)
	}
	for range 2 {
		e.must(s.call(e)) // the repetition, and one more
	}
	if s.done != nil {
		e.equal(s.done(e), true)
	}
	once := e.state()
	if s.later != nil {
		s.later(e)
		once = e.state()
	}
	faulty.Deliver()
	after := e.state()
	if s.started {
		once, after = withoutSessions(once), withoutSessions(after)
	}
	e.equal(after, once)
}

func withoutSessions(state string) string {
	parts := strings.Split(state, "; ")
	return strings.Join(append(parts[:1:1], parts[2:]...), "; ")
}

var moreFaultRules = []rule{
	{name: "B3 an acquire whose reply was lost is the same lease when it is repeated", check: func(e *env) {
		faulty := NewFaulty(e.s)
		faulty.Next(Acquire, ReplyLost)
		e.s = faulty
		e.want(e.try(candidate("a", "n1")), ErrUnanswered)
		leader, err := e.s.Leader(e.ctx, "g")
		e.must(err)
		e.equal(e.lead("a", "n1").Token, leader.Token)
	}},
	{name: "B3 an acquire that is given up leaves no lease, however late it arrives", check: func(e *env) {
		faulty := NewFaulty(e.s)
		e.s = faulty
		for i, fault := range []Fault{RequestLost, ReplyLost, Delayed} {
			nonce := fmt.Sprintf("n%d", i)
			faulty.Next(Acquire, fault)
			e.want(e.try(candidate("a", nonce)), ErrUnanswered)
			e.release(store.Lease{Group: "g", Replica: "a", Nonce: nonce})
			faulty.Deliver()
			_, err := e.s.Leader(e.ctx, "g")
			e.want(err, store.ErrNoLeader)
		}
		e.lead("b", "n")
	}},
	{name: "a message that was acted on and comes again has its old ID", check: func(e *env) {
		faulty := NewFaulty(e.s)
		faulty.Next(Post, Duplicated)
		e.s = faulty
		e.post("1", "one")
		l := e.lead("a", "n1")
		e.commit(l, 1, remove(store.InboxBucket, "1"), put("seen", "1", "done"))
		faulty.Deliver()
		e.equal(e.records(store.InboxBucket), "1=one ")
		e.equal(e.records("seen"), "1=done ")
	}},
	{name: "Watch, hints lost, delayed and doubled", check: func(e *env) {
		faulty := NewFaulty(e.s)
		faulty.Next(Watch, RequestLost, Delayed, Duplicated)
		e.s = faulty
		lost, delayed, doubled := e.watch("g", store.LeaseFree), e.watch("g", store.LeaseFree), e.watch("g", store.LeaseFree)
		doubled.await(e)
		doubled.await(e)
		lost.none(e)
		delayed.none(e)
		e.until(func() bool { faulty.Deliver(); return len(*delayed) > 0 })
		e.release(e.lead("a", "n1")) // and what a hint is about happens without it
		e.lead("b", "n2")
	}},
	{name: "B18 B49 random faults on every call: tokens and positions grow, and what was answered holds", check: func(e *env) {
		for seed := range uint64(20) {
			e.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), patience) // each is as much as another rule
				defer cancel()
				one := &env{T: t, ctx: ctx, s: e.s, harness: e.harness}
				newModel(one, fmt.Sprintf("group-%d", seed), seed).run(150)
			})
		}
	}},
}

func (e *env) try(c store.Candidate) error {
	_, err := e.s.Acquire(e.ctx, "g", c)
	return err
}

// renew renews the lease that "a" has taken with "n1", for ten times as long.
func (e *env) renew() error {
	leader, err := e.s.Leader(e.ctx, "g")
	e.must(err)
	l := store.Lease{Group: "g", Replica: "a", Nonce: "n1", Token: leader.Token, Grant: store.Grant{TTL: 10 * long}}
	_, err = e.s.Renew(e.ctx, l)
	return err
}

// second is the second commit of the lease that "a" has taken with "n1".
func (e *env) second() error {
	leader, err := e.s.Leader(e.ctx, "g")
	e.must(err)
	l := store.Lease{Group: "g", Replica: "a", Nonce: "n1", Token: leader.Token}
	return e.s.Commit(e.ctx, l, 2, []store.Change{put("job", "x", "2"), remove("job", "old")})
}

func (e *env) joins(id string, start bool) error {
	_, err := e.s.Join(e.ctx, "g", store.Replica{ID: id}, long, start)
	return err
}

func (e *env) leads(id string) bool {
	e.Helper()
	leader, err := e.s.Leader(e.ctx, "g")
	return err == nil && leader.Replica == id
}

func (e *env) leaderLeft() time.Duration {
	e.Helper()
	leader, err := e.s.Leader(e.ctx, "g")
	e.must(err)
	return leader.Remaining
}
