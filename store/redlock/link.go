package redlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

const (
	maxWaiting  = 2048                   // requests that one node may have before it: a hung one is asked no more
	identityAge = 30 * time.Second       // how long a node's configuration is taken to be what it was
	silentAfter = 250 * time.Millisecond // without an answer, a node is no more than slow before this
)

// link is the way to one node. Of a group, what changes something there arrives in the order in which it was asked for, and
// a question after what was asked for before it: what a call has written, the next one sees, also on a node that neither of
// them waits for.
type link struct {
	node  node
	index int
	run   string // of the server that answered last; the store's mutex is held

	mu      sync.Mutex
	tails   map[string]chan struct{} // by group: closed when the last change before is over
	waiting int
	heard   time.Time // when it answered last, or was asked something when it owed no answer
	failed  bool      // it has not answered what it was asked last
	known   identity
	asked   time.Time // when it was
}

// turn is a request's place in the line of a node.
type turn struct {
	link   *link
	group  string
	before chan struct{} // closed when its time has come; nil is now
	mine   chan struct{} // nil: nobody waits for this one
}

var errCrowded = errors.New("too many requests wait for an answer of this node")

// enter takes a place in the line; the caller ends it with leave.
func (l *link) enter(group string, changes bool) (turn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting >= maxWaiting {
		return turn{}, errCrowded
	}
	if l.waiting++; l.waiting == 1 {
		l.heard = time.Now()
	}
	t := turn{link: l, group: group, before: l.tails[group]}
	if changes {
		t.mine = make(chan struct{})
		l.tails[group] = t.mine
	}
	return t, nil
}

func (t turn) leave() {
	l := t.link
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting--
	if t.mine == nil {
		return
	}
	if l.tails[t.group] == t.mine {
		delete(l.tails, t.group)
	}
	close(t.mine)
}

// answered notes that the node has answered, or has not.
func (l *link) answered(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard, l.failed = time.Now(), err != nil && !errors.Is(err, store.ErrPermanent)
}

// patience is how long to wait for an answer of any of these nodes, until all of them count as silent.
func patience(nodes []*link) (longest time.Duration) {
	for _, l := range nodes {
		l.mu.Lock()
		if !l.failed {
			longest = max(longest, silentAfter-time.Since(l.heard))
		}
		l.mu.Unlock()
	}
	return longest
}

// wait waits for the time of a request. Of requests that end at one moment, none goes out because another has just ended:
// which of their timers is first would be left to chance.
func (t turn) wait(ctx context.Context) error {
	if t.before != nil {
		select {
		case <-t.before:
		case <-ctx.Done():
		}
		world.From(ctx).WaitTurn()
		if end, limited := ctx.Deadline(); limited && !time.Now().Before(end) {
			return context.DeadlineExceeded
		}
	}
	return ctx.Err()
}

// identify returns what the node is; run, where it is known, is the process that has just answered.
func (l *link) identify(ctx context.Context, run string) (identity, error) {
	l.mu.Lock()
	known, fresh := l.known, !l.asked.IsZero() && time.Since(l.asked) < identityAge
	l.mu.Unlock()
	if fresh && (run == "" || run == known.Run) {
		return known, nil
	}
	id, err := l.node.identity(ctx)
	if err != nil {
		return identity{}, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known, l.asked = id, time.Now()
	return id, nil
}

// named says which node an error is of.
func (l *link) named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", l.node.name(), err)
}
