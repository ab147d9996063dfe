package redisstore

import (
	"context"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/store"
)

// How renewals share round trips.
const (
	gathering = 20 * time.Millisecond  // for so long one waits for others
	urgent    = 150 * time.Millisecond // one whose call has less time waits for nobody
	maxBatch  = 100                    // in one pipeline: that many a bad reply can cost an attempt
	batches   = 4                      // at once, and renewals that wait for nobody, beside the other calls
)

// batch gathers the renewals of a store that come within a moment of each other, and sends those for one server in one
// pipeline. Each has an outcome of its own. It has goroutines only while something is under way.
type batch struct {
	store *Store
	slots chan struct{} // a crowd of other calls must not hold up renewals

	mu      sync.Mutex
	waiting []*renewal
	last    string              // nonce of the renewal before
	turned  time.Time           // when a renewal was of another lease than the one before
	apart   map[string]struct{} // nonces of those that a pipeline stopped being answered at: they go by themselves
}

// renewal is one that takes part in a batch.
type renewal struct {
	request
	ctx    context.Context // of the caller
	group  string
	nonce  string
	reload bool // the server has lost the script
	answer chan answer
}

// part is what goes to one server.
type part struct {
	client   redis.UniversalClient
	renewals []*renewal
}

func newBatch(s *Store) *batch {
	return &batch{store: s, slots: make(chan struct{}, batches), apart: map[string]struct{}{}}
}

// renew sends a renewal, together with others where it may wait for them.
func (b *batch) renew(ctx context.Context, l store.Lease, q request) (reply, error) {
	if !b.gathers(ctx, l) {
		q.slots = b.slots
		r, err := b.store.send(ctx, "renew", l.Group, q)
		if err == nil || refused(err) {
			b.forget(l.Nonce)
		}
		return r, err
	}
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	servers, err := b.store.begin(ctx) // until it is answered
	if err != nil {
		return reply{}, err
	}
	r := &renewal{request: q, ctx: ctx, group: l.Group, nonce: l.Nonce, answer: make(chan answer, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, r)
	first := len(b.waiting) == 1
	b.mu.Unlock()
	if first {
		time.AfterFunc(gathering, func() { b.flush(servers) })
	}
	var a answer
	select {
	case a = <-r.answer:
	case <-ctx.Done():
		select {
		case a = <-r.answer: // both at once: an answer is worth more
		default:
			a.err = ctx.Err()
		}
	}
	return b.store.read(ctx, "renew", a.got, a.err)
}

// gathers tells whether a renewal waits for others. It does not when no other lease has been renewed lately.
func (b *batch) gathers(ctx context.Context, l store.Lease) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last != "" && b.last != l.Nonce {
		b.turned = time.Now()
	}
	b.last = l.Nonce
	if end, ok := ctx.Deadline(); ok && time.Until(end) < urgent {
		return false
	}
	_, apart := b.apart[l.Nonce]
	return !apart && time.Since(b.turned) < l.TTL
}

// forget has the renewals of a lease go together with others again.
func (b *batch) forget(nonce string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.apart, nonce)
}

// flush sends what waits. Where the servers are slow, more comes together.
func (b *batch) flush(servers servers) {
	if b.store.slots != nil {
		b.slots <- struct{}{}
		defer func() { <-b.slots }()
	}
	b.mu.Lock()
	all := b.waiting
	b.waiting = nil
	b.mu.Unlock()
	var wanted []*renewal
	var groups []string
	var left time.Duration
	for _, r := range all {
		if err := r.ctx.Err(); err != nil {
			b.done(r, nil, err)
			continue
		}
		wanted, groups = append(wanted, r), append(groups, r.group)
		limit := callTimeout
		if end, ok := r.ctx.Deadline(); ok {
			limit = min(limit, time.Until(end))
		}
		left = max(left, limit)
	}
	// A part of the time is kept for handing out the answers that have come when no more do.
	ctx, cancel := context.WithTimeout(context.Background(), left*7/8)
	defer cancel()
	clients, err := servers.primaries(ctx, groups)
	var parts []part
	for i, r := range wanted {
		if err != nil {
			b.done(r, nil, err)
			continue
		}
		parts = assign(parts, clients[i], r)
	}
	b.send(ctx, servers, parts, hops)
}

// assign adds a renewal to the part of its server.
func assign(parts []part, client redis.UniversalClient, r *renewal) []part {
	for i := range parts {
		if p := &parts[i]; p.client == client && len(p.renewals) < maxBatch {
			p.renewals = append(p.renewals, r)
			return parts
		}
	}
	return append(parts, part{client, []*renewal{r}})
}

// send sends the parts at the same time, so that a server that does not answer delays no other.
func (b *batch) send(ctx context.Context, servers servers, parts []part, hops int) {
	var sent sync.WaitGroup
	for _, p := range parts {
		sent.Go(func() { b.pipeline(ctx, servers, p, hops) })
	}
	sent.Wait()
}

// pipeline sends a part, and again, as often as hops, what the server has not carried out: because another one owns the
// slot, or because it has lost the script.
func (b *batch) pipeline(ctx context.Context, servers servers, p part, hops int) {
	answers := exchange(ctx, p)
	var again []part
	broken := len(p.renewals) == 1 // one by itself costs the others nothing
	for i, r := range p.renewals {
		a := answers[i]
		if r.reload = redis.HasErrorPrefix(a.err, "NOSCRIPT"); r.reload && hops > 1 {
			again = assign(again, p.client, r)
			continue
		}
		next, asking := servers.heard(r.group, p.client, a.err)
		if next != nil && hops > 1 {
			r.asking = asking
			again = assign(again, next, r)
			continue
		}
		if a.err != nil && !refused(a.err) && !broken {
			broken = true // what comes after it may have failed because of it
			b.mu.Lock()
			b.apart[r.nonce] = struct{}{}
			b.mu.Unlock()
		}
		b.done(r, a.got, a.err)
	}
	if len(again) > 0 {
		b.send(ctx, servers, again, hops-1)
	}
}

// exchange sends one pipeline and returns an answer for each renewal.
func exchange(ctx context.Context, p part) []answer {
	pipe := p.client.Pipeline()
	asked, cmds := make([]*redis.Cmd, len(p.renewals)), make([]*redis.Cmd, len(p.renewals))
	loading := false
	for i, r := range p.renewals {
		if r.asking {
			asked[i] = pipe.Do(ctx, "ASKING")
		}
		if r.reload && !loading {
			loading = true // for all that come after it
			cmds[i] = r.script.Eval(ctx, pipe, r.keys, r.args...)
		} else {
			cmds[i] = r.script.EvalSha(ctx, pipe, r.keys, r.args...)
		}
	}
	_, _ = pipe.Exec(ctx) // each command has an outcome of its own
	answers := make([]answer, len(cmds))
	for i, cmd := range cmds {
		if asked[i] != nil && asked[i].Err() != nil {
			answers[i].err = asked[i].Err() // the script was sent on, and says less
		} else if answers[i].got = cmd.Val(); answers[i].got == nil { // a broken connection is also the error of those answered before
			answers[i].err = cmd.Err()
		}
	}
	return answers
}

// done hands a renewal its answer.
func (b *batch) done(r *renewal, got any, err error) {
	r.answer <- answer{got, err}
	b.store.calls.Done()
}
