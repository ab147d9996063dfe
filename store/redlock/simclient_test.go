package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// simGroup is the group of a simulation.
const simGroup = "g"

// simClient is a process with a store of its own, that campaigns, leads, posts and has sessions as election and scheduler
// do. Its fields belong to the root, save where it says so.
type simClient struct {
	*simScene
	name   string
	store  store.Store
	ways   []*simLink  // of it
	closed atomic.Bool // it is being closed
	forks  atomic.Uint64
	rand   *rand.Rand // its life's
	ctx    context.Context
	cancel context.CancelFunc
	paused time.Time // it stands still until then
	dead   bool      // it was killed: nothing of it reaches a node
	done   chan struct{}

	replica simReplica // where the plan wants the real scheduler

	id      string // of its session; its life's, like what follows
	lives   int
	started bool
	floor   uint64
}

// simDrift is how much of a grant is not trusted, whatever the clocks.
func simDrift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }

// simGuard is how long before the end of a grant nobody believes in it any more.
func simGuard(ttl time.Duration) time.Duration { return max(50*time.Millisecond, ttl/10) }

// rest waits as the client does: it goes on when the root says so.
func (c *simClient) rest(ctx context.Context, d time.Duration) bool { return world.Rest(ctx, d, nil) }

func (c *simClient) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(c.rand.Int64N(int64(hi-lo)))
}

func (c *simClient) chance(p float64) bool { return c.rand.Float64() < p }

// live is the life of the process.
func (c *simClient) live() {
	defer close(c.done)
	defer c.disconnect()
	c.rebirth()
	var tasks sync.WaitGroup
	if c.plan.posts {
		tasks.Go(c.post)
	}
	for c.rest(c.ctx, c.between(0, c.plan.ttl/4)) {
		if c.plan.sessions && c.chance(0.3) {
			c.join()
			continue
		}
		c.campaign()
	}
	tasks.Wait()
}

// rebirth gives the process another session.
func (c *simClient) rebirth() {
	c.lives++
	c.id, c.started = c.name+"-"+strconv.Itoa(c.lives), false
}

// call bounds one try.
func (c *simClient) call() (context.Context, context.CancelFunc) {
	return context.WithTimeout(c.ctx, max(200*time.Millisecond, c.plan.ttl/5))
}

// join refreshes the session, and looks who else has one.
func (c *simClient) join() {
	sent, ttl := time.Now(), 3*c.plan.ttl
	ctx, cancel := c.call()
	granted, err := c.store.Join(ctx, simGroup, store.Replica{ID: c.id}, ttl, !c.started)
	cancel()
	switch {
	case err == nil:
		c.started = true
		c.judge.lives(c.id, sent.Add(min(granted, ttl)-simDrift(ttl)-simGuard(ttl)))
	case errors.Is(err, store.ErrEnded):
		c.judge.ended(c.id, sent)
		c.rebirth()
	}
	since := time.Now()
	ctx, cancel = c.call()
	all, err := c.store.Replicas(ctx, simGroup)
	cancel()
	if err == nil {
		c.judge.replicas(c.name, since, all)
	}
}

// campaign tries to lead once.
func (c *simClient) campaign() {
	nonce := fmt.Sprintf("%016x%016x", c.rand.Uint64(), c.rand.Uint64())
	open := false // an answer is missing
	for range 4 {
		sent := time.Now()
		ctx, cancel := c.call()
		lease, err := c.store.Acquire(ctx, simGroup, store.Candidate{
			Replica: store.Replica{ID: c.id}, Nonce: nonce, TTL: c.plan.ttl, Session: 3 * c.plan.ttl, Start: !c.started, Floor: c.floor,
		})
		cancel()
		held, isHeld := errors.AsType[*store.HeldError](err)
		switch {
		case err == nil:
			c.started = true
			c.floor = max(c.floor, lease.Token)
			t := &simLease{simClient: c, Lease: lease}
			if t.extend(sent, lease.TTL) {
				t.lead()
				return
			}
			open = true
		case isHeld:
			c.started = true
			c.floor = max(c.floor, held.Leader.Token)
			if open {
				c.release(store.Lease{Group: simGroup, Replica: c.id, Nonce: nonce})
			}
			c.rest(c.ctx, min(held.Leader.Remaining, c.plan.ttl)+c.between(0, 20*time.Millisecond))
			return
		case errors.Is(err, store.ErrEnded):
			c.judge.ended(c.id, sent)
			c.rebirth()
			return
		case errors.Is(err, store.ErrPermanent):
			c.refused(err)
			c.rest(c.ctx, c.plan.ttl)
			return
		case store.Definite(err):
			return
		default:
			open = true
		}
		if !c.rest(c.ctx, c.between(50*time.Millisecond, 200*time.Millisecond)) {
			break
		}
	}
	if open {
		c.release(store.Lease{Group: simGroup, Replica: c.id, Nonce: nonce})
	}
}

// release gives a lease up, bounded.
func (c *simClient) release(l store.Lease) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), max(200*time.Millisecond, c.plan.ttl/5))
	defer cancel()
	_ = c.store.Release(ctx, l)
}

// post puts messages into the inbox.
func (c *simClient) post() {
	chance := rand.New(rand.NewPCG(c.seed, simHash(c.name+" posts")))
	for c.rest(c.ctx, time.Duration(chance.Int64N(int64(2*c.plan.ttl)))) {
		id := fmt.Sprintf("%016x-%s", time.Now().UnixNano(), c.name)
		for range 5 {
			ctx, cancel := c.call()
			err := c.store.Post(ctx, simGroup, id, []byte("of "+c.name))
			cancel()
			if err == nil {
				c.judge.posted(id)
				break
			}
			if !c.rest(c.ctx, time.Duration(chance.Int64N(int64(200*time.Millisecond)))) {
				break
			}
		}
	}
}

// simLease is one term of a client.
type simLease struct {
	*simClient
	store.Lease
	term  *simTerm
	state int
	next  uint64 // number of a commit

	mu       sync.Mutex
	deadline time.Time
	lost     bool
}

// extend says how long the grant of a call that was sent then is good for, and reports whether it is.
func (t *simLease) extend(sent time.Time, ttl time.Duration) bool {
	ttl = min(ttl, t.plan.ttl)
	deadline := sent.Add(ttl - simDrift(t.plan.ttl))
	valid := deadline.Add(-simGuard(t.plan.ttl))
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.lost || !now.Before(valid) || !t.deadline.IsZero() && !now.Before(t.deadline.Add(-simGuard(t.plan.ttl))):
		return false
	case t.term == nil:
		t.term = t.judge.elected(t.name, t.Token, deadline, valid)
	case deadline.After(t.deadline):
		t.judge.renewed(t.term, deadline, valid)
	}
	t.deadline = deadline
	if t.started && t.plan.sessions {
		t.judge.lives(t.Replica, valid)
	}
	return true
}

// leads reports whether the term is still worth something.
func (t *simLease) leads() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.lost && t.ctx.Err() == nil && time.Now().Before(t.deadline.Add(-simGuard(t.plan.ttl)))
}

func (t *simLease) lose() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lost = true
}

// until bounds a call by the term's deadline.
func (t *simLease) until() (context.Context, context.CancelFunc) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return context.WithTimeout(t.ctx, min(time.Until(t.deadline), max(200*time.Millisecond, t.plan.ttl/5)))
}

// lead is one term.
func (t *simLease) lead() {
	ctx, end := context.WithCancel(t.ctx)
	var renewals sync.WaitGroup
	vanish := t.chance(t.plan.vanish)
	renewals.Go(func() { t.renew(ctx) })
	if t.plan.commits == 0 {
		for long := t.between(0, t.plan.hold); long > 0 && t.leads() && t.rest(t.ctx, min(long, t.plan.ttl/4)); {
			long -= t.plan.ttl / 4
		}
	} else if t.takeOver() {
		t.work()
	}
	if vanish {
		end() // it stops renewing, and says nothing
		renewals.Wait()
		t.rest(t.ctx, t.between(0, 2*t.plan.ttl))
		t.judge.resign(t.term)
		return
	}
	t.judge.resign(t.term)
	end()
	renewals.Wait()
	t.release(t.Lease)
}

// renew renews every third of the lease, until ctx ends.
func (t *simLease) renew(ctx context.Context) {
	chance := rand.New(rand.NewPCG(t.seed, t.Token))
	wait := t.plan.ttl / 3
	for t.rest(ctx, wait) && t.leads() {
		sent := time.Now()
		call, cancel := t.until()
		g, err := t.store.Renew(call, t.Lease)
		cancel()
		switch {
		case err == nil:
			if !t.extend(sent, g.TTL) {
				t.lose()
				return
			}
			wait = t.plan.ttl / 3
		case store.Definite(err):
			t.lose()
			return
		default:
			wait = 50*time.Millisecond + time.Duration(chance.Int64N(int64(150*time.Millisecond)))
		}
	}
}

// simRead is read when a term begins, in this order.
var simRead = []string{"job", "run", "history/j", "seen"}

// takeOver reads the whole ledger.
func (t *simLease) takeOver() bool {
	t.next = 1
	for _, b := range simRead {
		records, ok := t.read(b)
		if !ok {
			return false
		}
		t.state = t.judge.read(t.term, t.state, b, records)
	}
	return true
}

// read reads a bucket, as often as it takes.
func (t *simLease) read(bucket string) (map[string]string, bool) {
	for t.leads() {
		ctx, cancel := t.until()
		all, err := make(map[string]string), error(nil)
		for r, e := range t.store.Read(ctx, t.Group, &t.Lease, bucket) {
			if err = e; e == nil {
				all[r.Key] = string(r.Value)
			}
		}
		cancel()
		switch {
		case err == nil:
			return all, true
		case errors.Is(err, store.ErrPermanent):
			t.refused(err)
			t.lose()
		case store.Definite(err):
			t.lose()
		}
		t.rest(t.ctx, t.between(10*time.Millisecond, 100*time.Millisecond))
	}
	return nil, false
}

// work commits, reads and looks into the inbox.
func (t *simLease) work() {
	var fresh []string
	for range t.rand.IntN(2 * t.plan.commits) {
		if !t.rest(t.ctx, t.between(0, t.plan.hold/time.Duration(t.plan.commits))) || !t.leads() {
			return
		}
		switch x := t.rand.IntN(10); {
		case x < 3:
			since := time.Now()
			records, ok := t.read(store.InboxBucket)
			if !ok {
				return
			}
			fresh = t.judge.inbox(t.term, since, t.state, records)
		case x < 4:
			b := simRead[t.rand.IntN(len(simRead))]
			records, ok := t.read(b)
			if !ok {
				return
			}
			t.judge.read(t.term, t.state, b, records)
		default:
			if !t.commit(fresh) {
				return
			}
			fresh = nil
		}
	}
}

// commit makes one commit, and asks as often as it takes.
func (t *simLease) commit(messages []string) bool {
	messages = messages[:min(len(messages), 20)]
	id, changes := t.judge.propose(t.term, t.next, t.state, messages)
	for t.leads() {
		ctx, cancel := t.until()
		err := t.store.Commit(ctx, t.Lease, t.next, changes)
		cancel()
		t.judge.committed(t.term, id, err)
		if err == nil {
			t.state = id
			t.next++
			return true
		}
		if store.Definite(err) {
			t.lose()
			return false
		}
		t.rest(t.ctx, t.between(10*time.Millisecond, 100*time.Millisecond))
	}
	return false
}
