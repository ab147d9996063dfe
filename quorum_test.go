//go:build linux

package singleton_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redlock"
)

// quorum is a group on independent nodes, of which a majority decides.
type quorum struct {
	*group
	nodes *redistest.Nodes
}

// newQuorum starts n nodes that are trusted at first, and not any more once they have been restarted.
func newQuorum(t *testing.T, n int, opts ...redistest.Option) *quorum {
	t.Helper()
	opts = append([]redistest.Option{redistest.AppendOnly(), redistest.Args("--appendfsync", "everysec")}, opts...)
	q := &quorum{&group{t: t, name: "g", calls: make(chan *call, 1000)}, redistest.StartNodes(t, n, opts...)}
	if err := q.nodes.Trusted(t.Context()); err != nil {
		t.Fatal(err)
	}
	q.reach = func() store.Store { return q.through(q.nodes.Addrs()) }
	return q
}

// through returns a store on the servers at addrs, with clients of its own.
func (q *quorum) through(addrs []string) *redlock.Store {
	q.t.Helper()
	var clients []*redis.Client
	for _, addr := range addrs {
		c := redis.NewClient(&redis.Options{Addr: addr})
		q.t.Cleanup(func() { _ = c.Close() })
		clients = append(clients, c)
	}
	st, err := redlock.New(clients, redlock.Config{Logger: q.log()})
	if err != nil {
		q.t.Fatal(err)
	}
	return st
}

// whole waits until every server has all records and counts for them, and for leases and sessions that are no longer than that,
// as doctor tells: until then the loss of two others is more than a group can bear.
func (q *quorum) whole(session time.Duration) {
	q.t.Helper()
	st := q.through(q.nodes.Addrs())
	defer func() {
		if err := st.Close(); err != nil {
			q.t.Error(err)
		}
	}()
	eventually(q.t, "all records on all servers", func() bool {
		all, err := st.Nodes(q.t.Context(), q.name)
		return err == nil && !slices.ContainsFunc(all, func(n redlock.NodeState) bool {
			return n.Err != nil || !n.Ledger || n.Doubt != "" || n.Up < session || n.Token != all[0].Token || n.Number != all[0].Number
		})
	})
}

// harm is what befalls a node, until it is mended.
type harm struct {
	name       string
	begin, end func(*redistest.Node) error
}

func quietly(do func(*redistest.Node)) func(*redistest.Node) error {
	return func(n *redistest.Node) error {
		do(n)
		return nil
	}
}

var (
	nothing = quietly(func(*redistest.Node) {})
	killed  = harm{"killed", quietly((*redistest.Node).Kill), (*redistest.Node).Restart}
	hung    = harm{"hung", quietly((*redistest.Node).Stop), quietly((*redistest.Node).Cont)}
	cutOff  = harm{"cut off", quietly((*redistest.Node).Cut), quietly((*redistest.Node).Heal)}
	emptied = harm{"restarted empty", (*redistest.Node).RestartEmpty, nothing}
	shorted = harm{"restarted without its last kilobyte", func(n *redistest.Node) error { return n.RestartTruncated(1 << 10) }, nothing}
	ahead   = harm{"an hour ahead", quietly(func(n *redistest.Node) { n.Clock.Jump(time.Hour) }), quietly(func(n *redistest.Node) { n.Clock.Reset() })}
	behind  = harm{"an hour behind", quietly(func(n *redistest.Node) { n.Clock.Jump(-time.Hour) }), quietly(func(n *redistest.Node) { n.Clock.Reset() })}
)

// harms are those of two nodes of five, alone and mixed; internal/soak has all of them.
var harms = [][2]harm{
	{hung, hung}, {emptied, emptied}, {killed, cutOff}, {shorted, ahead}, {behind, emptied},
}

func (h harm) do(t *testing.T, what func(*redistest.Node) error, n *redistest.Node) {
	t.Helper()
	if err := what(n); err != nil {
		t.Fatalf("%s: %v", h.name, err)
	}
}

// kept waits until a term has been renewed twice, and returns its call: leader, or one that has followed it.
func (q *quorum) kept(leader *call) *call {
	q.t.Helper()
	for range 2 {
		left := leader.UntilDeadline()
		eventually(q.t, "a renewal", func() bool {
			leader = q.newest(leader)
			now := leader.UntilDeadline()
			renewed := now > left
			left = now
			return renewed
		})
	}
	return leader
}

// TestE2LeaderEndsWhenAMajorityIsGone hangs two of three nodes.
func TestE2LeaderEndsWhenAMajorityIsGone(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, 3)
	q.start(q.open(), election.Config{ID: "a"}, untilEnd)
	leader := q.kept(q.next())
	for _, n := range q.nodes.All[:2] {
		n.Stop()
	}
	leader = q.newest(leader)
	receive(t, leader.over, "the end of the term")
	if cause := context.Cause(leader.ctx); !errors.Is(cause, election.ErrExpired) {
		t.Errorf("cause %v, want %v", cause, election.ErrExpired)
	}
	if leader.Valid() {
		t.Error("the term is valid after its context has ended")
	}
	for _, n := range q.nodes.All[:2] {
		n.Cont()
	}
	q.next()
}

// TestB20TheSameServerTwiceIsRefused names one server under two addresses.
func TestB20TheSameServerTwiceIsRefused(t *testing.T) {
	t.Parallel()
	q := newQuorum(t, 3)
	again := redistest.StartProxy(t, q.nodes.All[0].Addr())
	st := q.through([]string{q.nodes.Addrs()[0], again.Addr(), q.nodes.Addrs()[1]})
	r := q.start(ends(q.group, st), election.Config{ID: "a"}, untilEnd)
	receive(t, r.done, "the return of Run")
	if !errors.Is(r.err, store.ErrPermanent) || !strings.Contains(r.err.Error(), again.Addr()) {
		t.Errorf("Run returned %v", r.err)
	}
}
