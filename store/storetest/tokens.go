package storetest

import (
	"fmt"

	"github.com/go-singleton/singleton/store"
)

var tokenRules = []rule{
	{name: "E3 tokens grow from term to term", check: func(e *env) {
		last := uint64(0)
		for i := range 20 {
			l := e.lead(fmt.Sprintf("r%d", i%3), fmt.Sprintf("n%d", i))
			if l.Token <= last {
				e.Fatalf("token %d after %d", l.Token, last)
			}
			last = l.Token
			e.release(l)
		}
	}},
	{name: "E3 a token is above the highest that its candidate has seen", check: func(e *env) {
		c := candidate("a", "n1")
		c.Floor = 1 << 52
		l := e.acquire("g", c)
		if l.Token <= c.Floor {
			e.Fatalf("token %d, floor %d", l.Token, c.Floor)
		}
		e.release(l)
		next := e.lead("b", "n2")
		if next.Token <= l.Token {
			e.Fatalf("token %d after %d", next.Token, l.Token)
		}
	}},
	{name: "E3 tokens are exact next to the largest", check: func(e *env) {
		c := candidate("a", "n1")
		c.Floor = store.MaxToken - 3
		for i := range uint64(3) {
			c.Nonce = fmt.Sprintf("n%d", i)
			l := e.acquire("g", c)
			e.equal(l.Token, store.MaxToken-2+i)
			e.commit(l, 1, put("job", "k", "v"))
			token, _, err := e.s.Position(e.ctx, "g")
			e.must(err)
			e.equal(token, l.Token)
			e.release(l)
			c.Floor = 0
		}
		c.Nonce = "n4"
		_, err := e.s.Acquire(e.ctx, "g", c)
		e.want(err, store.ErrPermanent)
	}},
	{name: "a floor that leaves no token is refused for good", check: func(e *env) {
		for _, floor := range []uint64{store.MaxToken, store.MaxToken + 1, 1<<64 - 1} {
			c := candidate("a", "n1")
			c.Floor = floor
			_, err := e.s.Acquire(e.ctx, "g", c)
			e.want(err, store.ErrPermanent)
		}
	}},
	{name: "B5 tokens grow when the store has lost its data", wipes: true, check: func(e *env) {
		first := e.lead("a", "n1")
		e.commit(first, 1, put("job", "k", "v"))
		e.harness.Wipe(e.T)
		_, err := e.s.Renew(e.ctx, first)
		e.want(err, store.ErrLost)
		e.want(e.s.Commit(e.ctx, first, 2, nil), store.ErrLost)
		e.release(first)
		second := e.lead("b", "n2") // whose clock alone makes it higher
		if second.Token <= first.Token {
			e.Fatalf("token %d after %d", second.Token, first.Token)
		}
		e.harness.Wipe(e.T)
		c := candidate("a", "n3")
		c.Floor = 1 << 52
		third := e.acquire("g", c)
		if third.Token <= c.Floor {
			e.Fatalf("token %d, floor %d", third.Token, c.Floor)
		}
		token, number, err := e.s.Position(e.ctx, "g")
		e.must(err)
		e.equal(token+number, uint64(0))
	}},
}
