package redlock

import (
	"context"
	"errors"
	"slices"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// move has the ledger make one step: it is done when a majority of nodes, none of which may have lost records, has made it
// before the lease's deadline. What lags behind is given the whole state meanwhile, and counts then. The caller has the
// term's gate; send makes the step on one node, nil is node.write.
func (s *Store) move(ctx context.Context, t *term, w write, send func(context.Context, node) (written, error)) error {
	if send == nil {
		send = func(ctx context.Context, n node) (written, error) { return n.write(ctx, w) }
	}
	t.record(w)
	p := &step{Store: s, term: t, to: w.To, send: send, done: count{s: s}}
	p.answers = ask(ctx, s, query{group: t.lease.Group, changes: true}, send)
	for !p.done.reached() {
		v, ok := p.answers.next(ctx)
		if !ok {
			break
		}
		if err := p.hear(ctx, v); err != nil {
			return err
		}
	}
	spare := len(s.links) - s.quorum
	certain := p.answers.left == 0 && p.silent == 0 && len(p.sources) == 0 // no node has made the step, or will
	switch {
	case p.done.reached() && t.past():
		return errors.New("redlock: commit: the majority came together when the lease was over")
	case p.done.reached():
		finish(ctx, s, p.answers, func(v vote[written]) { _ = p.hear(ctx, v) }) // it counts already
		return nil
	case p.lost+p.behind > 0:
		t.restored = false // look again before anything else is sent
	}
	switch {
	case certain && p.lost > spare:
		t.lose()
		return store.ErrLost
	case certain && p.lost == 0:
		return store.ErrGap
	}
	return p.done.short(ctx, "commit")
}

// step is a step of the ledger that is being made.
type step struct {
	*Store
	term    *term
	to      head
	send    func(context.Context, node) (written, error)
	answers *votes[written]
	done    count
	sources []*link // have made the step
	lagging []*link // want the whole state

	lost, behind, silent int
}

// hear takes an answer. An error says that the servers are not what they should be.
func (p *step) hear(ctx context.Context, v vote[written]) (err error) {
	switch {
	case v.err != nil:
		p.done.fail(v.link, v.err)
		p.silent++
		p.term.lacks(v.link)
	case v.value.Effect == writeLost:
		p.done.excuse(v.link, "does not hold the lease for this leader")
		p.lost++
		p.term.lacks(v.link)
	case v.value.Effect != writeDone:
		p.term.lacks(v.link)
		p.lagging, p.behind = append(p.lagging, v.link), p.behind+1
	case v.value.doubt(v.durable) != "":
		p.term.lacks(v.link)
		p.sources, p.lagging = append(p.sources, v.link), append(p.lagging, v.link)
	default:
		p.sources = append(p.sources, v.link)
		p.term.whole(v.link, v.value.Run)
		err = p.done.add(v.link, v.value.Run)
	}
	p.catchUp(ctx)
	return err
}

// catchUp has the state brought to nodes that lag behind. What comes of it is one more answer.
func (p *step) catchUp(ctx context.Context) {
	var waiting []*link
	for _, l := range p.lagging {
		i := slices.IndexFunc(p.sources, func(source *link) bool { return source != l })
		if i < 0 {
			waiting = append(waiting, l)
			continue
		}
		from, other := p.sources[i], p.term.begin(l)
		p.answers.left++
		p.background(ctx, copyLimit, func(ctx context.Context) {
			var got written
			var err error
			if other == nil {
				got, err = p.bring(ctx, p.term, from, l, p.to)
				err = l.named(err)
			} else {
				got, err = p.after(ctx, other, l)
			}
			p.answers.answers <- vote[written]{link: l, value: got, err: err, durable: true}
		})
	}
	p.lagging = waiting
}

// after has a node make the step when the state, which is on its way already, has come.
func (p *step) after(ctx context.Context, come <-chan struct{}, l *link) (written, error) {
	select {
	case <-come:
	case <-ctx.Done():
	}
	world.From(ctx).WaitTurn()
	if err := ctx.Err(); err != nil {
		return written{}, l.named(err)
	}
	got, err := one(ctx, p.Store, l, p.term.lease.Group, true, p.send)
	if err == nil {
		err = l.named(effective(got, nil))
	}
	return got, err
}
