package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

var argumentRules = []rule{
	{name: "B7 a name that is not one is refused for good by each method", check: func(e *env) {
		for _, name := range []string{"", "a{b", "a}b", "a/b", "a:b", "a b", "a\nb", "*", "-a", ".", "ä", strings.Repeat("a", 129)} {
			for _, c := range calls(name, "r") {
				e.refused(c, name)
			}
			for _, c := range calls("g", name) {
				if c.replica {
					e.refused(c, name)
				}
			}
		}
	}},
	{name: "B7 a name of 128 bytes is one", check: func(e *env) {
		name := strings.Repeat("a", 128)
		c := candidate(name, "n1")
		e.acquire(name, c)
		e.equal(e.held(name, candidate("b", "n2")).Replica, name)
	}},
	{name: "candidates without a nonce or with impossible durations are refused for good", check: func(e *env) {
		for _, change := range []func(*store.Candidate){
			func(c *store.Candidate) { c.Nonce = "" },
			func(c *store.Candidate) { c.Nonce = "with blank" },
			func(c *store.Candidate) { c.Nonce = strings.Repeat("n", 65) },
			func(c *store.Candidate) { c.TTL = 0 },
			func(c *store.Candidate) { c.TTL = -time.Second },
			func(c *store.Candidate) { c.TTL = time.Millisecond - 1 },
			func(c *store.Candidate) { c.TTL = store.MaxDuration + 1 },
			func(c *store.Candidate) { c.Session = 0 },
			func(c *store.Candidate) { c.Session = store.MaxDuration + 1 },
		} {
			c := candidate("a", "n1")
			change(&c)
			_, err := e.s.Acquire(e.ctx, "g", c)
			e.want(err, store.ErrPermanent)
		}
		_, err := e.s.Renew(e.ctx, store.Lease{Group: "g", Replica: "a", Nonce: "n1", Token: 1})
		e.want(err, store.ErrPermanent)
		_, err = e.s.Join(e.ctx, "g", store.Replica{ID: "a"}, 0, true)
		e.want(err, store.ErrPermanent)
	}},
	{name: "info may have 4 KiB and no more", check: func(e *env) {
		most := make([]byte, store.MaxInfo)
		c := candidate("a", "n1")
		c.Info = most
		e.acquire("g", c)
		_, err := e.s.Join(e.ctx, "g", store.Replica{ID: "b", Info: most}, long, true)
		e.must(err)
		c = candidate("c", "n2")
		c.Info = append(most, 0)
		_, err = e.s.Acquire(e.ctx, "g", c)
		e.want(err, store.ErrTooLarge)
		_, err = e.s.Join(e.ctx, "g", c.Replica, long, true)
		e.want(err, store.ErrTooLarge)
		e.equal(e.ids(), "a b ")
	}},
	{name: "malformed commits are refused for good and change nothing", check: func(e *env) {
		l := e.lead("a", "n1")
		for _, changes := range [][]store.Change{
			{put("", "k", "v")}, {put("Job", "k", "v")}, {put("job/", "k", "v")}, {put("job/a/b", "k", "v")}, {put("job:x", "k", "v")},
			{put("job", "", "v")}, {put("job", "a b", "v")}, {put("job", "a\n", "v")}, {put("job", "ä", "v")},
			{put("job", strings.Repeat("k", 513), "v")},
			{put("job", "k", "v"), put("job", "k", "w")}, {put("job", "k", "v"), remove("job", "k")},
			{put("inbox", "k", "v")},
		} {
			e.want(e.s.Commit(e.ctx, l, 1, changes), store.ErrPermanent)
		}
		e.want(e.s.Commit(e.ctx, l, 0, nil), store.ErrPermanent)
		e.commit(l, 1, put("job", strings.Repeat("k", 512), "v"), put("job", "a{b}:*/%s", "v"))
	}},
	{name: "reading another group's bucket under a lease is refused for good", check: func(e *env) {
		l := e.acquire("h", candidate("a", "n1"))
		_, err := e.read(&l, "job")
		e.want(err, store.ErrPermanent)
		_, err = e.read(nil, "Job")
		e.want(err, store.ErrPermanent)
		e.want(e.s.Watch(e.ctx, "g", 99, func() {}), store.ErrPermanent)
	}},
}

// call is one method with arguments that name group and replica.
type call struct {
	method  string
	replica bool // it names one
	do      func(ctx context.Context, s store.Store) error
}

func calls(group, replica string) []call {
	l := store.Lease{Group: group, Replica: replica, Nonce: "n1", Token: 1, Grant: store.Grant{TTL: long}}
	return []call{
		{"Acquire", true, func(ctx context.Context, s store.Store) error {
			_, err := s.Acquire(ctx, group, candidate(replica, "n1"))
			return err
		}},
		{"Renew", true, func(ctx context.Context, s store.Store) error { _, err := s.Renew(ctx, l); return err }},
		{"Release", true, func(ctx context.Context, s store.Store) error { return s.Release(ctx, l) }},
		{"Leader", false, func(ctx context.Context, s store.Store) error { _, err := s.Leader(ctx, group); return err }},
		{"Watch", false, func(ctx context.Context, s store.Store) error {
			return s.Watch(ctx, group, store.LeaseFree, func() {})
		}},
		{"Join", true, func(ctx context.Context, s store.Store) error {
			_, err := s.Join(ctx, group, store.Replica{ID: replica}, long, true)
			return err
		}},
		{"Leave", true, func(ctx context.Context, s store.Store) error { return s.Leave(ctx, group, replica) }},
		{"Replicas", false, func(ctx context.Context, s store.Store) error { _, err := s.Replicas(ctx, group); return err }},
		{"Commit", true, func(ctx context.Context, s store.Store) error { return s.Commit(ctx, l, 1, nil) }},
		{"Read", false, func(ctx context.Context, s store.Store) error {
			for _, err := range s.Read(ctx, group, nil, "job") {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"Position", false, func(ctx context.Context, s store.Store) error { _, _, err := s.Position(ctx, group); return err }},
		{"Post", false, func(ctx context.Context, s store.Store) error { return s.Post(ctx, group, "1", nil) }},
	}
}

func (e *env) refused(c call, name string) {
	e.Helper()
	err := c.do(e.ctx, e.s)
	e.want(err, store.ErrPermanent)
	if name != "" && !strings.Contains(err.Error(), fmt.Sprintf("%.140q", name)) {
		e.Fatalf("%s: the error does not name %.140q: %v", c.method, name, err)
	}
}

var callRules = []rule{
	{name: "a call whose context has ended does nothing and says so", check: func(e *env) {
		ctx, cancel := context.WithCancel(e.ctx)
		cancel()
		before := e.state()
		for _, c := range calls("g", "r") {
			err := c.do(ctx, e.s)
			if err == nil || store.Definite(err) {
				e.Fatalf("%s: got %v", c.method, err)
			}
			e.want(err, context.Canceled)
		}
		e.equal(e.state(), before)
	}},
	{name: "calls after Close are refused for good", check: func(e *env) {
		e.lead("a", "n1")
		e.must(e.s.Close())
		for _, c := range calls("g", "r") {
			if err := c.do(e.ctx, e.s); !errors.Is(err, store.ErrPermanent) {
				e.Fatalf("%s: got %v", c.method, err)
			}
		}
		e.must(e.s.Close())
	}},
	{name: "Close ends what watches", check: func(e *env) {
		w := e.watch("g", store.LeaseFree)
		w.await(e)
		e.must(e.s.Close())
		w.none(e)
	}},
	{name: "the nonce is in no text", check: func(e *env) {
		l := e.lead("a", "s3cret")
		_, err := e.s.Acquire(e.ctx, "g", candidate("b", "s3cret2"))
		for _, text := range []string{fmt.Sprint(l), fmt.Sprintf("%v %+v %s", l, l, l), l.LogValue().String(), err.Error()} {
			if strings.Contains(text, "s3cret") {
				e.Fatalf("the nonce is in %q", text)
			}
		}
	}},
}
