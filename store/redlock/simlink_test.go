package redlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/store"
)

// simLink is the way of one client to one node: it is the node that the client's store sees.
type simLink struct {
	client *simClient
	to     *simNode
	who    string // "c1>n2"
	back   string // "n2>c1"
	closed atomic.Bool
}

var errReset = errors.New("connection reset")

// simFate is what becomes of one call.
type simFate struct {
	err     error         // answered instead of the node
	request time.Duration // how long the request is on its way; it arrives also when the caller has given up
	reply   time.Duration // how long the reply is
	lost    bool          // the request never arrives, and the caller waits
	mute    bool          // the reply never arrives, and the caller waits
	again   time.Duration // the request arrives a second time, so much later
	fault   string        // for the reader; "" without one
}

type simAnswer struct {
	value any
	err   error
}

// through carries a call to the node, and the answer back.
func through[T any](ctx context.Context, l *simLink, op, about string, do func(n *simNode) T) (answer T, err error) {
	if l.client == nil { // there is nothing between the two
		return do(l.to), nil
	}
	if l.closed.Load() {
		return answer, errors.New("the client is closed")
	}
	what := op + " " + about + " " + simNameOf(ctx)
	if ctx.Err() == nil {
		answers := make(chan simAnswer, 1)
		l.client.bus.put(l.who, what, func() {
			l.send(what, func() any { return do(l.to) }, answers)
		})
		select {
		case a := <-answers:
			answer, _ = a.value.(T)
			return answer, a.err
		case <-ctx.Done():
		}
	}
	l.client.turn(l.who + " gives up " + what)
	return answer, ctx.Err()
}

// send decides what becomes of a call.
func (l *simLink) send(what string, do func() any, answers chan<- simAnswer) {
	s := l.client.simScene
	f := s.fate(l)
	s.trace.note(l.who, what, f.fault)
	life := l.to.life
	arrive := func() (any, bool) {
		if l.to.down || l.to.life != life || s.links[l.who] || l.client.dead {
			return nil, false
		}
		v := do()
		s.trace.note(l.who, what, "arrives:", simDigest(v))
		return v, true
	}
	switch {
	case f.err != nil:
		s.bus.reach(l.client, f.reply, func() { answers <- simAnswer{nil, f.err} })
	case !f.lost:
		l.carry(f.request, func() {
			v, ok := arrive()
			if f.again > 0 {
				l.carry(f.again, func() { arrive() })
			}
			switch {
			case f.mute || s.links[l.back] || l.client.dead:
			case !ok:
				s.bus.reach(l.client, f.reply, func() { answers <- simAnswer{nil, errReset} })
			default:
				s.bus.reach(l.client, f.reply, func() { answers <- simAnswer{v, nil} })
			}
		})
	}
}

// carry has something done at the node, when that does not hang.
func (l *simLink) carry(d time.Duration, do func()) {
	l.client.bus.after(d, func() {
		if wait := time.Until(l.to.hung); wait > 0 {
			l.carry(wait, do)
			return
		}
		do()
	})
}

// Latencies of a healthy network.
const (
	simLeast = 20 * time.Microsecond
	simMost  = 2 * time.Millisecond
)

// fate draws what becomes of a call.
func (s *simScene) fate(l *simLink) simFate {
	b := s.bus
	f := simFate{request: b.between(simLeast, simMost), reply: b.between(simLeast, simMost)}
	if s.healthy || b.chance(s.plan.quiet) {
		if l.to.down && b.chance(0.5) {
			f.err, f.fault = errReset, "reset"
		}
		return f
	}
	long := s.plan.ttl + s.plan.ttl/2
	switch b.rand.IntN(6) {
	case 0:
		f.err, f.fault = errReset, "reset"
	case 1:
		f.lost, f.fault = true, "request lost"
	case 2:
		f.mute, f.fault = true, "reply lost"
	case 3:
		f.request += b.between(0, long)
		f.fault = "request late"
	case 4:
		f.reply += b.between(0, long)
		f.fault = "reply late"
	case 5:
		f.again = b.between(0, 2*long)
		f.fault = "comes twice"
	}
	s.faults[f.fault]++
	return f
}

// notify brings a notice to the client, or does not.
func (l *simLink) notify(w *simWatcher, what hub.Notice) {
	if l.client == nil {
		return
	}
	s := l.client.simScene
	if s.links[l.back] || what.Kind == hub.News && !s.healthy && s.bus.chance(0.2) {
		return
	}
	s.bus.reach(l.client, s.bus.between(simLeast, simMost), func() {
		if !w.over() && !l.closed.Load() {
			w.listener(what)
		}
	})
}

func (l *simLink) name() string { return l.to.name }

func (l *simLink) identity(ctx context.Context) (identity, error) {
	return through(ctx, l, "identity", "", func(n *simNode) identity { return identity{Run: n.run(), Durable: n.durable} })
}

func (l *simLink) acquire(ctx context.Context, group string, c claim) (claimed, error) {
	return through(ctx, l, "acquire", c.ID, func(n *simNode) claimed { return n.acquire(group, c) })
}

type simSettled struct {
	done bool
	stamp
}

func (l *simLink) settle(ctx context.Context, lease store.Lease, attempt string) (bool, stamp, error) {
	a, err := through(ctx, l, "settle", lease.Replica, func(n *simNode) simSettled {
		return simSettled{n.settle(lease, attempt), n.stamp()}
	})
	return a.done, a.stamp, err
}

func (l *simLink) renew(ctx context.Context, lease store.Lease, vouch bool) (renewed, error) {
	return through(ctx, l, "renew", lease.Replica, func(n *simNode) renewed { return n.renew(lease, vouch) })
}

func (l *simLink) repair(ctx context.Context, lease store.Lease, info []byte, vouch bool) (renewed, error) {
	return through(ctx, l, "repair", lease.Replica, func(n *simNode) renewed { return n.repair(lease, info, vouch) })
}

type simNothing struct{}

func (l *simLink) release(ctx context.Context, lease store.Lease, event string) error {
	_, err := through(ctx, l, "release", lease.Replica, func(n *simNode) simNothing { n.release(lease, event); return simNothing{} })
	return err
}

func (l *simLink) withdraw(ctx context.Context, lease store.Lease, attempt, event string) error {
	_, err := through(ctx, l, "withdraw", lease.Replica, func(n *simNode) simNothing {
		n.withdraw(lease, attempt, event)
		return simNothing{}
	})
	return err
}

func (l *simLink) leader(ctx context.Context, group string) (holder, error) {
	return through(ctx, l, "leader", "", func(n *simNode) holder { return n.leader(group) })
}

func (l *simLink) join(ctx context.Context, group string, r store.Replica, ttl time.Duration, start bool) (time.Duration, stamp, error) {
	a, err := through(ctx, l, "join", r.ID, func(n *simNode) simJoined { return n.join(group, r, ttl, start) })
	return a.left, a.stamp, err
}

func (l *simLink) leave(ctx context.Context, group, replicaID string) error {
	_, err := through(ctx, l, "leave", replicaID, func(n *simNode) simNothing { n.leave(group, replicaID); return simNothing{} })
	return err
}

func (l *simLink) replicas(ctx context.Context, group string) ([]store.Replica, stamp, error) {
	a, err := through(ctx, l, "replicas", "", func(n *simNode) simReplicas { return n.replicas(group) })
	return a.all, a.stamp, err
}

func (l *simLink) head(ctx context.Context, group string, lease *store.Lease) (report, error) {
	return through(ctx, l, "head", "", func(n *simNode) report { return n.head(group, lease) })
}

func (l *simLink) write(ctx context.Context, w write) (written, error) {
	return through(ctx, l, "write", fmt.Sprint(w.To), func(n *simNode) written { return n.write(w) })
}

func (l *simLink) stage(ctx context.Context, group, transfer string, step int, changes []store.Change) error {
	failed, err := through(ctx, l, "stage", transfer+" "+strconv.Itoa(step)+" "+strconv.Itoa(len(changes)), func(n *simNode) error {
		return n.stage(group, transfer, step, changes)
	})
	return errors.Join(err, failed)
}

func (l *simLink) install(ctx context.Context, lease store.Lease, transfer string, to head) (written, error) {
	return through(ctx, l, "install", transfer, func(n *simNode) written { return n.install(lease, transfer, to) })
}

func (l *simLink) vouch(ctx context.Context, group string) (report, error) {
	return through(ctx, l, "vouch", "", func(n *simNode) report { return n.vouch(group) })
}

func (l *simLink) buckets(ctx context.Context, group string) ([]string, report, error) {
	a, err := through(ctx, l, "buckets", "", func(n *simNode) simBucketList { return n.buckets(group) })
	return a.names, a.report, err
}

func (l *simLink) read(ctx context.Context, group string, lease *store.Lease, bucket string, keys []string) (page, error) {
	return through(ctx, l, "read", bucket+" "+strconv.Itoa(len(keys)), func(n *simNode) page { return n.read(group, lease, bucket, keys) })
}

func (l *simLink) post(ctx context.Context, group, id string, message []byte) (bool, error) {
	return through(ctx, l, "post", id, func(n *simNode) bool { return n.post(group, id, message) })
}

func (l *simLink) deliver(ctx context.Context, group string, messages []store.Record) error {
	_, err := through(ctx, l, "deliver", strconv.Itoa(len(messages)), func(n *simNode) simNothing {
		n.deliver(group, messages)
		return simNothing{}
	})
	return err
}

func (l *simLink) watch(ctx context.Context, group string, t store.Topic, listener func(hub.Notice)) error {
	w := &simWatcher{link: l, over: func() bool { return ctx.Err() != nil }, group: group, topic: t, listener: listener}
	if l.client == nil {
		return nil
	}
	l.client.bus.put(l.who, "watch "+strconv.Itoa(int(t)), func() {
		l.to.watchers = append(l.to.watchers, w)
		if !l.to.down {
			l.notify(w, hub.Notice{Kind: hub.Stands})
		}
	})
	return nil
}

func (l *simLink) close() error {
	l.closed.Store(true)
	return nil
}
