package redlock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/go-singleton/singleton/store"
)

// restore finds the ledger for a leader: it takes the newest state that a majority has, of nodes that have granted the lease
// and have surely lost nothing, and writes it back to a majority under the lease's token. Before that the leader neither
// reads nor commits anything. The caller has the term's gate.
func (s *Store) restore(ctx context.Context, t *term) error {
	t.restored, t.open = false, nil
	group := t.lease.Group
	answers := ask(ctx, s, query{group: group}, func(ctx context.Context, n node) (report, error) {
		return n.head(ctx, group, &t.lease)
	})
	sure := count{s: s}
	var newest head
	lost, bare, doubtful, outrun := 0, 0, 0, 0
	for v := range answers.all(ctx) {
		switch {
		case v.err != nil:
			sure.fail(v.link, v.err)
			continue
		case v.value.blank() || v.value.doubt(v.durable) == "" && v.value.Head.position() == point{}:
			bare++
		}
		if !v.value.Held {
			sure.excuse(v.link, "does not hold the lease for this leader")
			if lost++; lost > len(s.links)-s.quorum {
				t.lose()
				return store.ErrLost
			}
			if t.isOutrun(v.link) && v.value.doubt(v.durable) == "" {
				outrun++
			}
			continue
		}
		if why := v.value.doubt(v.durable); why != "" {
			sure.excuse(v.link, why)
			doubtful++
			continue
		}
		if err := sure.add(v.link, v.value.Run); err != nil {
			return err
		}
		if v.value.Head.compare(newest) > 0 {
			newest = v.value.Head
		}
		if sure.reached() {
			break
		}
	}
	to := newest
	if newest.At.Token != t.lease.Token {
		to = head{At: point{Token: t.lease.Token}, Base: newest.position()}
	}
	var err error
	switch {
	case sure.reached():
		if newest.At.Token != t.lease.Token {
			if t.chosen != nil && t.chosen.From != newest {
				// A node may have what was found before, under this token: whoever reads both could not tell which one counts.
				return t.broken("the ledger is not what was found when this term began")
			}
			t.chosen = &write{From: newest, To: to}
		}
		err = s.move(ctx, t, write{Lease: t.lease, From: newest, To: to}, nil)
	case bare == len(s.links): // a new group, made on some nodes already or on none, or one of which nothing at all is left
		err = s.found(ctx, t, to)
	case len(sure.links)+outrun >= s.quorum:
		return t.broken("a server that is needed for the records has taken a higher token")
	default:
		return s.tooFew(ctx, t, &sure, doubtful)
	}
	if err != nil {
		if errors.Is(err, store.ErrGap) { // another store goes on with the same lease: look again
			err = errors.New("redlock: the ledger has changed while it was taken over")
		}
		return err
	}
	t.at, t.restored = to, true
	s.spells.End("ledger " + group)
	return nil
}

// broken says that a term cannot go on with the ledger, unless it is over anyway: then whoever leads may be why.
func (t *term) broken(why string) error {
	if t.past() {
		return fmt.Errorf("redlock: %s, and the lease is over", why)
	}
	return fmt.Errorf("%w: %s; a new term will look again, with a higher token", store.ErrGap, why)
}

// found makes an empty ledger.
func (s *Store) found(ctx context.Context, t *term, to head) error {
	transfer := tag(ctx)
	return s.move(ctx, t, write{Lease: t.lease, To: to}, func(ctx context.Context, n node) (written, error) {
		if err := n.stage(ctx, t.lease.Group, transfer, 0, nil); err != nil {
			return written{}, err
		}
		return n.install(ctx, t.lease, transfer, to)
	})
}

// tooFew says that records may have been lost, and what an operator can do.
func (s *Store) tooFew(ctx context.Context, t *term, sure *count, doubtful int) error {
	group := t.lease.Group
	err := sure.short(ctx, "take over the ledger")
	if doubtful == 0 {
		return err
	}
	err = fmt.Errorf("too few servers are sure to have all records of group %s: bring back those that are missing; "+
		"or go on with what is left, by singleton doctor --group %s --accept-loss (Store.Trust): %w", group, group, err)
	if s.spells.Begin("ledger "+group, "too few") {
		s.log.ErrorContext(ctx, "records may have been lost; nothing is claimed until enough servers are back or somebody accepts the loss",
			slog.String("group", group), slog.Any("error", err))
	}
	return err
}

// blank tells whether a node has never had a ledger, or nothing is left of it.
func (r report) blank() bool { return r.Marker == "" && r.Head == head{} }

// doubt says why a node counts for no record, "" when it counts: one that has restarted since it got the whole state may have
// lost some.
func (r report) doubt(durable bool) string {
	switch {
	case r.Marker == "":
		return "has no records of the group"
	case !durable && r.Marker != r.Run:
		return "has restarted since it got the records, and may have lost some"
	}
	return ""
}

// Trust lets servers' records of a group count as they are, also where some may have been lost; it is for an operator who
// knows that they are gone for good. Of the servers that answer it lets so many count as make a majority with those that are
// sure anyway, and first those with the newest records: the next leader, who needs all of them, goes on with the newest that
// are left. Ticks that had been claimed since may be claimed again. Running it again does no harm.
func (s *Store) Trust(ctx context.Context, group string) error {
	if err := store.CheckName("group", group); err != nil {
		return err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	answers := ask(ctx, s, query{group: group}, func(ctx context.Context, n node) (report, error) {
		return n.head(ctx, group, nil)
	})
	done := count{s: s}
	var doubtful []vote[report]
	for v := range answers.all(ctx) {
		switch {
		case v.err != nil:
			done.fail(v.link, v.err)
		case v.value.doubt(v.durable) != "":
			doubtful = append(doubtful, v)
		default:
			if err := done.add(v.link, v.value.Run); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(doubtful, func(a, b vote[report]) int {
		return cmp.Or(b.value.Head.compare(a.value.Head), cmp.Compare(a.link.index, b.link.index))
	})
	for _, v := range doubtful {
		if done.reached() {
			break
		}
		vouched := ask(ctx, s, query{group: group, changes: true, to: []*link{v.link}}, func(ctx context.Context, n node) (report, error) {
			return n.vouch(ctx, group)
		})
		if v, ok := vouched.next(ctx); !ok {
			break
		} else if v.err != nil {
			done.fail(v.link, v.err)
		} else if err := done.add(v.link, v.value.Run); err != nil {
			return err
		}
	}
	if done.reached() {
		return nil
	}
	return done.short(ctx, "trust")
}
