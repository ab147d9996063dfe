package histories

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

const (
	group  = "g"
	bucket = "job"
	key    = "value"
)

// recorder collects the calls of all clients by one clock.
type recorder struct {
	begin time.Time

	mu    sync.Mutex
	calls history
}

func newRecorder() *recorder { return &recorder{begin: time.Now()} }

// now is monotonic.
func (r *recorder) now() int64 { return int64(time.Since(r.begin)) }

func (r *recorder) add(o operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, o)
}

// history is what has been recorded so far.
func (r *recorder) history() history {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.calls.prepare()
}

// client is one of several, with a network of its own. Its calls are made by one goroutine.
type client struct {
	t        *testing.T
	id       int
	proxies  []*netproxy.Proxy // one for each server
	store    store.Store
	put      func(ctx context.Context, value string) error // past the store; nil where nobody does
	lag      time.Duration                                 // for which the servers may keep a lease that is over
	dim      bool                                          // see Backend, also of early
	early    bool
	recorder *recorder
	ttl      time.Duration
	pace     time.Duration // of what goes wrong
	random   *rand.Rand

	campaign campaign
	lease    store.Lease // Token 0: none
	number   uint64      // of the last commit that was answered
	open     bool        // a commit was not
	value    string      // that it puts
	values   int         // drawn so far

	mu    sync.Mutex
	still time.Time // until when the client stands still
}

func newClient(t *testing.T, b *Backend, r *recorder, id int, ttl time.Duration, seed uint64) *client {
	c := &client{
		t: t, id: id, recorder: r, ttl: ttl, pace: ttl, lag: b.Lag, dim: b.Dim, early: b.Early,
		random: rand.New(rand.NewPCG(seed, uint64(id))), campaign: campaign{id, 1},
	}
	var addrs []string
	for _, addr := range b.Addrs {
		p := netproxy.Start(t, addr)
		c.proxies, addrs = append(c.proxies, p), append(addrs, p.Addr())
	}
	c.store, c.put = b.Open(t, addrs, ttl)
	return c
}

// stand makes the client stand still until d from now, as a paused process does: what it was about to do, it does then.
func (c *client) stand(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.still = time.Now().Add(d)
}

func (c *client) stillness() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Until(c.still)
}

// call makes one call, writes it down and returns it with its answer.
func (c *client) call(o operation, limit time.Duration, do func(context.Context, *operation) error) operation {
	for d := c.stillness(); d > 0; d = c.stillness() {
		pause(context.Background(), d)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	o.client, o.lag, o.dim, o.early, o.called = c.id, int64(c.lag), c.dim, c.early, c.recorder.now()
	err := do(ctx, &o)
	o.returned = c.recorder.now()
	if o.outcome = word(err); o.outcome == unknown {
		if errors.Is(err, store.ErrPermanent) {
			c.t.Errorf("%v: %v", o, err)
		}
		o.returned, o.seen = math.MaxInt64, answer{}
	}
	c.recorder.add(o)
	return o
}

func word(err error) outcome {
	if _, ok := errors.AsType[*store.HeldError](err); ok {
		return held
	}
	for _, e := range []struct {
		is   error
		word outcome
	}{
		{store.ErrLost, lost}, {store.ErrEnded, ended}, {store.ErrStale, stale}, {store.ErrGap, gap}, {store.ErrNoLeader, vacant},
	} {
		if errors.Is(err, e.is) {
			return e.word
		}
	}
	if err != nil {
		return unknown
	}
	return done
}

// led notes whom an answer names as the leader.
func (o *operation) led(l store.Leader) error {
	o.seen.token = l.Token
	if _, err := fmt.Sscanf(l.Replica, "r%d", &o.seen.client); err != nil {
		return fmt.Errorf("leader %q: %w", l.Replica, err)
	}
	return nil
}

// acquire campaigns once; a grant is kept in c.lease.
func (c *client) acquire(limit time.Duration) operation {
	return c.call(operation{action: acquire, campaign: c.campaign, ttl: c.ttl}, limit, func(ctx context.Context, o *operation) error {
		l, err := c.store.Acquire(ctx, group, store.Candidate{
			Replica: store.Replica{ID: replica(c.id)}, Nonce: c.campaign.String(), TTL: c.ttl, Session: c.ttl, Start: true,
		})
		if h, ok := errors.AsType[*store.HeldError](err); ok {
			return errors.Join(err, o.led(h.Leader))
		}
		if err == nil {
			if l.Token != c.lease.Token {
				c.number, c.open = 0, false
			}
			c.lease, o.seen.token = l, l.Token
		}
		return err
	})
}

func (c *client) renew(limit time.Duration) operation {
	o := operation{action: renew, campaign: c.campaign, token: c.lease.Token, ttl: c.ttl}
	return c.call(o, limit, func(ctx context.Context, _ *operation) error {
		_, err := c.store.Renew(ctx, c.lease)
		return err
	})
}

// release gives the campaign up, whether it was granted anything or not; the next one is another.
func (c *client) release(limit time.Duration) operation {
	l := store.Lease{Group: group, Replica: replica(c.id), Nonce: c.campaign.String()}
	o := c.call(operation{action: release, campaign: c.campaign}, limit, func(ctx context.Context, _ *operation) error {
		return c.store.Release(ctx, l)
	})
	c.abandon()
	return o
}

// abandon goes on to the next campaign.
func (c *client) abandon() {
	c.campaign.round++
	c.lease, c.number, c.open = store.Lease{}, 0, false
}

// draw returns a value that nobody has written.
func (c *client) draw() string {
	c.values++
	return fmt.Sprintf("%d-%d", c.id, c.values)
}

// commit puts the value under the next number, or asks again for the commit that has got no answer.
func (c *client) commit(limit time.Duration) operation {
	if !c.open {
		c.value = c.draw()
	}
	o := c.commitNumber(c.number+1, c.value, limit)
	if c.open = o.outcome == unknown; o.outcome == done {
		c.number++
	}
	return o
}

func (c *client) commitNumber(number uint64, value string, limit time.Duration) operation {
	o := operation{action: commit, campaign: c.campaign, token: c.lease.Token, number: number, value: value}
	return c.call(o, limit, func(ctx context.Context, _ *operation) error {
		return c.store.Commit(ctx, c.lease, number, []store.Change{{Bucket: bucket, Key: key, Value: []byte(value)}})
	})
}

// write puts a value where commits do, past the store: the holder of a lock without fencing writes like this.
func (c *client) write(limit time.Duration) operation {
	o := operation{action: write, campaign: c.campaign, token: c.lease.Token, value: c.draw()}
	return c.call(o, limit, func(ctx context.Context, o *operation) error {
		return c.put(ctx, o.value)
	})
}

// readOwn reads under the lease, read without one.
func (c *client) readOwn(limit time.Duration) operation {
	o := operation{action: readOwn, campaign: c.campaign, token: c.lease.Token}
	return c.call(o, limit, func(ctx context.Context, o *operation) error { return c.look(ctx, &c.lease, o) })
}

func (c *client) read(limit time.Duration) operation {
	return c.call(operation{action: readAll}, limit, func(ctx context.Context, o *operation) error { return c.look(ctx, nil, o) })
}

func (c *client) look(ctx context.Context, l *store.Lease, o *operation) error {
	for record, err := range c.store.Read(ctx, group, l, bucket) {
		if err != nil {
			return err
		}
		o.seen.value = string(record.Value)
	}
	return nil
}

func (c *client) leader(limit time.Duration) operation {
	return c.call(operation{action: leader}, limit, func(ctx context.Context, o *operation) error {
		l, err := c.store.Leader(ctx, group)
		if err == nil {
			err = o.led(l)
		}
		return err
	})
}

func (c *client) position(limit time.Duration) operation {
	return c.call(operation{action: position}, limit, func(ctx context.Context, o *operation) (err error) {
		o.seen.token, o.seen.number, err = c.store.Position(ctx, group)
		return err
	})
}

// pause returns false when ctx ends before d has passed.
func pause(ctx context.Context, d time.Duration) bool { return world.Rest(ctx, d, nil) }
