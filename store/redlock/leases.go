package redlock

import (
	"context"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Renew implements store.Leases. Nodes that do not hold the lease get it, and count from the next time on; also where this
// time too few have renewed it, since a node may be missing only because another candidate held it when the lease was granted.
func (s *Store) Renew(ctx context.Context, l store.Lease) (store.Grant, error) {
	if err := store.CheckRenewal(l); err != nil {
		return store.Grant{}, err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return store.Grant{}, err
	}
	defer end()
	l.TTL = l.TTL.Truncate(time.Millisecond)
	t := s.known(l)
	if t.lost() {
		return store.Grant{}, store.ErrLost
	}
	longest, began := s.remember(l.Group, l.TTL, 0), time.Now()
	t.asks(began)
	answers := ask(ctx, s, query{group: l.Group, changes: true}, func(ctx context.Context, n node) (renewed, error) {
		return n.renew(ctx, l, t.leads())
	})
	done := count{s: s}
	var clocks []time.Time
	var heard []vote[renewed]
	lost, ended := 0, 0
	for v := range answers.all(ctx) {
		heard = append(heard, v)
		why := ""
		if v.err == nil {
			why = barred(v.value.stamp, v.durable, longest.lease)
		}
		switch {
		case v.err != nil:
			done.fail(v.link, v.err)
		case v.value.Outcome == renewLost:
			done.excuse(v.link, "does not hold the lease for it")
			lost++
		case v.value.Outcome == renewEnded:
			done.excuse(v.link, "does not know its session")
			ended++
		case why != "":
			done.excuse(v.link, why)
		default:
			if err := done.add(v.link, v.value.Run); err != nil {
				return store.Grant{}, err
			}
			clocks = append(clocks, v.value.Clock)
		}
		switch spare := len(s.links) - s.quorum; {
		case done.reached():
			s.promise(l.Group, l.Replica, began.Add(l.TTL), true)
			s.mend(ctx, l, began, heard, answers)
			return store.Grant{TTL: l.TTL, Time: median(clocks)}, nil
		case lost > spare:
			t.lose()
			return store.Grant{}, store.ErrLost
		case lost+ended > spare && ended > 0:
			return store.Grant{}, store.ErrEnded
		}
	}
	for _, v := range heard {
		s.repair(ctx, l, t, v)
	}
	return store.Grant{}, done.short(ctx, "renew")
}

// repair gives the lease, in the background, to a node that has said that it does not hold it, and then the records. No other
// lease can have been granted and ended meanwhile: the node would know a higher token, and refuse.
func (s *Store) repair(ctx context.Context, l store.Lease, t *term, v vote[renewed]) {
	if v.err != nil || v.value.Outcome == renewDone {
		return
	}
	answers := ask(ctx, s, query{group: l.Group, changes: true, to: []*link{v.link}}, func(ctx context.Context, n node) (renewed, error) {
		var info []byte
		if t.lost() {
			return renewed{}, store.ErrLost
		}
		if t != nil {
			info = t.info
		}
		return n.repair(ctx, l, info, t.leads())
	})
	if t != nil {
		finish(ctx, s, answers, func(v vote[renewed]) {
			if v.err == nil && v.value.Outcome == renewOutrun {
				t.outrun(v.link)
			}
			s.holding(ctx, t, v)
		})
	}
}

// holding notes that a node holds the lease, and has it given the records where it lacks them.
func (s *Store) holding(ctx context.Context, t *term, v vote[renewed]) {
	if v.err == nil && v.value.Outcome == renewDone {
		t.met(v.link, v.value.Run, v.durable)
		s.tend(ctx, t, v.link)
	}
}

// mend repairs, in the background, what is missing on some nodes now that a majority has renewed the lease.
func (s *Store) mend(ctx context.Context, l store.Lease, began time.Time, heard []vote[renewed], answers *votes[renewed]) {
	t := s.known(l)
	if t != nil {
		t.last(began, l.TTL)
	}
	mend := func(v vote[renewed]) {
		s.repair(ctx, l, t, v)
		if t != nil {
			s.holding(ctx, t, v)
		}
	}
	for _, v := range heard {
		mend(v)
	}
	finish(ctx, s, answers, mend)
}

// Release implements store.Leases.
func (s *Store) Release(ctx context.Context, l store.Lease) error {
	if err := store.CheckLease(l); err != nil {
		return err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	event := tag(ctx)
	return s.most(ctx, "release", l.Group, func(ctx context.Context, n node) error { return n.release(ctx, l, event) })
}

// most has something done on all nodes; it is done when a majority says so.
func (s *Store) most(ctx context.Context, method, group string, do func(context.Context, node) error) error {
	done := count{s: s}
	for v := range ask(ctx, s, query{group: group, changes: true}, func(ctx context.Context, n node) (plain, error) {
		return plain{}, do(ctx, n)
	}).all(ctx) {
		if v.err != nil {
			done.fail(v.link, v.err)
			continue
		}
		if err := done.add(v.link, ""); err != nil {
			return err
		}
		if done.reached() {
			return nil
		}
	}
	return done.short(ctx, method)
}

// Leader implements store.Leases.
func (s *Store) Leader(ctx context.Context, group string) (store.Leader, error) {
	if err := store.CheckName("group", group); err != nil {
		return store.Leader{}, err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return store.Leader{}, err
	}
	defer end()
	answers := ask(ctx, s, query{group: group}, func(ctx context.Context, n node) (led, error) {
		h, err := n.leader(ctx, group)
		return led{holder: h}, err
	})
	told := count{s: s}
	var leaders []holder
	for v := range answers.all(ctx) {
		if v.err != nil {
			told.fail(v.link, v.err)
			continue
		}
		if err := told.add(v.link, ""); err != nil {
			return store.Leader{}, err
		}
		if v.value.Token > 0 { // a campaign that has no token yet leads nobody
			leaders = append(leaders, v.value.holder)
		}
		h, n := most(leaders)
		if n >= s.quorum {
			var left []time.Duration
			for _, other := range leaders {
				if h.same(other) {
					left = append(left, other.Remaining)
				}
			}
			return store.Leader{Replica: h.Replica, Token: h.Token, Remaining: last(left, s.quorum)}, nil
		}
		if n+len(s.links)-len(told.links) < s.quorum {
			return store.Leader{}, store.ErrNoLeader
		}
	}
	return store.Leader{}, told.short(ctx, "leader")
}

// led is who a node says holds the lease.
type led struct {
	stamp
	holder
}
