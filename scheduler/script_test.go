package scheduler

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/store"
)

// call says what a replica asks of the store.
type call struct {
	replica string
	op      string
	about   string // what tells calls of one kind apart
	changes []store.Change
}

// claims reports whether it is a commit that claims a tick of the job.
func (c call) claims(job string) bool { return c.changesRun(job, false) }

// ends reports whether it is a commit that closes a run of the job.
func (c call) ends(job string) bool { return c.changesRun(job, true) }

func (c call) changesRun(job string, closed bool) bool {
	for _, change := range c.changes {
		if change.Bucket == bucketRun && strings.HasPrefix(change.Key, job+"@") && change.Delete == closed {
			return true
		}
	}
	return false
}

var (
	errReset = errors.New("connection reset")
	errGone  = errors.New("the process is gone")
)

// fate is what becomes of one call.
type fate struct {
	err     error         // answered at once instead of the store
	request time.Duration // how long the request is on its way; it arrives also when the caller has given up
	reply   time.Duration // how long the reply is
	lost    bool          // the request never arrives, and the caller waits
	mute    bool          // the reply never arrives, and the caller waits
	swallow bool          // the store says yes, and has forgotten it
	again   time.Duration // the request arrives a second time, so much later
}

// script is a carrier that asks a function for the fate of each call.
type script struct {
	asking sync.Mutex // held while decide is called

	mu     sync.Mutex
	decide func(c call) fate
	calls  map[string]int // by replica and op
	late   sync.WaitGroup // requests and replies that are on their way
}

func newScript() *script { return &script{calls: make(map[string]int)} }

// follow replaces the function, once nobody asks the old one any more; nil is a script without faults.
func (s *script) follow(decide func(c call) fate) {
	s.asking.Lock()
	defer s.asking.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.decide = decide
}

// count returns how many calls of op, or with an empty op of any kind, a replica has made.
func (s *script) count(replica, op string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[replica+" "+op]
}

func (s *script) enter(c call) fate {
	s.mu.Lock()
	s.calls[c.replica+" "+c.op]++
	s.calls[c.replica+" "]++
	decide := s.decide
	s.mu.Unlock()
	if decide == nil {
		return fate{}
	}
	s.asking.Lock()
	defer s.asking.Unlock()
	return decide(c)
}

// Hint implements line.Carrier.
func (s *script) Hint(_ line.Call, hint func()) { hint() }

type answer struct {
	value any
	err   error
}

// Carry implements line.Carrier.
func (s *script) Carry(ctx context.Context, c line.Call, deliver func(context.Context) (any, error)) (any, error) {
	f := s.enter(call{replica: c.Replica, op: c.Op, about: c.About, changes: c.Changes})
	switch {
	case f.err != nil:
		return nil, f.err
	case f.lost:
		<-ctx.Done()
		return nil, ctx.Err()
	case f.swallow:
		return nil, nil
	case f == fate{}:
		return deliver(ctx)
	}
	answers := make(chan answer, 1)
	s.late.Go(func() {
		time.Sleep(f.request)
		v, err := deliver(context.WithoutCancel(ctx))
		if f.again > 0 {
			s.late.Go(func() {
				time.Sleep(f.again)
				_, _ = deliver(context.WithoutCancel(ctx))
			})
		}
		time.Sleep(f.reply)
		if !f.mute {
			answers <- answer{v, err}
		}
	})
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
