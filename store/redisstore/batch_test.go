package redisstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// tapped is a store in a bubble whose requests are seen on their way to the server.
type tapped struct {
	*redisstore.Store
	server *miniredis.Miniredis
	client *redis.Client
	way    time.Duration // how long a request is under way
	carry  sync.WaitGroup

	mu       sync.Mutex
	dials    int
	lists    int // of channels, that were subscribed to
	conns    []*tappedConn
	failing  *rand.Rand // one request in five fails; nil: none does
	requests [][]byte   // what the client has sent, one for each round trip, less handshakes
	spoiled  []byte     // what it stands in is answered with something that is no reply
}

// tap opens a store on a miniredis; everything of it ends with the test's bubble.
func tap(t *testing.T) *tapped {
	t.Helper()
	p := &tapped{server: miniredis.NewMiniRedis()}
	p.server.ClockTTL(true)
	t.Cleanup(func() {
		p.server.Close()
		p.carry.Wait()
		time.Sleep(5 * time.Second) // a pool that dials again notices late that it is closed
	})
	p.Store, p.client = p.another(t)
	return p
}

// another opens one more store on the same server.
func (p *tapped) another(t *testing.T) (*redisstore.Store, *redis.Client) {
	t.Helper()
	client := redis.NewClient(&redis.Options{
		Addr: "127.0.0.1:6379", // a number: a bubble has no name server
		Dialer: func(context.Context, string, string) (net.Conn, error) {
			c, err := p.server.Dial() // waits for what the server writes to others, which needs p.mu to be read
			p.mu.Lock()
			defer p.mu.Unlock()
			p.dials++
			if err != nil {
				return nil, err
			}
			conn := &tappedConn{Conn: c, tap: p, onTheWay: make(chan parcel, 1024), closed: make(chan struct{})}
			p.conns = append(p.conns, conn)
			p.carry.Go(conn.carry)
			return conn, nil
		},
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	s := redisstore.New(client, nil)
	t.Cleanup(func() {
		must(t, s.Close())
		must(t, client.Close())
	})
	return s, client
}

// parcel is something on its way.
type parcel struct {
	data []byte
	due  time.Time
}

// tappedConn has a buffer for what is sent, as a socket has and a net.Pipe has not.
type tappedConn struct {
	net.Conn
	tap      *tapped
	silent   bool // nothing comes back any more
	good     int  // replies before the one that is to be spoiled; negative: none is
	onTheWay chan parcel
	closing  sync.Once
	closed   chan struct{}
}

func (c *tappedConn) carry() {
	for {
		select {
		case p := <-c.onTheWay:
			time.Sleep(time.Until(p.due))
			_, _ = c.Conn.Write(p.data) // fails when the connection has been closed
		case <-c.closed:
			return
		}
	}
}

func (c *tappedConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func (c *tappedConn) Write(b []byte) (int, error) {
	due := time.Now()
	c.tap.mu.Lock()
	c.good = -1
	if bytes.Contains(b, []byte("$9\r\nsubscribe\r\n")) {
		c.tap.lists++
	}
	if bytes.Contains(b, []byte("evalsha")) || bytes.Contains(b, []byte("eval\r\n")) {
		due = due.Add(c.tap.way) // not a handshake: some lock waits for those
		c.tap.requests = append(c.tap.requests, bytes.Clone(b))
		if r := c.tap.failing; r != nil && r.IntN(5) == 0 {
			kind := r.IntN(3)
			c.silent = kind > 0
			if kind < 2 { // reset, or never there; else carried out, and the reply is lost
				c.tap.mu.Unlock()
				if kind == 0 {
					_ = c.Close()
				}
				return len(b), nil
			}
		}
		if before, _, found := bytes.Cut(b, c.tap.spoiled); found && c.tap.spoiled != nil {
			c.good = bytes.Count(before, []byte("evalsha")) - 1
		}
	}
	c.tap.mu.Unlock()
	select {
	case c.onTheWay <- parcel{bytes.Clone(b), due}:
		return len(b), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *tappedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	for c.silent && err == nil {
		c.tap.mu.Unlock()
		n, err = c.Conn.Read(b)
		c.tap.mu.Lock()
	}
	if c.good < 0 {
		return n, err
	}
	replies := bytes.SplitAfter(b[:n], []byte("\r\n*2\r\n"))
	if c.good < len(replies) {
		n = copy(b, append(bytes.Join(replies[:c.good], nil), "?what\r\n"...))
	}
	c.good -= len(replies)
	return n, err
}

// sent returns the requests since the last call of sent.
func (p *tapped) sent() [][]byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.requests
	p.requests = nil
	return r
}

// crowd acquires a lease in each of many groups.
func (p *tapped) crowd(t *testing.T, count int) []store.Lease {
	t.Helper()
	var leases []store.Lease
	for i := range count {
		l, err := p.Acquire(t.Context(), fmt.Sprintf("g%d", i), candidate("a", fmt.Sprintf("n%d", i)))
		must(t, err)
		leases = append(leases, l)
	}
	for _, l := range leases[:2] { // from now on it is known that there are several
		_, err := p.Renew(t.Context(), l)
		must(t, err)
	}
	p.sent()
	return leases
}

// together renews leases at the same time and returns what became of each.
func together(ctx context.Context, s store.Leases, leases []store.Lease) []error {
	var renewals sync.WaitGroup
	errs := make([]error, len(leases))
	for i, l := range leases {
		renewals.Go(func() { _, errs[i] = s.Renew(ctx, l) })
	}
	renewals.Wait()
	return errs
}

// granted fails the test where a renewal was not, save those of except.
func granted(t *testing.T, errs []error, except ...int) {
	t.Helper()
	for i, err := range errs {
		if err != nil && !slices.Contains(except, i) {
			t.Errorf("renewal %d: %v", i, err)
		}
	}
}

func TestRenewalsThatFallDueTogetherShareARoundTrip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tap(t)
		leases := s.crowd(t, 250)
		begun, dials := time.Now(), s.dials
		var renewals sync.WaitGroup
		for i, l := range leases[1:61] {
			renewals.Go(func() {
				time.Sleep(time.Duration(i%20) * time.Millisecond)
				if _, err := s.Renew(t.Context(), l); err != nil {
					t.Errorf("renewal %d: %v", i, err)
				}
			})
		}
		renewals.Wait()
		if n := len(s.sent()); n != 1 {
			t.Errorf("%d requests for renewals within 20 ms", n)
		}
		if took := time.Since(begun); took > 21*time.Millisecond {
			t.Errorf("the last has its answer after %v", took)
		}
		if s.dials != dials {
			t.Errorf("%d more connections", s.dials-dials)
		}
		granted(t, together(t.Context(), s, leases))
		if n := len(s.sent()); n != 3 {
			t.Errorf("%d requests for 250 renewals, want 3 of at most 100", n)
		}
	})
}

func TestARenewalWaitsForNobodyWhereThatGainsNothingOrIsDangerous(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tap(t)
		leases := s.crowd(t, 2)
		at := func(l store.Lease, within time.Duration) time.Duration {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			begun := time.Now()
			_, err := s.Renew(ctx, l)
			must(t, err)
			return time.Since(begun)
		}
		if took := at(leases[1], time.Second); took != 20*time.Millisecond {
			t.Errorf("among others it waits for %v", took)
		}
		if took := at(leases[1], 100*time.Millisecond); took > 0 {
			t.Errorf("it waits for %v, with 100 ms left", took)
		}
		for range 4 { // the other lease is renewed no more
			time.Sleep(20 * time.Second)
			at(leases[1], time.Second)
		}
		if took := at(leases[1], time.Second); took > 0 {
			t.Errorf("it waits for %v, and no other lease is renewed", took)
		}
	})
}

func TestAGoneCallerIsNotWaitedForAndNothingIsSentForIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tap(t)
		leases := s.crowd(t, 3)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(5*time.Millisecond, cancel)
		begun := time.Now()
		for _, err := range together(ctx, s, leases) {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		}
		if took := time.Since(begun); took != 5*time.Millisecond {
			t.Errorf("the callers were gone after 5 ms and have their answers after %v", took)
		}
		time.Sleep(time.Second)
		if n := len(s.sent()); n != 0 {
			t.Errorf("%d requests for nobody", n)
		}
	})
}

func TestARefusedRenewalFailsNoOtherOfItsBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tap(t)
		leases := s.crowd(t, 12)
		must(t, s.server.Set("singleton:{g0}:lease", "1 b n"))
		s.server.Del("singleton:{g5}:lease")
		_, err := s.server.Push("singleton:{g5}:lease", "x")
		must(t, err)
		must(t, s.Leave(t.Context(), "g11", "a"))
		s.sent()
		errs := together(t.Context(), s, leases)
		granted(t, errs, 0, 5, 11)
		if !errors.Is(errs[0], store.ErrLost) || !errors.Is(errs[11], store.ErrEnded) {
			t.Errorf("a lost lease: %v; an ended session: %v", errs[0], errs[11])
		}
		wantPermanent(t, errs[5], "WRONGTYPE", "g5")
		if n := len(s.sent()); n != 1 {
			t.Errorf("%d requests", n)
		}
	})
}

func TestB16FlushedScriptsAreLoadedAgainInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tap(t)
		leases := s.crowd(t, 30)
		do(t, s.client, "SCRIPT", "FLUSH")
		granted(t, together(t.Context(), s, leases))
		requests := s.sent()
		if len(requests) != 2 {
			t.Fatalf("%d requests, want one without and one with the script", len(requests))
		}
		if n := bytes.Count(requests[1], []byte("was_released(")); n > 2 {
			t.Errorf("the script was sent %d times", n)
		}
	})
}

// TestABadReplyCostsTheOthersOneAttempt: each reply about one group breaks the connection.
func TestABadReplyCostsTheOthersOneAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tap(t)
		leases := s.crowd(t, 40)
		const bad = 17
		s.mu.Lock()
		s.spoiled = []byte("{g17}:lease")
		s.mu.Unlock()
		failed := 0
		for i, err := range together(t.Context(), s, leases) {
			if err != nil {
				failed++
			} else if i == bad {
				t.Error("the bad reply was taken for a grant")
			}
		}
		t.Logf("%d failed at first", failed)
		for range 5 { // as electors do that got no answer
			s.sent()
			errs := together(t.Context(), s, leases)
			granted(t, errs, bad)
			if errs[bad] == nil || store.Definite(errs[bad]) {
				t.Errorf("the group of the bad replies: %v", errs[bad])
			}
			if n := len(s.sent()); n != 2 {
				t.Errorf("%d requests, want one for that group and one for all others", n)
			}
		}
		s.mu.Lock()
		s.spoiled = nil
		s.mu.Unlock()
		granted(t, together(t.Context(), s, leases))
		s.sent()
		granted(t, together(t.Context(), s, leases))
		if n := len(s.sent()); n != 1 {
			t.Errorf("%d requests when all is well again", n)
		}
	})
}

func TestClosingEndsRenewalsThatWaitForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := tap(t)
		leases := s.crowd(t, 3)
		time.AfterFunc(5*time.Millisecond, func() { must(t, s.Close()) })
		for _, err := range together(t.Context(), s, leases) {
			if err == nil {
				t.Error("granted by a store that is closed")
			}
		}
		_, err := s.Renew(t.Context(), leases[0])
		wantPermanent(t, err, "closed")
	})
}
