package storetest

import (
	"fmt"
	"strings"
	"sync"

	"github.com/go-singleton/singleton/store"
)

var commitRules = []rule{
	{name: "a commit puts and removes", check: func(e *env) {
		l := e.lead("a", "n1")
		e.commit(l, 1, put("job", "x", "1"), put("job", "y", "2"), put("history/x", "1", "h"))
		e.commit(l, 2, remove("job", "x"), put("job", "z", "3"), remove("job", "none"), remove("none", "none"))
		e.equal(e.records("job"), "y=2 z=3 ")
		e.equal(e.records("history/x"), "1=h ")
		e.equal(e.records("history/y"), "")
		e.equal(e.records("history"), "")
	}},
	{name: "values are any bytes", check: func(e *env) {
		l := e.lead("a", "n1")
		e.must(e.s.Commit(e.ctx, l, 1, []store.Change{
			{Bucket: "job", Key: "binary", Value: []byte("\x00\r\n\xff%s")}, {Bucket: "job", Key: "empty"},
		}))
		e.equal(e.records("job"), "binary=\x00\r\n\xff%s empty= ")
	}},
	{name: "a commit of no changes counts", check: func(e *env) {
		l := e.lead("a", "n1")
		e.commit(l, 1)
		e.want(e.s.Commit(e.ctx, l, 3, nil), store.ErrGap)
		e.commit(l, 2)
	}},
	{name: "the position is the last commit's", check: func(e *env) {
		e.position(0, 0)
		first := e.lead("a", "n1")
		e.position(0, 0)
		e.commit(first, 1)
		e.commit(first, 2)
		e.position(first.Token, 2)
		e.release(first)
		second := e.lead("b", "n2")
		e.position(first.Token, 2)
		e.commit(second, 1)
		e.position(second.Token, 1)
	}},
	{name: "the number applied last is done and not applied again", check: func(e *env) {
		l := e.lead("a", "n1")
		e.commit(l, 1, put("job", "x", "1"))
		e.commit(l, 1, put("job", "x", "other"))
		e.equal(e.records("job"), "x=1 ")
		e.release(l)
		e.commit(l, 1, put("job", "x", "other"))
		e.lead("b", "n2")
		e.commit(l, 1, put("job", "x", "other"))
		e.equal(e.records("job"), "x=1 ")
	}},
	{name: "B49 an older number changes nothing", check: func(e *env) {
		l := e.lead("a", "n1")
		e.commit(l, 1, put("job", "x", "1"))
		e.commit(l, 2, put("job", "x", "2"))
		e.commit(l, 3, put("job", "x", "3"))
		e.want(e.s.Commit(e.ctx, l, 1, []store.Change{put("job", "x", "late")}), store.ErrStale)
		e.release(l)
		e.want(e.s.Commit(e.ctx, l, 2, []store.Change{put("job", "x", "late")}), store.ErrStale)
		e.equal(e.records("job"), "x=3 ")
	}},
	{name: "a gap changes nothing", check: func(e *env) {
		l := e.lead("a", "n1")
		e.want(e.s.Commit(e.ctx, l, 2, []store.Change{put("job", "x", "2")}), store.ErrGap)
		e.commit(l, 1)
		e.want(e.s.Commit(e.ctx, l, 3, []store.Change{put("job", "x", "3")}), store.ErrGap)
		e.equal(e.records("job"), "")
	}},
	{name: "S1 only the holder commits", check: func(e *env) {
		l := e.lead("a", "n1")
		for _, other := range []store.Lease{
			{Group: "g", Replica: "a", Nonce: "n2", Token: l.Token},
			{Group: "g", Replica: "b", Nonce: "n1", Token: l.Token},
			{Group: "g", Replica: "a", Nonce: "n1", Token: l.Token - 1},
			{Group: "g", Replica: "a", Nonce: "n1", Token: l.Token + 1},
			{Group: "h", Replica: "a", Nonce: "n1", Token: l.Token},
		} {
			e.want(e.s.Commit(e.ctx, other, 1, []store.Change{put("job", "x", "1")}), store.ErrLost)
		}
		e.release(l)
		e.want(e.s.Commit(e.ctx, l, 1, []store.Change{put("job", "x", "1")}), store.ErrLost)
		e.lead("b", "n2")
		e.want(e.s.Commit(e.ctx, l, 1, []store.Change{put("job", "x", "1")}), store.ErrLost)
		e.equal(e.records("job"), "")
	}},
	{name: "B18 a lease that has ended commits nothing", check: func(e *env) {
		c := candidate("a", "n1")
		c.TTL = short
		l := e.acquire("g", c)
		e.awaitNoLeader()
		e.want(e.s.Commit(e.ctx, l, 1, []store.Change{put("job", "x", "1")}), store.ErrLost)
	}},
	{name: "numbers go on while Acquire returns the same lease and start anew with another", check: func(e *env) {
		l := e.lead("a", "n1")
		e.commit(l, 1)
		l = e.lead("a", "n1")
		e.commit(l, 2)
		e.release(l)
		l = e.lead("a", "n2")
		e.want(e.s.Commit(e.ctx, l, 3, nil), store.ErrGap)
		e.commit(l, 1)
	}},
	{name: "all buckets of a commit are in one step", check: func(e *env) {
		for round := range 30 {
			e.raceOneTerm(round)
		}
	}},
	{name: "a commit may be as large as every store takes and no larger", check: func(e *env) {
		l := e.lead("a", "n1")
		most := []store.Change{}
		for i := range store.MaxChanges {
			most = append(most, put("job", fmt.Sprintf("k%03d", i), "v"))
		}
		e.commit(l, 1, most...)
		e.want(e.s.Commit(e.ctx, l, 2, append(most, put("job", "more", "v"))), store.ErrTooLarge)

		value := strings.Repeat("v", store.MaxValue)
		e.commit(l, 2, put("run", "k", value))
		e.want(e.s.Commit(e.ctx, l, 3, []store.Change{put("run", "k", value+"v")}), store.ErrTooLarge)

		left := store.MaxBytes
		full := []store.Change{}
		for i := 0; left > 0; i++ {
			c := put("big", fmt.Sprint(i), "")
			left -= len(c.Bucket) + len(c.Key)
			c.Value = []byte(value[:min(left, len(value))])
			left -= len(c.Value)
			full = append(full, c)
		}
		e.commit(l, 3, full...)
		last := &full[len(full)-1]
		last.Value = append(last.Value, 'v')
		e.want(e.s.Commit(e.ctx, l, 4, full), store.ErrTooLarge)
		n, err := e.read(&l, "big")
		e.must(err)
		e.equal(n, len(full))
	}},
}

func (e *env) position(token, number uint64) {
	e.Helper()
	t, n, err := e.s.Position(e.ctx, "g")
	e.must(err)
	e.equal(fmt.Sprint(t, n), fmt.Sprint(token, number))
}

// raceOneTerm lets a leader commit as fast as it can while another takes the lease from it: what the other reads under
// its lease is what the first was told, and nothing comes after.
func (e *env) raceOneTerm(round int) {
	e.Helper()
	first := e.lead("a", fmt.Sprintf("a%d", round))
	var wg sync.WaitGroup
	done := 0
	wg.Go(func() {
		for n := 1; ; n++ {
			v := fmt.Sprintf("%d-%d", round, n)
			if e.s.Commit(e.ctx, first, uint64(n), []store.Change{put("job", "x", v), put("run", "x", v)}) != nil {
				return
			}
			done = n
		}
	})
	e.until(func() bool {
		token, _, err := e.s.Position(e.ctx, "g")
		return err != nil || token == first.Token
	})
	e.release(first)
	second := e.lead("b", fmt.Sprintf("b%d", round))
	job, run := e.records("job"), e.records("run")
	wg.Wait()
	e.equal(job, fmt.Sprintf("x=%d-%d ", round, done))
	e.equal(run, job)
	e.equal(e.records("job")+e.records("run"), job+run)
	e.release(second)
}
