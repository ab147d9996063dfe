package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/go-singleton/singleton/store"
)

// rounds is how often a copy may find that more has been committed meanwhile before it is given up: each is shorter than
// the one before.
const rounds = 100

// bring brings the whole state from one node to another while commits go on. It reads page by page what is at least the
// state at, and puts it aside together with everything that was sent since: however torn the pages are, records are whole
// values, and the last one sent is right. So the state that is installed is exactly that of the last commit sent, whether it
// counts or not; where a page has come from a state that what was recorded does not lead to, nothing is installed. What was
// refused there meanwhile is sent again until nothing is missing.
//
// The caller has begun the copy (term.begin).
func (s *Store) bring(ctx context.Context, t *term, from, to *link, at head) (written, error) {
	complete := false
	defer func() {
		if !complete {
			t.end(to)
		}
	}()
	c := transfer{Store: s, term: t, from: from, to: to, name: tag(ctx), at: at}
	if err := c.copy(ctx); err != nil {
		return written{}, err
	}
	at = c.at
	var got written
	for i := range rounds {
		missed := t.since(at.At, to, i > 0)
		if i > 0 && len(missed) == 0 {
			complete = true
			t.whole(to, got.Run)
			return got, nil
		}
		var err error
		if i == 0 {
			got, err = c.install(ctx, missed)
		} else {
			got, err = c.resend(ctx, missed)
		}
		if err != nil {
			return written{}, err
		}
		if len(missed) > 0 {
			at = missed[len(missed)-1].To
		}
	}
	return written{}, errors.New("redlock: a node does not keep up with the commits")
}

// transfer is a copy of the ledger that is on its way from one node to another.
type transfer struct {
	*Store
	term     *term
	from, to *link
	name     string
	staged   int  // steps
	at       head // the source has this state, or a later one
	newest   head // that a page has come from
}

// tries is how often a request of a copy is made that may be made again: the loss of one of many is not the end of them all.
const tries = 3

func again[T any](ctx context.Context, ask func() (T, error)) (T, error) {
	for i := 1; ; i++ {
		got, err := ask()
		if err == nil || i == tries || ctx.Err() != nil || errors.Is(err, store.ErrPermanent) {
			return got, err
		}
	}
}

// one asks one node and waits for its answer.
func one[T stamped](ctx context.Context, s *Store, l *link, group string, changes bool, call func(context.Context, node) (T, error)) (T, error) {
	v, ok := ask(ctx, s, query{group: group, changes: changes, to: []*link{l}}, call).next(ctx)
	if !ok {
		return v.value, ctx.Err()
	}
	return v.value, v.err
}

// copy puts aside at the target what the source has.
func (c *transfer) copy(ctx context.Context) error {
	group := c.term.lease.Group
	if err := c.stage(ctx, nil); err != nil {
		return err
	}
	found, err := again(ctx, func() (shelf, error) {
		return one(ctx, c.Store, c.from, group, false, func(ctx context.Context, n node) (shelf, error) {
			names, r, err := n.buckets(ctx, group)
			return shelf{r, names}, err
		})
	})
	if err == nil {
		err = c.usable(found.report, false)
	}
	if err != nil {
		return err
	}
	c.at, c.newest = found.Head, found.Head
	for _, bucket := range found.buckets {
		if err := c.copyBucket(ctx, bucket); err != nil {
			return err
		}
	}
	return c.copyInbox(ctx)
}

// copyInbox gives the target the messages that it lacks of those of a majority that has surely lost none: it counts for that,
// too, from then on. What has come stays, also when the copy does not come to its end.
func (c *transfer) copyInbox(ctx context.Context) error {
	group := c.term.lease.Group
	has, err := again(ctx, func() (page, error) {
		return one(ctx, c.Store, c.to, group, false, func(ctx context.Context, n node) (page, error) {
			return n.read(ctx, group, nil, store.InboxBucket, nil)
		})
	})
	if err != nil {
		return err
	}
	slices.Sort(has.Keys)
	r := &reading{Store: c.Store, group: group, lease: &c.term.lease, bucket: store.InboxBucket, sure: true, but: has.Keys}
	for {
		messages, err := again(ctx, func() ([]store.Record, error) { return r.next(ctx) })
		if err == nil {
			err = c.deliver(ctx, messages)
		}
		if err != nil || len(r.keys) == 0 {
			return err
		}
	}
}

func (c *transfer) deliver(ctx context.Context, messages []store.Record) error {
	if len(messages) == 0 {
		return nil
	}
	_, err := again(ctx, func() (plain, error) {
		return one(ctx, c.Store, c.to, c.term.lease.Group, true, func(ctx context.Context, n node) (plain, error) {
			return plain{}, n.deliver(ctx, c.term.lease.Group, messages)
		})
	})
	return err
}

// shelf is the buckets of a node.
type shelf struct {
	report
	buckets []string
}

func (c *transfer) copyBucket(ctx context.Context, bucket string) error {
	list, err := c.page(ctx, bucket, nil)
	if err != nil {
		return err
	}
	keys, p := list.Keys, list
	for {
		var changes []store.Change
		for i, value := range p.Values {
			if value != nil {
				changes = append(changes, store.Change{Bucket: bucket, Key: keys[i], Value: value})
			}
		}
		if len(changes) > 0 { // none would begin it anew
			if err := c.stage(ctx, changes); err != nil {
				return err
			}
		}
		keys = keys[len(p.Values):]
		if len(keys) == 0 {
			return nil
		}
		if p, err = c.page(ctx, bucket, keys[:min(len(keys), pageRecords)]); err != nil {
			return err
		}
		if len(p.Values) == 0 {
			return fmt.Errorf("redlock: a page of bucket %s is empty", bucket)
		}
	}
}

func (c *transfer) page(ctx context.Context, bucket string, keys []string) (page, error) {
	l := c.term.lease
	p, err := again(ctx, func() (page, error) {
		return one(ctx, c.Store, c.from, l.Group, false, func(ctx context.Context, n node) (page, error) {
			return n.read(ctx, l.Group, &l, bucket, keys)
		})
	})
	if err == nil {
		err = c.usable(p.report, true)
	}
	if p.Head.compare(c.newest) > 0 {
		c.newest = p.Head
	}
	return p, err
}

// usable returns an error when the source does not have what is to be copied any more.
func (c *transfer) usable(r report, lease bool) error {
	switch {
	case lease && !r.Held:
		return errors.New("redlock: a copy has ended: its source does not hold the lease any more")
	case r.Head.Base != c.at.Base || r.Head.At.Token != c.at.At.Token || r.Head.At.Number < c.at.At.Number:
		return errors.New("redlock: a copy has ended: its source has lost records")
	}
	return nil
}

func (c *transfer) stage(ctx context.Context, changes []store.Change) error {
	group, step := c.term.lease.Group, c.staged
	c.staged++
	_, err := again(ctx, func() (plain, error) {
		return one(ctx, c.Store, c.to, group, true, func(ctx context.Context, n node) (plain, error) {
			return plain{}, n.stage(ctx, group, c.name, step, changes)
		})
	})
	return err
}

// install completes what was put aside by what was sent meanwhile, and makes it the target's ledger.
func (c *transfer) install(ctx context.Context, missed []write) (written, error) {
	to := c.at
	if len(missed) > 0 {
		to = missed[len(missed)-1].To
	}
	if c.newest.compare(to) > 0 {
		return written{}, errors.New("redlock: a copy has ended: its source has made a step that was sent before it began")
	}
	for _, w := range missed {
		var records []store.Change
		for _, change := range w.Changes {
			if change.Bucket != store.InboxBucket {
				records = append(records, change)
			}
		}
		if len(records) == 0 {
			continue
		}
		if err := c.stage(ctx, records); err != nil {
			return written{}, err
		}
	}
	got, err := one(ctx, c.Store, c.to, c.term.lease.Group, true, func(ctx context.Context, n node) (written, error) {
		return n.install(ctx, c.term.lease, c.name, to)
	})
	return got, effective(got, err)
}

// resend sends what the target has refused while it lagged behind.
func (c *transfer) resend(ctx context.Context, missed []write) (got written, err error) {
	for _, w := range missed {
		got, err = one(ctx, c.Store, c.to, w.Lease.Group, true, func(ctx context.Context, n node) (written, error) {
			return n.write(ctx, w)
		})
		if err := effective(got, err); err != nil {
			return got, err
		}
	}
	return got, nil
}

func effective(got written, err error) error {
	if err == nil && got.Effect != writeDone {
		return errors.New("redlock: the node does not take the state")
	}
	return err
}

// tend brings the state to a node that lacks it, in the background: it has restarted, or has missed something.
func (s *Store) tend(ctx context.Context, t *term, l *link) {
	if !t.lacking(l) {
		return
	}
	s.background(ctx, copyLimit, func(ctx context.Context) {
		if t.begin(l) != nil {
			return
		}
		from, at, err := s.settledState(ctx, t, l)
		if err != nil || from == nil {
			t.end(l)
			return
		}
		if _, err := s.bring(ctx, t, from, l, at); err != nil {
			s.log.WarnContext(ctx, "records could not be copied to a node; it is tried again",
				"group", t.lease.Group, "node", l.node.name(), "error", err)
		}
	})
}

// settledState returns the ledger's state, when it is known, and a node that has it.
func (s *Store) settledState(ctx context.Context, t *term, but *link) (*link, head, error) {
	if err := t.enter(ctx); err != nil {
		return nil, head{}, err
	}
	defer t.leave()
	if !t.restored || t.open != nil {
		return nil, head{}, nil
	}
	for _, l := range s.links {
		if l != but && !t.lacking(l) {
			return l, t.at, nil
		}
	}
	return nil, head{}, nil
}
