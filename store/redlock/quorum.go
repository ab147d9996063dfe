package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// query is what several nodes are asked about a group.
type query struct {
	group   string
	changes bool    // it changes something there: what comes later waits for it
	to      []*link // nil is all
}

// stamped is an answer that says which server has given it; a stamp without a run belongs to one that no vote is made of.
type stamped interface{ origin() stamp }

func (s stamp) origin() stamp { return s }

// plain is an answer that says no more than that it was done.
type plain struct{ stamp }

// vote is the answer of one node.
type vote[T stamped] struct {
	link    *link
	value   T
	err     error
	durable bool // the server that has answered loses nothing when it ends
}

// votes are the answers to one query, as they come. They are for one goroutine.
type votes[T stamped] struct {
	answers chan vote[T] // room for two of each node: nobody waits to put one there
	left    int
}

// ask asks nodes, all at once, and goes on asking when the caller has heard enough or has gone: what is asked for ends with
// its own limit or with the store. The places in all lines are taken together, so that of two queries each node sees the
// same one first.
func ask[T stamped](ctx context.Context, s *Store, q query, call func(context.Context, node) (T, error)) *votes[T] {
	to := q.to
	if to == nil {
		to = s.links
	}
	v := &votes[T]{answers: make(chan vote[T], 2*len(to)), left: len(to)}
	limit := time.Now().Add(nodeLimit)
	s.entering.Lock()
	turns, refusals := make([]turn, len(to)), make([]error, len(to))
	for i, l := range to {
		turns[i], refusals[i] = l.enter(q.group, q.changes)
	}
	s.entering.Unlock()
	for i, l := range to {
		if refusals[i] != nil {
			v.answers <- vote[T]{link: l, err: l.named(refusals[i])}
			continue
		}
		asking := world.Fork(context.WithoutCancel(ctx))
		s.calls.Go(func() {
			detached, cancel := context.WithDeadline(asking, limit)
			defer cancel()
			defer context.AfterFunc(s.ctx, cancel)()
			got := vote[T]{link: l}
			if got.err = turns[i].wait(detached); got.err == nil {
				got.value, got.err = call(detached, l.node)
			}
			l.answered(got.err)
			turns[i].leave()
			if run := got.value.origin().Run; got.err == nil && run != "" {
				s.met(l, run)
				id, err := l.identify(detached, run)
				got.durable = err == nil && id.Durable && id.Run == run
				s.warn(detached, l, id)
			}
			s.heard(detached, l, got.err)
			got.err = l.named(got.err)
			v.answers <- got
		})
	}
	return v
}

// next waits for an answer; false says that there is none any more, or that ctx has ended first.
func (v *votes[T]) next(ctx context.Context) (vote[T], bool) {
	if v.left == 0 {
		return vote[T]{}, false
	}
	select {
	case got := <-v.answers: // one that is there is heard, also by who has gone
		v.left--
		return got, true
	default:
	}
	select {
	case got := <-v.answers:
		v.left--
		return got, true
	case <-ctx.Done():
		world.From(ctx).WaitTurn()
		return vote[T]{}, false
	}
}

// all yields the answers as they come, until none is left or ctx ends.
func (v *votes[T]) all(ctx context.Context) iter.Seq[vote[T]] {
	return func(yield func(vote[T]) bool) {
		for {
			got, ok := v.next(ctx)
			if !ok || !yield(got) {
				return
			}
		}
	}
}

// finish hears the answers that a call has not waited for, in the background.
func finish[T stamped](ctx context.Context, s *Store, v *votes[T], hear func(vote[T])) {
	if v.left == 0 {
		return
	}
	s.background(ctx, callLimit, func(ctx context.Context) {
		for got := range v.all(ctx) {
			hear(got)
		}
	})
}

// count keeps the books of one query: which nodes count, and why others do not.
type count struct {
	s      *Store
	links  []*link // that count
	runs   []string
	faults []fault
}

type fault struct {
	link      *link
	text      string
	permanent bool
}

// add lets a node count. One server under two addresses would be counted twice: that is an error.
func (c *count) add(l *link, run string) error {
	if i := slices.Index(c.runs, run); i >= 0 && run != "" {
		return oneServer(c.links[i], l, run)
	}
	c.links, c.runs = append(c.links, l), append(c.runs, run)
	return nil
}

func oneServer(a, b *link, run string) error {
	if b.index < a.index {
		a, b = b, a
	}
	return store.Permanent("give New each server once", fmt.Errorf("redlock: %s and %s are one server (run_id %s)", a.node.name(), b.node.name(), run))
}

// met notes which server a node is. When another node is the same one, every call from now on fails: of what the loss of one
// server would take nobody would know.
func (s *Store) met(l *link, run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.run = run
	for _, other := range s.links {
		if other != l && other.run == run && s.twins == nil {
			s.twins = oneServer(other, l, run)
		}
	}
}

// reached tells whether a majority counts.
func (c *count) reached() bool { return len(c.links) >= c.s.quorum }

// fail notes why a node does not count.
func (c *count) fail(l *link, err error) {
	c.faults = append(c.faults, fault{l, err.Error(), errors.Is(err, store.ErrPermanent)})
}

// excuse notes why the answer of a node does not count.
func (c *count) excuse(l *link, why string) {
	c.faults = append(c.faults, fault{link: l, text: l.node.name() + " " + why})
}

// blocked tells whether so many nodes are of no use that no majority can come together.
func (c *count) blocked() bool { return len(c.faults) > len(c.s.links)-c.s.quorum }

// short says why no majority has come together. Only when it never will, that is an error for good.
func (c *count) short(ctx context.Context, method string) error {
	slices.SortStableFunc(c.faults, func(a, b fault) int { return cmp.Compare(a.link.index, b.link.index) })
	var texts []string
	permanent := 0
	for _, f := range c.faults {
		texts = append(texts, f.text)
		if f.permanent {
			permanent++
		}
	}
	text := fmt.Sprintf("redlock: %s: %d of %d nodes agree, and %d must", method, len(c.links), len(c.s.links), c.s.quorum)
	if len(texts) > 0 {
		text += ": " + strings.Join(texts, "; ")
	}
	if permanent > len(c.s.links)-c.s.quorum {
		return store.Permanent("see to these nodes", errors.New(text))
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return errors.New(text)
}

// heard logs, once in a spell, that a node is of no use; the others go on without it.
func (s *Store) heard(ctx context.Context, l *link, err error) {
	about := "node " + l.node.name()
	switch {
	case err == nil:
		s.spells.End(about)
	case s.ctx.Err() != nil || errors.Is(err, errCrowded):
	case errors.Is(err, store.ErrPermanent):
		if s.spells.Begin(about, err.Error()) {
			s.log.ErrorContext(ctx, "a node refuses what it is asked; the others go on without it", slog.String("node", l.node.name()), slog.Any("error", err))
		}
	case s.spells.Begin(about, "silent"):
		s.log.WarnContext(ctx, "a node does not answer; the others go on without it", slog.String("node", l.node.name()), slog.Any("error", err))
	}
}

// warn logs, once, what makes a node less than independent.
func (s *Store) warn(ctx context.Context, l *link, id identity) {
	about, found := "role "+l.node.name(), ""
	switch {
	case id.Replica:
		found = "a node follows another server: what it takes is lost; use servers of their own"
	case id.Replicas > 0:
		found = "a node has replicas: one that takes its place has forgotten what came last; use servers of their own, without failover"
	case id.Run != "":
		s.spells.End(about)
		return
	}
	if found != "" && s.spells.Begin(about, found) {
		s.log.WarnContext(ctx, "a node is not what it should be", slog.String("node", l.node.name()), slog.String("found", found))
	}
}

// barred tells why a node has no vote on leases and sessions, "" when it has: one that has restarted may have forgotten
// some, until the longest of them is over.
func barred(s stamp, durable bool, longest time.Duration) string {
	if durable || s.Up >= longest {
		return ""
	}
	return fmt.Sprintf("restarted %v ago, may have forgotten a lease, and has no vote for another %v", s.Up, longest-s.Up)
}

// tag returns what tells one try, event or transfer from all others.
func tag(ctx context.Context) string {
	return fmt.Sprintf("%016x", world.From(ctx).Random())
}

// median returns the middle one of the clocks of nodes that count: one that is wrong does not matter.
func median(clocks []time.Time) time.Time {
	slices.SortFunc(clocks, time.Time.Compare)
	return clocks[(len(clocks)-1)/2].UTC()
}
