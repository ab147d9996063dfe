package redlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
)

// TestModelNodeAnswersLikeARealOne asks a model node and a real server the same things, drawn at random, and compares the
// answers: what a simulation over model nodes shows is then true of servers, too.
func TestModelNodeAnswersLikeARealOne(t *testing.T) {
	real := realNode(t)
	for seed := range uint64(30) {
		model := &simLink{to: newSimNode(&simScene{plan: simPlan{page: 1 << 20}}, 0)}
		d := &twins{t: t, rand: rand.New(rand.NewPCG(seed, 1)), group: fmt.Sprintf("model-%d", seed), seed: seed, real: real, model: model}
		for range 400 {
			d.step()
			if t.Failed() {
				return
			}
		}
	}
}

// TestQ5WhatWasPutAsideForACopyEndsWithTheServer restarts a server that is being given the whole state: it may have lost some
// of what it has been given, and must not take the rest for all.
func TestQ5WhatWasPutAsideForACopyEndsWithTheServer(t *testing.T) {
	server := redistest.Start(t, redistest.AppendOnly())
	model := newSimNode(&simScene{plan: simPlan{page: 1 << 20}}, 0)
	for _, c := range []struct {
		name    string
		node    node
		restart func() error
	}{
		{"a real server", nodeAt(t, server), server.Restart},
		{"a model", &simLink{to: model}, func() error { model.life++; return nil }},
	} {
		ask := claim{Candidate: store.Candidate{Replica: store.Replica{ID: "a"}, Nonce: "n", TTL: time.Hour, Session: time.Hour, Start: true}, Attempt: "t"}
		l := store.Lease{Group: "g", Replica: "a", Nonce: "n", Token: 1, Grant: store.Grant{TTL: time.Hour}}
		stage := func(step int, key string) error {
			return c.node.stage(t.Context(), "g", "copy", step, []store.Change{{Bucket: "job", Key: key, Value: []byte("v")}})
		}
		to := head{At: point{1, 1}}
		_, err := c.node.acquire(t.Context(), "g", ask)
		if _, _, e := c.node.settle(t.Context(), l, "t"); e != nil {
			err = errors.Join(err, e)
		}
		err = errors.Join(err, c.node.stage(t.Context(), "g", "copy", 0, nil), stage(1, "first"), c.restart())
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if err := stage(2, "second"); err == nil {
			t.Errorf("%s takes a second page after a restart", c.name)
		}
		if got, err := c.node.install(t.Context(), l, "copy", to); err != nil || got.Effect != writeNothing {
			t.Errorf("%s makes what was put aside before a restart its state: %v, %v", c.name, got.Effect, err)
		}
		err = errors.Join(c.node.stage(t.Context(), "g", "again", 0, nil), c.node.stage(t.Context(), "g", "again", 0, nil))
		if got, e := c.node.install(t.Context(), l, "again", to); err != nil || e != nil || got.Effect != writeDone {
			t.Errorf("%s does not take a copy that began after the restart: %v, %v, %v", c.name, got.Effect, err, e)
		}
	}
}

// TestQ5APageOfACopyThatComesAgainChangesNothing sends a page again after the one that takes back what is on it.
func TestQ5APageOfACopyThatComesAgainChangesNothing(t *testing.T) {
	for name, n := range map[string]node{"a real server": realNode(t), "a model": &simLink{to: newSimNode(&simScene{plan: simPlan{page: 1 << 20}}, 0)}} {
		ask := claim{Candidate: store.Candidate{Replica: store.Replica{ID: "a"}, Nonce: "n", TTL: time.Hour, Session: time.Hour, Start: true}, Attempt: "t"}
		l := store.Lease{Group: "g", Replica: "a", Nonce: "n", Token: 1, Grant: store.Grant{TTL: time.Hour}}
		_, err := n.acquire(t.Context(), "g", ask)
		if _, _, e := n.settle(t.Context(), l, "t"); e != nil {
			err = errors.Join(err, e)
		}
		put, drop := store.Change{Bucket: "job", Key: "k", Value: []byte("v")}, store.Change{Bucket: "job", Key: "k", Delete: true}
		for step, changes := range [][]store.Change{nil, {put}, {drop}} {
			err = errors.Join(err, n.stage(t.Context(), "g", "copy", step, changes))
		}
		err = errors.Join(err, n.stage(t.Context(), "g", "copy", 1, []store.Change{put}), n.stage(t.Context(), "g", "copy", 3, nil))
		if got, e := n.install(t.Context(), l, "copy", head{At: point{1, 1}}); err != nil || e != nil || got.Effect != writeDone {
			t.Fatalf("%s: %v, %v, %v", name, got.Effect, err, e)
		}
		if p, err := n.read(t.Context(), "g", &l, "job", nil); err != nil || len(p.Keys) != 0 {
			t.Errorf("%s has %v, %v", name, p.Keys, err)
		}
	}
}

// TestQ5AMessageIsDeletedForGoodByTheStepAfter deletes a message by a commit that nothing follows on: whoever leads next, and does
// not know of the commit, finds the message.
func TestQ5AMessageIsDeletedForGoodByTheStepAfter(t *testing.T) {
	for name, n := range map[string]node{"a real server": realNode(t), "a model": &simLink{to: newSimNode(&simScene{plan: simPlan{page: 1 << 20}}, 0)}} {
		ctx, at := t.Context(), head{At: point{1, 0}}
		l := store.Lease{Group: "g", Replica: "a", Nonce: "n", Token: 1, Grant: store.Grant{TTL: time.Hour}}
		next := l
		next.Token = 2
		found := func(what string, want int, l *store.Lease) {
			t.Helper()
			p, err := n.read(ctx, "g", l, store.InboxBucket, nil)
			if err != nil || len(p.Keys) != want || len(p.Values) != want {
				t.Errorf("%s, %s: %v, %v", name, what, p.Keys, err)
			}
		}
		move := func(to head, changes ...store.Change) {
			t.Helper()
			got, err := n.write(ctx, write{Lease: l, From: at, To: to, Changes: changes})
			if err != nil || got.Effect != writeDone {
				t.Fatalf("%s: %v, %v", name, got.Effect, err)
			}
			at = to
		}
		step := func(changes ...store.Change) { t.Helper(); move(at.next(), changes...) }
		lead := func() {
			t.Helper()
			_, err := n.acquire(ctx, "g", claim{Candidate: store.Candidate{Replica: store.Replica{ID: "a"}, Nonce: l.Nonce, TTL: time.Hour, Session: time.Hour, Start: true}, Attempt: "t"})
			if _, _, e := n.settle(ctx, l, "t"); err != nil || e != nil {
				t.Fatalf("%s: %v, %v", name, err, e)
			}
		}
		take := func(transfer string) {
			t.Helper()
			err := n.stage(ctx, "g", transfer, 0, nil)
			if got, e := n.install(ctx, l, transfer, at); err != nil || e != nil || got.Effect != writeDone {
				t.Fatalf("%s: %v, %v, %v", name, got.Effect, err, e)
			}
		}
		lead()
		if _, err := n.post(ctx, "g", "m", []byte("v")); err != nil {
			t.Fatal(err)
		}
		take("first")
		found("posted", 1, &l)
		step(store.Change{Bucket: store.InboxBucket, Key: "m", Delete: true})
		found("deleted, for whoever deleted it", 0, &l)
		found("deleted, for anybody", 0, nil)
		found("deleted, for the next leader", 1, &next)
		take("second")
		found("after a copy of the whole state", 1, &l)
		step(store.Change{Bucket: store.InboxBucket, Key: "m", Delete: true})
		step()
		found("after the next step, for the next leader", 0, &next)
		take("third")
		found("after the next step and a copy", 0, &l)

		_, err := n.post(ctx, "g", "m", []byte("v"))
		step(store.Change{Bucket: store.InboxBucket, Key: "m", Delete: true})
		if err := errors.Join(err, n.release(ctx, l, "")); err != nil {
			t.Fatal(err)
		}
		l.Nonce, l.Token, next.Token = "n2", 2, 3
		lead()
		move(head{At: point{2, 0}, Base: at.position()})
		found("taken over by a leader, for the one after", 1, &next)
		step()
		found("after the first commit of a term, for the next leader", 0, &next)
	}
}

// TestQ4AnEarlierTryThatComesLateEndsNoLaterLease has a request of an earlier try of a campaign arrive when a later try leads,
// and then what takes the earlier one back.
func TestQ4AnEarlierTryThatComesLateEndsNoLaterLease(t *testing.T) {
	for name, n := range map[string]node{"a real server": realNode(t), "a model": &simLink{to: newSimNode(&simScene{}, 0)}} {
		ctx, l := t.Context(), store.Lease{Group: "g", Replica: "a", Nonce: "n", Token: 7, Grant: store.Grant{TTL: time.Hour}}
		try := func(i int) string { return fmt.Sprintf("%016dt", i) }
		acquire := func(i int, want outcome, token uint64) {
			t.Helper()
			got, err := n.acquire(ctx, "g", claim{
				Candidate: store.Candidate{Replica: store.Replica{ID: "a"}, Nonce: "n", TTL: time.Hour, Session: time.Hour, Start: true}, Attempt: try(i),
			})
			if err != nil || got.Outcome != want || got.Token != token {
				t.Fatalf("%s, try %d: outcome %v, token %d, %v", name, i, got.Outcome, got.Token, err)
			}
		}
		settle := func(i int) {
			t.Helper()
			if ok, _, err := n.settle(ctx, l, try(i)); err != nil || !ok {
				t.Fatalf("%s, try %d: settled: %v, %v", name, i, ok, err)
			}
		}
		withdraw := func(i int, stands bool) {
			t.Helper()
			err := n.withdraw(ctx, l, try(i), "")
			h, e := n.leader(ctx, "g")
			if err != nil || e != nil || (h.Token == l.Token) != stands {
				t.Fatalf("%s, try %d is taken back: token %d, %v, %v", name, i, h.Token, err, e)
			}
		}
		acquire(2, claimGranted, 0)
		settle(2)
		acquire(1, claimLost, 0)
		withdraw(1, true)
		acquire(3, claimGranted, l.Token) // a lost reply is asked for again
		settle(3)
		withdraw(2, true)
		withdraw(3, false)
		got, err := n.repair(ctx, l, nil, true)
		if err != nil || got.Outcome != renewDone {
			t.Fatalf("%s: repaired: %v, %v", name, got.Outcome, err)
		}
		acquire(4, claimGranted, l.Token)
		settle(4)
		withdraw(4, true)
	}
}

// realNode returns a node at a server of its own.
func realNode(t *testing.T) node { return nodeAt(t, redistest.Start(t)) }

func nodeAt(t *testing.T, s *redistest.Server) node {
	t.Helper()
	n := newRedisNode(s.Client().Options(), Config{Prefix: "twin"})
	t.Cleanup(func() {
		if err := n.close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// twins are two nodes that are to answer alike.
type twins struct {
	t           *testing.T
	rand        *rand.Rand
	group       string
	seed        uint64
	real, model node
	said        []string
	token       uint64
	transfers   int
	tries       int
}

func (d *twins) pick(of ...string) string { return of[d.rand.IntN(len(of))] }

func (d *twins) lease() store.Lease {
	return store.Lease{
		Group: d.group, Replica: d.pick("a", "a", "b"), Nonce: d.pick("n1", "n1", "n2", "n3"), Token: d.token - d.rand.Uint64N(min(d.token, 3)+1),
		Grant: store.Grant{TTL: time.Hour},
	}
}

// mine makes a lease that of whoever holds it, often, so that not everything is refused for that alone.
func (d *twins) mine(l *store.Lease) {
	if h, err := d.model.leader(d.ctx(), d.group); err == nil && h.Replica != "" && d.rand.IntN(4) > 0 {
		l.Replica = h.Replica
	}
}

// try names an attempt: one of the last.
func (d *twins) try(last int) string {
	if d.rand.IntN(4) == 0 {
		d.tries++
	}
	return fmt.Sprintf("%016dt", max(0, d.tries-d.rand.IntN(last)))
}

func (d *twins) head() head {
	h := head{At: point{d.token - d.rand.Uint64N(min(d.token, 2)+1), d.rand.Uint64N(3)}}
	if d.rand.IntN(4) == 0 {
		h.Base = point{1, d.rand.Uint64N(2)}
	}
	return h
}

func (d *twins) changes() (all []store.Change) {
	for _, b := range []string{"job", "run", "history/x", store.InboxBucket} {
		for _, k := range []string{"x", "y"} {
			if d.rand.IntN(3) == 0 {
				c := store.Change{Bucket: b, Key: k, Delete: b == store.InboxBucket || d.rand.IntN(3) == 0}
				if !c.Delete {
					c.Value = []byte(d.pick("", "1", "22"))
				}
				all = append(all, c)
			}
		}
	}
	return all
}

// step asks both the same.
func (d *twins) step() {
	r := d.rand
	l, at := d.lease(), d.head()
	replica := store.Replica{ID: d.pick("a", "b", "c"), Info: []byte("info")}
	attempt := d.try(4)
	var under *store.Lease
	if r.IntN(2) == 0 {
		under = &l
	}
	bucket := d.pick("job", "run", "history/x", store.InboxBucket)
	switch r.IntN(25) {
	case 0, 1, 2:
		attempt = d.try(2)
		c := claim{Candidate: store.Candidate{Replica: replica, Nonce: l.Nonce, TTL: time.Hour, Session: 2 * time.Hour, Start: r.IntN(3) > 0}, Attempt: attempt}
		d.both(fmt.Sprint("acquire ", c), func(n node) (any, error) { return n.acquire(d.ctx(), d.group, c) })
	case 3, 4, 5:
		if r.IntN(2) == 0 {
			d.token++
			l.Token = d.token
		}
		d.mine(&l)
		attempt = d.try(2)
		if h, err := d.model.leader(d.ctx(), d.group); err == nil && h.Attempt != "" && r.IntN(4) > 0 {
			attempt = h.Attempt
		}
		d.both(fmt.Sprint("settle ", l, attempt), func(n node) (any, error) {
			ok, s, err := n.settle(d.ctx(), l, attempt)
			return simSettled{ok, s}, err
		})
	case 6:
		vouch := r.IntN(2) == 0
		d.both(fmt.Sprint("renew ", l, vouch), func(n node) (any, error) { return n.renew(d.ctx(), l, vouch) })
	case 7:
		vouch := r.IntN(2) == 0
		d.both(fmt.Sprint("repair ", l, vouch), func(n node) (any, error) { return n.repair(d.ctx(), l, replica.Info, vouch) })
	case 8:
		if r.IntN(3) == 0 {
			l.Nonce = fmt.Sprint("m", r.IntN(20))
		}
		d.both(fmt.Sprint("release ", l), func(n node) (any, error) { return nil, n.release(d.ctx(), l, "e") })
	case 9:
		d.both(fmt.Sprint("withdraw ", l, attempt), func(n node) (any, error) { return nil, n.withdraw(d.ctx(), l, attempt, "e") })
	case 10:
		d.both("leader", func(n node) (any, error) { return n.leader(d.ctx(), d.group) })
	case 11:
		start, ttl := r.IntN(2) == 0, time.Duration(1+r.IntN(3))*time.Hour
		d.both(fmt.Sprint("join ", replica, start, ttl), func(n node) (any, error) {
			left, s, err := n.join(d.ctx(), d.group, replica, ttl, start)
			return simJoined{left, s}, err
		})
	case 12:
		d.both("leave "+replica.ID, func(n node) (any, error) { return nil, n.leave(d.ctx(), d.group, replica.ID) })
	case 13:
		d.both("replicas", func(n node) (any, error) {
			all, s, err := n.replicas(d.ctx(), d.group)
			slices.SortFunc(all, func(a, b store.Replica) int { return strings.Compare(a.ID, b.ID) })
			return simReplicas{all, s}, err
		})
	case 14:
		d.both("head", func(n node) (any, error) { return n.head(d.ctx(), d.group, under) })
	case 15, 16, 17:
		follow := r.IntN(2) == 0
		w := write{Lease: l, From: at, To: head{At: point{l.Token, r.Uint64N(3)}, Base: at.Base}, Changes: d.changes()}
		d.both(fmt.Sprint("write ", w), func(n node) (any, error) {
			if now, err := n.head(d.ctx(), d.group, nil); err == nil && follow {
				w.From = now.Head
			}
			return n.write(d.ctx(), w)
		})
	case 18, 19:
		d.install(l, head{At: point{l.Token, r.Uint64N(3)}, Base: at.At})
	case 20:
		d.both("buckets", func(n node) (any, error) {
			names, rep, err := n.buckets(d.ctx(), d.group)
			slices.Sort(names)
			return simBucketList{names, rep}, err
		})
	case 21:
		var keys []string
		if r.IntN(2) == 0 {
			keys = []string{"y", "nothing", "x"}
		}
		d.both(fmt.Sprint("read ", bucket, keys), func(n node) (any, error) {
			p, err := n.read(d.ctx(), d.group, under, bucket, keys)
			if keys != nil {
				p.Keys = nil
			}
			return d.sorted(p), err
		})
	case 22:
		id := d.pick("x", "y")
		d.both("post "+id, func(n node) (any, error) { return n.post(d.ctx(), d.group, id, []byte("message")) })
	case 23:
		messages := []store.Record{{Key: "x", Value: []byte("copy")}, {Key: d.pick("y", "z"), Value: []byte("copy")}}
		d.both(fmt.Sprint("deliver ", messages), func(n node) (any, error) { return nil, n.deliver(d.ctx(), d.group, messages) })
	case 24:
		if r.IntN(4) == 0 {
			d.both("vouch", func(n node) (any, error) { return n.vouch(d.ctx(), d.group) })
			return
		}
		d.lapse()
	}
}

// sorted orders a page that lists all keys.
func (d *twins) sorted(p page) page {
	if len(p.Keys) > 1 && len(p.Values) == len(p.Keys) {
		byKey := make(map[string][]byte)
		for i, k := range p.Keys {
			byKey[k] = p.Values[i]
		}
		slices.Sort(p.Keys)
		for i, k := range p.Keys {
			p.Values[i] = byKey[k]
		}
	}
	return p
}

// install stages some records, or none, and installs them.
func (d *twins) install(l store.Lease, to head) {
	d.transfers++
	transfer := fmt.Sprint("transfer", d.transfers)
	if d.rand.IntN(5) > 0 {
		d.both("stage "+transfer, func(n node) (any, error) { return nil, n.stage(d.ctx(), d.group, transfer, 0, nil) })
	}
	for range d.rand.IntN(4) {
		step := d.rand.IntN(4) // early, late, again, or in its place
		changes := slices.DeleteFunc(d.changes(), func(c store.Change) bool { return c.Bucket == store.InboxBucket })
		for range 1 + d.rand.IntN(2) {
			d.both(fmt.Sprint("stage ", transfer, step, changes), func(n node) (any, error) {
				return nil, n.stage(d.ctx(), d.group, transfer, step, changes)
			})
		}
	}
	d.both(fmt.Sprint("install ", l, transfer, to), func(n node) (any, error) { return n.install(d.ctx(), l, transfer, to) })
}

// lapse lets the lease end on both, if anybody holds it under a token.
func (d *twins) lapse() {
	for _, replica := range []string{"a", "b", "c"} {
		for _, nonce := range []string{"n1", "n2", "n3"} {
			for token := range d.token + 1 {
				l := store.Lease{Group: d.group, Replica: replica, Nonce: nonce, Token: token, Grant: store.Grant{TTL: time.Millisecond}}
				d.both(fmt.Sprint("renew shortly ", l), func(n node) (any, error) { return n.renew(d.ctx(), l, false) })
				if !strings.HasPrefix(d.said[len(d.said)-1], "renew shortly") || !strings.HasSuffix(d.said[len(d.said)-1], "done") {
					continue
				}
				for _, n := range []node{d.real, d.model} {
					for h, err := n.leader(d.ctx(), d.group); h.Replica != ""; h, err = n.leader(d.ctx(), d.group) {
						if err != nil {
							d.t.Fatal(err)
						}
					}
					for d.alive(n, replica) {
					}
				}
				return
			}
		}
	}
}

func (d *twins) alive(n node, replica string) bool {
	all, _, err := n.replicas(d.ctx(), d.group)
	if err != nil {
		d.t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(r store.Replica) bool { return r.ID == replica })
}

func (d *twins) ctx() context.Context { return d.t.Context() }

// both asks both and compares.
func (d *twins) both(what string, ask func(n node) (any, error)) {
	d.t.Helper()
	want, failed := ask(d.model)
	got, err := ask(d.real)
	d.said = append(d.said, what+": "+d.plain(want, failed))
	if a, b := d.plain(want, failed), d.plain(got, err); a != b {
		from := max(0, len(d.said)-30)
		d.t.Errorf("seed %d: %s\nmodel %s\nreal  %s\nbefore:\n%s", d.seed, what, a, b, strings.Join(d.said[from:], "\n"))
	}
}

// plain is an answer without what differs between any two servers: their runs and clocks.
func (d *twins) plain(v any, err error) string {
	if err != nil {
		return "error"
	}
	round := func(t time.Duration) time.Duration { return t.Round(time.Minute) }
	switch v := v.(type) {
	case claimed:
		v.Holder.Remaining = round(v.Holder.Remaining)
		v.stamp = stamp{}
		return fmt.Sprintf("%+v", v)
	case holder:
		v.Remaining = round(v.Remaining)
		return fmt.Sprintf("%+v", v)
	case simJoined:
		return round(v.left).String()
	case simReplicas:
		return fmt.Sprintf("%+v", v.all)
	case report, written, simBucketList, page:
		text := simDigest(v)
		if p, ok := v.(page); ok {
			var values []string
			for _, value := range p.Values {
				values = append(values, fmt.Sprintf("%q, missing %v", value, value == nil))
			}
			text = fmt.Sprint(p.Keys, values, text)
		}
		if b, ok := v.(simBucketList); ok {
			text = fmt.Sprint(b.names, text)
		}
		before, rest, _ := strings.Cut(text, " of ")
		marker, after, _ := strings.Cut(rest, ", ")
		return fmt.Sprintf("%s, marked: %v, %s", before, marker != "", after)
	}
	return simDigest(v)
}
