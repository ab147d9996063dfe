package redlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// How long a campaign rests when candidates have got in each other's way: a random part of a time that doubles.
const (
	minRest = 10 * time.Millisecond
	maxRest = 320 * time.Millisecond
)

// errSplit says that this try has no majority, and that another may have one soon.
var errSplit = errors.New("redlock: acquire: the votes are split")

// Acquire implements store.Leases. Candidates that get in each other's way try again, after a random rest, until one of them
// has the lease or ctx ends.
func (s *Store) Acquire(ctx context.Context, group string, c store.Candidate) (store.Lease, error) {
	if err := store.CheckCandidate(group, c); err != nil {
		return store.Lease{}, err
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return store.Lease{}, err
	}
	defer end()
	c.TTL, c.Session = c.TTL.Truncate(time.Millisecond), c.Session.Truncate(time.Millisecond)
	longest := s.remember(group, c.TTL, c.Session)
	for rest := minRest; ; rest = min(2*rest, maxRest) {
		l, err := s.try(ctx, group, c, longest)
		if !errors.Is(err, errSplit) {
			return l, err
		}
		w := world.From(ctx)
		if !world.Rest(ctx, w.Between(0, rest), nil) {
			return store.Lease{}, fmt.Errorf("%w: %w", errSplit, ctx.Err())
		}
	}
}

// attempt names a try. Each name begins with more than the one before, also that of another store on the same machine: a request
// of an earlier try that arrives late must not take a lease over from a later one, or what takes the earlier one back ends the lease
// of a leader.
func (s *Store) attempt(ctx context.Context) string {
	now := world.From(ctx).Wall().UnixMicro()
	s.mu.Lock()
	s.tried = max(s.tried+1, now)
	tried := s.tried
	s.mu.Unlock()
	return fmt.Sprintf("%016d%s", tried, tag(ctx))
}

// campaign is one try of a candidate.
type campaign struct {
	*Store
	group   string
	claim   claim
	began   time.Time
	longest lasting

	granted []vote[claimed] // by nodes whose vote counts or not
	voters  count           // those whose vote counts
	held    []holder
	ended   []*link // that do not know the session
	gone    int     // of these, those that cannot have forgotten it
	unsure  int     // of those that have granted it, those that may have known of a higher token
	repeats bool    // a node knows the lease already, with a token: somebody may rely on it

	relied atomic.Bool // as repeats, but as soon as the node has said so, also when nobody has heard it
	won    atomic.Bool // it has the lease
}

// try asks all nodes once. When a majority has answered, and not granted the lease, only those are waited for that are no more
// than slow: whoever waits for a silent node keeps the votes that another candidate needs.
func (s *Store) try(ctx context.Context, group string, c store.Candidate, longest lasting) (store.Lease, error) {
	p := &campaign{
		Store: s, group: group, claim: claim{Candidate: c, Attempt: s.attempt(ctx)}, began: time.Now(),
		longest: longest, voters: count{s: s},
	}
	answers := ask(ctx, s, query{group: group, changes: true}, func(ctx context.Context, n node) (claimed, error) {
		got, err := n.acquire(ctx, group, p.claim)
		if err == nil && got.Outcome == claimGranted && got.Token > 0 {
			p.relied.Store(true)
		}
		return got, err
	})
	waiting, enough := context.WithCancel(ctx)
	defer enough()
	var late *time.Timer
	missing := slices.Clone(s.links)
	for v := range answers.all(waiting) {
		missing = slices.DeleteFunc(missing, func(l *link) bool { return l == v.link })
		over, err := p.hear(v, answers.left)
		if err != nil {
			p.withdraw(ctx, "")
			if errors.As(err, new(*store.HeldError)) {
				p.reviveSession(ctx, p.ended)
				finish(ctx, s, answers, func(v vote[claimed]) {
					if v.err == nil && v.value.Outcome == claimEnded {
						p.reviveSession(ctx, []*link{v.link})
					}
				})
			}
			return store.Lease{}, err
		}
		if over {
			break
		}
		if p.doubtful() || len(p.held)+len(p.granted)+len(p.ended) < p.quorum {
			continue
		}
		patience := patience(missing)
		if patience <= 0 {
			break
		}
		if late == nil {
			late = time.AfterFunc(patience, enough)
			defer late.Stop()
		} else {
			late.Reset(patience)
		}
	}
	if !p.voters.reached() {
		p.withdraw(ctx, "")
		return store.Lease{}, p.failed(ctx)
	}
	l, err := p.settle(ctx, answers)
	if err != nil {
		p.withdraw(ctx, tag(ctx))
		return store.Lease{}, err
	}
	if !s.lead(l, c.Info, p.began) {
		return store.Lease{}, store.ErrLost
	}
	s.promise(group, c.ID, p.began.Add(c.TTL), true)
	p.won.Store(true)
	p.even(ctx, l, nil)
	return l, nil
}

// even has the session end with the lease, also earlier, now that a majority has granted it: an attempt that comes to
// nothing must not shorten a session that runs live on. A renewal that was asked for meanwhile does it, too, and for as long as
// it says.
func (p *campaign) even(ctx context.Context, l store.Lease, to []*link) {
	l.TTL = p.claim.TTL
	ask(ctx, p.Store, query{group: p.group, changes: true, to: to}, func(ctx context.Context, n node) (renewed, error) {
		t := p.known(l)
		if t != nil && t.renewed(p.began) {
			return renewed{}, nil
		}
		return n.renew(ctx, l, t.leads())
	})
}

// hear takes an answer of phase 1. It is over when a majority has granted the lease, and one knows all tokens, or when it
// cannot any more; an error is what the candidate gets. So many answers are out.
func (p *campaign) hear(v vote[claimed], out int) (over bool, err error) {
	switch {
	case v.err != nil:
		p.voters.fail(v.link, v.err)
	case v.value.Outcome == claimLost:
		return true, store.ErrLost
	case v.value.Outcome == claimEnded:
		p.voters.excuse(v.link, "does not know the session")
		p.ended = append(p.ended, v.link)
		if barred(v.value.stamp, v.durable, p.longest.session) == "" {
			p.gone++
		}
		if p.gone > len(p.links)-p.quorum {
			return true, store.ErrEnded
		}
	case v.value.Outcome == claimHeld:
		p.held = append(p.held, v.value.Holder)
		p.voters.excuse(v.link, "is held by "+v.value.Holder.Replica)
		if h, n := most(p.held); n >= p.quorum {
			return true, &store.HeldError{Leader: p.leader(h)}
		}
	default:
		p.granted = append(p.granted, v)
		p.repeats = p.repeats || v.value.Token > 0
		if v.value.Unsure && !v.durable {
			p.unsure++
		}
		if why := barred(v.value.stamp, v.durable, p.longest.lease); why != "" {
			p.voters.excuse(v.link, why)
			break
		}
		if err := p.voters.add(v.link, v.value.Run); err != nil {
			return true, err
		}
	}
	_, holding := most(p.held)
	hopeless := p.voters.blocked() && holding+out < p.quorum
	knows := len(p.granted)-p.unsure >= p.quorum
	knows = knows && (!p.repeats || p.standing() >= p.quorum) // else the others are heard, too, as far as they are not silent
	return p.voters.reached() && knows || hopeless && !p.doubtful(), nil
}

// doubtful tells whether too few nodes know the session that is to be refreshed: whether it lives, only all answers tell.
func (p *campaign) doubtful() bool {
	return !p.claim.Start && len(p.held)+len(p.granted) < p.quorum
}

// failed says why phase 1 has not got a majority.
func (p *campaign) failed(ctx context.Context) error {
	err := p.voters.short(ctx, "acquire")
	known := len(p.held) + len(p.granted)
	switch {
	case len(p.ended) == 0 || known >= p.quorum || known+len(p.ended) < p.quorum:
	case p.lives(p.group, p.claim.ID):
		p.startSession(ctx, p.ended)
	default: // each try would lengthen it where it is known, and it could never again do what it is for
		return fmt.Errorf("%w: %w", store.ErrEnded, err)
	}
	if len(p.held) > 0 && len(p.held)+len(p.voters.links) >= p.quorum && ctx.Err() == nil {
		return fmt.Errorf("%w: %w", errSplit, err)
	}
	return err
}

// leader says who holds a majority, and until when he can hold it.
func (p *campaign) leader(h holder) store.Leader {
	var left []time.Duration
	for _, other := range p.held {
		if h.same(other) {
			left = append(left, other.Remaining)
		}
	}
	return store.Leader{Replica: h.Replica, Token: h.Token, Remaining: last(left, p.quorum)}
}

// settle gives the lease its token on the nodes that have granted it (phase 2).
func (p *campaign) settle(ctx context.Context, first *votes[claimed]) (store.Lease, error) {
	token, err := p.token()
	if err != nil {
		return store.Lease{}, err
	}
	l := store.Lease{Group: p.group, Replica: p.claim.ID, Nonce: p.claim.Nonce, Token: token}
	settle := func(ctx context.Context, to []*link) *votes[settlement] {
		return ask(ctx, p.Store, query{group: p.group, changes: true, to: to}, func(ctx context.Context, n node) (settlement, error) {
			ok, from, err := n.settle(ctx, l, p.claim.Attempt)
			return settlement{from, ok}, err
		})
	}
	var to []*link
	for _, v := range p.granted {
		to = append(to, v.link)
	}
	answers := settle(ctx, to)
	finish(ctx, p.Store, first, func(v vote[claimed]) { // a node that grants late gets the token, too
		if v.err == nil && v.value.Outcome == claimGranted {
			settle(ctx, []*link{v.link})
			if p.won.Load() { // else it is still asked with the others, after this
				p.even(ctx, l, []*link{v.link})
			}
		}
	})
	settled := count{s: p.Store}
	var clocks []time.Time
	for v := range answers.all(ctx) {
		i := slices.Index(p.voters.links, v.link)
		switch {
		case v.err != nil:
			settled.fail(v.link, v.err)
		case !v.value.ok:
			settled.excuse(v.link, "has taken the lease back")
		case i < 0: // its vote does not count
		case v.value.Run != p.voters.runs[i]:
			settled.excuse(v.link, "has restarted")
		default:
			if err := settled.add(v.link, v.value.Run); err != nil {
				return store.Lease{}, err
			}
			clocks = append(clocks, v.value.Clock)
		}
		if settled.reached() {
			break
		}
	}
	if !settled.reached() {
		err := settled.short(ctx, "acquire")
		if p.repeats || ctx.Err() != nil {
			return store.Lease{}, err
		}
		return store.Lease{}, fmt.Errorf("%w: %w", errSplit, err)
	}
	if over(p.began, p.claim.TTL) { // a majority that came together too late is none
		return store.Lease{}, fmt.Errorf("%w for %v, longer than the lease lasts", errSplit, time.Since(p.began))
	}
	granted := l // nodes that are asked yet go on reading l
	granted.Grant = store.Grant{TTL: p.claim.TTL, Time: median(clocks)}
	return granted, nil
}

// settlement is the answer of phase 2.
type settlement struct {
	stamp
	ok bool
}

// standing tells on how many nodes the lease stands already, with the highest token.
func (p *campaign) standing() (nodes int) {
	highest := uint64(0)
	for _, v := range p.granted {
		if v.value.Token > highest {
			highest, nodes = v.value.Token, 0
		}
		if v.value.Token == highest && highest > 0 {
			nodes++
		}
	}
	return nodes
}

// token returns what is above every token that a majority can have settled before: that of the lease itself, if it is known
// already, or a new one.
func (p *campaign) token() (uint64, error) {
	var known, counter, clock uint64
	for _, v := range p.granted {
		known, counter = max(known, v.value.Token), max(counter, v.value.Counter)
		clock = max(clock, uint64(max(0, v.value.Clock.UnixMicro())))
	}
	if known > 0 && known >= counter {
		if p.standing() >= p.quorum { // what one node has lost stands on the others
			return known, nil
		}
		fresh := true
		for _, v := range p.granted {
			fresh = fresh && (v.value.Token == known || v.value.Counter < known)
		}
		if fresh {
			return known, nil
		}
	}
	token := max(counter+1, clock, p.claim.Floor+1)
	if token > store.MaxToken {
		return 0, store.Permanent("no honest clock uses up the tokens: look for what has set one so high", fmt.Errorf("redlock: group %s has no token below 2^53 left", p.group))
	}
	return token, nil
}

// withdraw takes back what the campaign has been given, and will be, in the background. A lease that was there before
// stays: this was a repetition, and somebody may rely on it. Each node is asked after it has answered the claim.
func (p *campaign) withdraw(ctx context.Context, event string) {
	if p.repeats {
		return
	}
	l := store.Lease{Group: p.group, Replica: p.claim.ID, Nonce: p.claim.Nonce}
	ask(ctx, p.Store, query{group: p.group, changes: true}, func(ctx context.Context, n node) (plain, error) {
		if p.relied.Load() {
			return plain{}, nil
		}
		return plain{}, n.withdraw(ctx, l, p.claim.Attempt, event)
	})
}

// reviveSession starts the session on nodes that do not know it, when a majority has just lengthened it.
func (p *campaign) reviveSession(ctx context.Context, to []*link) {
	if len(to) > 0 && len(p.held)+len(p.granted) >= p.quorum {
		p.startSession(ctx, to)
	}
}

// startSession starts the session, in the background.
func (p *campaign) startSession(ctx context.Context, to []*link) {
	ask(ctx, p.Store, query{group: p.group, changes: true, to: to}, func(ctx context.Context, n node) (plain, error) {
		_, _, err := n.join(ctx, p.group, p.claim.Replica, p.claim.Session, true)
		return plain{}, err
	})
}

// same tells whether two nodes name one holder.
func (h holder) same(other holder) bool {
	return h.Replica == other.Replica && (h.Token > 0 && h.Token == other.Token || h.Attempt != "" && h.Attempt == other.Attempt)
}

// most returns who is named by most nodes, with the highest token that is known of him, and by how many.
func most(held []holder) (leader holder, nodes int) {
	for _, h := range held {
		n := 0
		for _, other := range held {
			if h.same(other) {
				n++
				h.Token = max(h.Token, other.Token)
			}
		}
		if n > nodes || n == nodes && h.Token > leader.Token {
			leader, nodes = h, n
		}
	}
	return leader, nodes
}

// last returns how long the last of n of these lasts, when the longest count.
func last(left []time.Duration, n int) time.Duration {
	slices.Sort(left)
	return left[len(left)-n]
}

// over tells whether a lease that was asked for at began has ended, by clocks that may run at different rates.
func over(began time.Time, ttl time.Duration) bool {
	return time.Since(began) >= ttl-drift(ttl)
}

func drift(ttl time.Duration) time.Duration { return ttl/100 + 2*time.Millisecond }
