package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

// stub is a node that answers as it is told. What it was asked, it writes down. Unless a test says otherwise, it grants, takes
// and knows everything, and has run for an hour.
type stub struct {
	node // for what is never asked
	id   string
	run  string
	up   time.Duration
	hold time.Duration // each answer
	fail error         // of each answer
	lose []string      // requests that get no answer the first time

	claim    claimed
	settled  bool
	renewal  renewal
	repaired renewal
	holder   holder
	left     time.Duration
	living   []store.Replica
	full     bool
	inbox    []string // IDs of messages
	ledger   report
	effect   effect
	shelf    []string // buckets
	ahead    uint64   // so many commits more than it had before, when a page is read
	durable  bool

	mu    sync.Mutex
	asked []string
}

var errNoAnswer = errors.New("no answer")

func newStub(i int) *stub {
	run := fmt.Sprint("run", i)
	return &stub{
		id: fmt.Sprint("node", i), run: run, up: time.Hour, settled: true, renewal: renewDone, repaired: renewDone, left: time.Minute,
		claim:  claimed{Outcome: claimGranted},
		ledger: report{Marker: run, Held: true}, effect: writeDone,
	}
}

// stubs returns n nodes and a store on them that ends with the test.
func stubs(t *testing.T, n int, cfg Config) ([]*stub, *Store) {
	t.Helper()
	var list []*stub
	var nodes []node
	for i := range n {
		list = append(list, newStub(i))
		nodes = append(nodes, list[i])
	}
	s := fromNodes(nodes, cfg)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return list, s
}

// ask notes what is asked and answers in its own time.
func (n *stub) ask(ctx context.Context, what string) error {
	n.mu.Lock()
	n.asked = append(n.asked, what)
	lost := slices.Index(n.lose, what)
	if lost >= 0 {
		n.lose = slices.Delete(n.lose, lost, lost+1)
	}
	n.mu.Unlock()
	if n.hold > 0 {
		select {
		case <-time.After(n.hold):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if lost >= 0 {
		return errNoAnswer
	}
	return n.fail
}

// times tells how often something was asked.
func (n *stub) times(what string) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(slices.DeleteFunc(slices.Clone(n.asked), func(s string) bool { return !strings.HasPrefix(s, what) }))
}

func (n *stub) stamp() stamp { return stamp{Run: n.run, Up: n.up, Clock: time.Now()} }

func (n *stub) report() report {
	n.mu.Lock()
	r := n.ledger
	n.mu.Unlock()
	r.stamp = n.stamp()
	return r
}

func (n *stub) name() string { return n.id }
func (n *stub) close() error { return nil }

func (n *stub) identity(context.Context) (identity, error) {
	return identity{Run: n.run, Durable: n.durable}, nil
}

func (n *stub) acquire(ctx context.Context, _ string, _ claim) (claimed, error) {
	err := n.ask(ctx, "acquire")
	c := n.claim
	c.stamp = n.stamp()
	return c, err
}

func (n *stub) settle(ctx context.Context, l store.Lease, _ string) (bool, stamp, error) {
	err := n.ask(ctx, fmt.Sprint("settle ", l.Token))
	return n.settled, n.stamp(), err
}

func (n *stub) renew(ctx context.Context, _ store.Lease, _ bool) (renewed, error) {
	err := n.ask(ctx, "renew")
	return renewed{n.stamp(), n.renewal}, err
}

func (n *stub) repair(ctx context.Context, _ store.Lease, _ []byte, _ bool) (renewed, error) {
	return renewed{n.stamp(), n.repaired}, n.ask(ctx, "repair")
}

func (n *stub) release(ctx context.Context, _ store.Lease, _ string) error {
	return n.ask(ctx, "release")
}

func (n *stub) withdraw(ctx context.Context, _ store.Lease, _, _ string) error {
	return n.ask(ctx, "withdraw")
}

func (n *stub) leader(ctx context.Context, _ string) (holder, error) {
	return n.holder, n.ask(ctx, "leader")
}

func (n *stub) join(ctx context.Context, _ string, _ store.Replica, ttl time.Duration, start bool) (time.Duration, stamp, error) {
	err := n.ask(ctx, fmt.Sprint("join ", start))
	if start {
		return ttl, n.stamp(), err
	}
	return n.left, n.stamp(), err
}

func (n *stub) leave(ctx context.Context, _, _ string) error { return n.ask(ctx, "leave") }

func (n *stub) replicas(ctx context.Context, _ string) ([]store.Replica, stamp, error) {
	return n.living, n.stamp(), n.ask(ctx, "replicas")
}

func (n *stub) head(ctx context.Context, _ string, _ *store.Lease) (report, error) {
	err := n.ask(ctx, "head")
	return n.report(), err
}

func (n *stub) write(ctx context.Context, w write) (written, error) {
	err := n.ask(ctx, "write")
	r := n.report()
	if n.effect == writeDone {
		r.Head = w.To
		n.mu.Lock()
		n.ledger.Head = w.To
		n.mu.Unlock()
	}
	return written{r, n.effect}, err
}

func (n *stub) stage(ctx context.Context, _, _ string, _ int, _ []store.Change) error {
	return n.ask(ctx, "stage")
}

func (n *stub) install(ctx context.Context, _ store.Lease, _ string, to head) (written, error) {
	err := n.ask(ctx, "install")
	r := n.report()
	r.Head, r.Marker = to, n.run
	return written{r, writeDone}, err
}

func (n *stub) vouch(ctx context.Context, _ string) (report, error) {
	return n.report(), n.ask(ctx, "vouch")
}

func (n *stub) read(ctx context.Context, _ string, _ *store.Lease, bucket string, keys []string) (page, error) {
	err := n.ask(ctx, "read")
	r := n.report()
	r.Head.At.Number += n.ahead
	p := page{report: r}
	n.mu.Lock()
	defer n.mu.Unlock()
	if bucket == store.InboxBucket {
		p.Keys = keys
		if p.Keys == nil {
			p.Keys = slices.Clone(n.inbox)
		}
		for _, id := range p.Keys[:min(len(p.Keys), pageRecords)] {
			p.Values = append(p.Values, []byte("of "+id))
		}
		if keys == nil && len(p.Keys) > pageRecords {
			p.Values = nil
		}
	}
	return p, err
}

func (n *stub) post(ctx context.Context, _, _ string, _ []byte) (bool, error) {
	return n.full, n.ask(ctx, "post")
}

func (n *stub) deliver(ctx context.Context, _ string, messages []store.Record) error {
	err := n.ask(ctx, "deliver")
	n.mu.Lock()
	defer n.mu.Unlock()
	if err == nil {
		for _, m := range messages {
			n.inbox = append(n.inbox, m.Key)
		}
	}
	return err
}

func (n *stub) buckets(ctx context.Context, _ string) ([]string, report, error) {
	err := n.ask(ctx, "buckets")
	return n.shelf, n.report(), err
}
