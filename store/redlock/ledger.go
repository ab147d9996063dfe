package redlock

import (
	"bytes"
	"context"
	"errors"
	"slices"

	"github.com/go-singleton/singleton/store"
)

// Commit implements store.Ledger.
func (s *Store) Commit(ctx context.Context, l store.Lease, number uint64, changes []store.Change) error {
	if err := store.CheckCommit(l, number, changes); err != nil {
		return err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	t := s.term(l)
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.leave()
	if t.lost() {
		return s.applied(ctx, l, number)
	}
	if !t.restored {
		if err := s.restore(ctx, t); err != nil {
			if errors.Is(err, store.ErrLost) {
				return s.applied(ctx, l, number)
			}
			return err
		}
	}
	switch last := t.at.At.Number; {
	case number == last:
		return nil
	case number < last:
		return store.ErrStale
	case number > last+1:
		if err := s.holds(ctx, l); err != nil {
			return err
		}
		return store.ErrGap
	}
	w := write{Lease: t.lease, From: t.at, To: t.at.next(), Changes: copied(changes)}
	t.open = &w
	err = s.move(ctx, t, w, nil)
	if err == nil {
		t.at = w.To
	}
	if err == nil || store.Definite(err) {
		t.open = nil
	}
	return err
}

// copied keeps what the caller may change once it has its answer, while some nodes have yet to be sent it.
func copied(changes []store.Change) []store.Change {
	kept := slices.Clone(changes)
	for i := range kept {
		kept[i].Value = bytes.Clone(kept[i].Value)
	}
	return kept
}

// applied answers a commit under a lease that is not held: what has been applied is done all the same. One that a minority has is
// neither done nor not: whoever leads next decides, and so it is where a node does not say what it has.
func (s *Store) applied(ctx context.Context, l store.Lease, number uint64) error {
	answers := ask(ctx, s, query{group: l.Group}, func(ctx context.Context, n node) (report, error) {
		return n.head(ctx, l.Group, nil)
	})
	told := count{s: s}
	var sure []head
	somewhere := false
	for v := range answers.all(ctx) {
		if v.err != nil {
			told.fail(v.link, v.err)
			continue
		}
		if err := told.add(v.link, v.value.Run); err != nil {
			return err
		}
		at := v.value.Head.position()
		somewhere = somewhere || at.Token == l.Token && at.Number >= number
		if v.value.doubt(v.durable) == "" {
			sure = append(sure, v.value.Head)
		}
		settled, ok := s.agreed(sure, len(s.links)-len(told.links))
		switch at := settled.position(); {
		case !ok:
		case at.Token == l.Token && at.Number > number:
			return store.ErrStale
		case at.Token == l.Token && at.Number == number:
			return nil
		case at.Token > l.Token:
			return store.ErrLost
		}
	}
	if len(told.links) == len(s.links) && !somewhere {
		return store.ErrLost
	}
	if somewhere {
		told.faults = append(told.faults, fault{s.links[0], "a minority has made the commit, and the lease is over: whoever leads next decides", false})
	}
	return told.short(ctx, "commit")
}

// holds returns store.ErrLost when a majority does not know the lease, and nil when one does.
func (s *Store) holds(ctx context.Context, l store.Lease) error {
	answers := ask(ctx, s, query{group: l.Group}, func(ctx context.Context, n node) (report, error) {
		return n.head(ctx, l.Group, &l)
	})
	held, lost := count{s: s}, 0
	for v := range answers.all(ctx) {
		switch {
		case v.err != nil:
			held.fail(v.link, v.err)
		case !v.value.Held:
			held.excuse(v.link, "does not hold the lease for this leader")
			lost++
		default:
			if err := held.add(v.link, v.value.Run); err != nil {
				return err
			}
		}
		switch {
		case held.reached():
			return nil
		case lost > len(s.links)-s.quorum:
			s.known(l).lose()
			return store.ErrLost
		}
	}
	return held.short(ctx, "look at the lease")
}

// Position implements store.Ledger. The position counts that a majority has reached, and that no answer which is still out
// can change. Where a server is away that could, only a leader can settle it: it restores the ledger first.
func (s *Store) Position(ctx context.Context, group string) (token, number uint64, err error) {
	if err := store.CheckName("group", group); err != nil {
		return 0, 0, err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return 0, 0, err
	}
	defer end()
	if t := s.leads(group); t != nil {
		if err := s.settleLedger(ctx, t); err != nil {
			return 0, 0, err
		}
	}
	at, err := s.position(ctx, group)
	return at.Token, at.Number, err
}

// leads returns the term of the group that this store was granted, nil where there is none or its lease is over.
func (s *Store) leads(group string) *term {
	s.mu.Lock()
	t := s.terms[group]
	s.mu.Unlock()
	if t == nil || t.past() {
		return nil
	}
	return t
}

// settleLedger restores the ledger under a lease where that has not been done. That it is somebody else's by now, or that too
// few servers are sure, is for whoever reads or commits.
func (s *Store) settleLedger(ctx context.Context, t *term) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.leave()
	if t.restored {
		return nil
	}
	_ = s.restore(ctx, t)
	return ctx.Err()
}

func (s *Store) position(ctx context.Context, group string) (point, error) {
	answers := ask(ctx, s, query{group: group}, func(ctx context.Context, n node) (report, error) {
		return n.head(ctx, group, nil)
	})
	told := count{s: s}
	var all, sure []head // of those that answer, and of those that have surely lost nothing
	for v := range answers.all(ctx) {
		if v.err != nil {
			told.fail(v.link, v.err)
			continue
		}
		if err := told.add(v.link, v.value.Run); err != nil {
			return point{}, err
		}
		all = append(all, v.value.Head)
		if v.value.doubt(v.durable) == "" {
			sure = append(sure, v.value.Head)
		}
		if at, ok := s.agreed(sure, len(s.links)-len(all)); ok {
			return at.position(), nil
		}
	}
	if !told.reached() || ctx.Err() != nil || len(sure) >= s.quorum {
		if told.reached() {
			told.faults = append(told.faults, fault{s.links[0], "which commit was the last is not settled: ask again", false})
		}
		return point{}, told.short(ctx, "position")
	}
	newest := slices.MaxFunc(all, func(a, b head) int { return a.compare(b) })
	return newest.position(), nil // too few are sure: whoever leads will not rely on it either
}

// agreed returns the state that a majority has reached, unless one that is later may have a majority, too, by answers that
// are out.
func (s *Store) agreed(heads []head, out int) (head, bool) {
	if len(heads) < s.quorum {
		return head{}, false
	}
	sorted := slices.SortedFunc(slices.Values(heads), func(a, b head) int { return b.compare(a) })
	at := sorted[s.quorum-1]
	later := slices.IndexFunc(sorted, func(h head) bool { return h == at }) // so many are later
	return at, later == 0 || later+out < s.quorum
}

// Post implements store.Ledger.
func (s *Store) Post(ctx context.Context, group, id string, message []byte) error {
	if err := store.CheckMessage(group, id, message); err != nil {
		return err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	message = bytes.Clone(message)
	answers := ask(ctx, s, query{group: group, changes: true}, func(ctx context.Context, n node) (posted, error) {
		full, err := n.post(ctx, group, id, message)
		return posted{full: full}, err
	})
	done, full := count{s: s}, 0
	for v := range answers.all(ctx) {
		switch {
		case v.err != nil:
			done.fail(v.link, v.err)
		case v.value.full:
			done.excuse(v.link, "has no room for the message")
			full++
		default:
			if err := done.add(v.link, ""); err != nil {
				return err
			}
		}
		if done.reached() {
			return nil
		}
	}
	if full == len(s.links) { // else it lies somewhere, or may
		return store.ErrFull
	}
	return done.short(ctx, "post")
}

// posted is the answer to a message.
type posted struct {
	stamp
	full bool
}
