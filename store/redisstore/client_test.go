package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// through returns a client that reaches a server through a proxy, with the options that leave most to wish for: nothing
// ends by itself, and everything is repeated.
func through(t *testing.T, p *redistest.Proxy) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: p.Addr(), ReadTimeout: -1, WriteTimeout: -1, MaxRetries: 100})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestB1CallsEndWithTheirContextThoughTheServerNeverAnswers(t *testing.T) {
	server := redistest.Start(t)
	for _, timeout := range []time.Duration{-1, -2, time.Hour} {
		s := open(t, server.Client(func(o *redis.Options) { o.ReadTimeout, o.WriteTimeout = timeout, timeout }), nil)
		l := lead(t, s, "a", "n1")
		server.Stop()
		deadline, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := s.Renew(deadline, l); err == nil || errors.Is(err, store.ErrPermanent) {
			t.Errorf("read timeout %v, deadline: %v", timeout, err)
		}
		cancelled, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, err := s.Renew(cancelled, l); !errors.Is(err, context.Canceled) {
			t.Errorf("read timeout %v, cancelled: %v", timeout, err)
		}
		server.Cont()
		_, err := s.Renew(t.Context(), l)
		must(t, err)
	}
}

func TestB1CallsWithoutADeadlineEnd(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	s := open(t, server.Client(func(o *redis.Options) { o.ReadTimeout = -1 }), nil)
	l := lead(t, s, "a", "n1")
	server.Stop()
	if _, err := s.Renew(context.Background(), l); err == nil || errors.Is(err, store.ErrPermanent) {
		t.Errorf("got %v", err)
	}
	server.Cont()
	server.Kill()
	if _, err := s.Renew(context.Background(), l); err == nil || errors.Is(err, store.ErrPermanent) {
		t.Errorf("got %v", err)
	}
}

func TestB15AnExhaustedPoolDelaysNoCall(t *testing.T) {
	server := redistest.Start(t)
	client := server.Client(func(o *redis.Options) { o.PoolSize, o.ReadTimeout = 2, -1 })
	s := open(t, client, nil)
	ctx, cancel := context.WithCancel(t.Context())
	var jobs sync.WaitGroup
	for range 2 {
		jobs.Go(func() { client.BLPop(ctx, 0, "queue") })
	}
	other := server.Client()
	until(t, func() bool { return strings.Contains(other.Info(ctx, "clients").Val(), "blocked_clients:2") })
	l := lead(t, s, "a", "n1")
	for range 3 {
		_, err := s.Renew(ctx, l)
		must(t, err)
	}
	cancel()
	do(t, other, "RPUSH", "queue", 1, 2)
	jobs.Wait()
}

func TestB3AnAcquireWhoseReplyIsLostIsTheSameLease(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	s, direct := open(t, through(t, proxy), nil), open(t, server.Client(), nil)
	must(t, s.Release(t.Context(), lead(t, s, "a", "n0"))) // a connection is open, the script is loaded
	for _, lose := range []func(){proxy.Replies.Drop, proxy.Replies.Reset, func() { proxy.Replies.CutAfter(3) }} {
		lose()
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		_, err := s.Acquire(short, "g", candidate("a", "n1"))
		cancel()
		if err == nil || errors.Is(err, store.ErrPermanent) {
			t.Fatalf("got %v", err)
		}
		proxy.Replies.Pass()
		var leader store.Leader
		until(t, func() bool { leader, err = direct.Leader(t.Context(), "g"); return err == nil })
		if l := lead(t, s, "a", "n1"); l.Token != leader.Token {
			t.Errorf("the repetition was granted token %d, the first %d", l.Token, leader.Token)
		}
	}
	must(t, s.Release(t.Context(), store.Lease{Group: "g", Replica: "a", Nonce: "n1"}))
	if _, err := direct.Leader(t.Context(), "g"); !errors.Is(err, store.ErrNoLeader) {
		t.Errorf("after the release: %v", err)
	}
}

// A client that repeats what got no answer would deliver it after later calls, and longer than its caller waits.
func TestNoCallIsSentTwice(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	s, direct := open(t, through(t, proxy), nil), server.Client()
	l := lead(t, s, "a", "n1")
	if _, err := s.Renew(t.Context(), l); err != nil { // the script is loaded
		t.Fatal(err)
	}
	executed := func() int {
		info, err := direct.Info(t.Context(), "commandstats").Result()
		must(t, err)
		_, rest, _ := strings.Cut(info, "cmdstat_evalsha:calls=")
		count, _, _ := strings.Cut(rest, ",")
		n, _ := strconv.Atoi(count)
		return n
	}
	before := executed()
	proxy.Replies.Drop()
	answer := make(chan error, 1)
	go func() {
		_, err := s.Renew(t.Context(), l)
		answer <- err
	}()
	until(t, func() bool { return executed() > before })
	proxy.Replies.Pass()
	proxy.Cut()
	if err := <-answer; err == nil || executed() != before+1 {
		t.Errorf("the renewal whose reply was lost: %v, sent %d times", err, executed()-before)
	}
}

func TestB49ACommitHeldInASocketChangesNothingLater(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	s, direct := open(t, through(t, proxy), nil), open(t, server.Client(), nil)
	l := lead(t, s, "a", "n1")
	claim := func(s store.Store, ctx context.Context, number uint64, tick string) error {
		return s.Commit(ctx, l, number, []store.Change{{Bucket: "job", Key: "watermark", Value: []byte(tick)}})
	}
	must(t, claim(s, t.Context(), 1, "9"))

	proxy.Requests.Hold()
	short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := claim(s, short, 2, "10"); err == nil {
		t.Fatal("a commit that is held was answered")
	}
	must(t, proxy.Requests.AwaitHeld(t.Context(), 1))
	must(t, claim(direct, t.Context(), 2, "10"))
	must(t, claim(direct, t.Context(), 3, "11"))
	before := scripts(t, server)
	proxy.Requests.Pass()
	until(t, func() bool { return scripts(t, server) > before }) // it has arrived
	if got := server.Client().HGet(t.Context(), "singleton:{g}:r:job", "watermark").Val(); got != "11" {
		t.Errorf("the watermark is %s, want 11", got)
	}
}

// scripts returns how many scripts a server has run.
func scripts(t testing.TB, server *redistest.Server) (n int) {
	t.Helper()
	for line := range strings.Lines(server.Client().Info(t.Context(), "commandstats").Val()) {
		var calls int
		for _, form := range []string{"cmdstat_evalsha:calls=%d", "cmdstat_eval:calls=%d"} {
			if _, err := fmt.Sscanf(line, form, &calls); err == nil {
				n += calls
			}
		}
	}
	return n
}

func TestLostRequestsAndRepliesHealByThemselves(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	s := open(t, through(t, proxy), nil)
	l := lead(t, s, "a", "n1")
	for name, fault := range map[string]func(){
		"requests lost": proxy.Requests.Drop, "replies lost": proxy.Replies.Drop, "reset": proxy.Requests.Reset,
		"cut": func() { proxy.Replies.CutAfter(0) }, "all cut": proxy.Cut,
	} {
		fault()
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		_, err := s.Renew(short, l)
		cancel()
		if errors.Is(err, store.ErrPermanent) || errors.Is(err, store.ErrLost) {
			t.Errorf("%s: %v", name, err)
		}
		proxy.Requests.Pass()
		proxy.Replies.Pass()
		if _, err := s.Renew(t.Context(), l); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
}

func TestManyCallsAtOnceTakeFewConnections(t *testing.T) {
	server := redistest.Start(t)
	proxy := redistest.StartProxy(t, server.Addr())
	s := open(t, through(t, proxy), nil)
	var calls sync.WaitGroup
	for i := range 200 {
		calls.Go(func() {
			if err := s.Post(t.Context(), "g", fmt.Sprint(i), nil); err != nil {
				t.Error(err)
			}
		})
	}
	calls.Wait()
	if n := proxy.Accepted(); n > 8 {
		t.Errorf("%d connections", n)
	}
	must(t, s.Close())
	until(t, func() bool { return proxy.Open() == 0 })
}

func TestAnOutageLeavesNothingThatDelaysRecovery(t *testing.T) {
	server := redistest.Start(t)
	s := open(t, server.Client(), nil)
	l := lead(t, s, "a", "n1")
	server.Kill()
	for range 100 { // more than any pool bears in silence
		if _, err := s.Renew(t.Context(), l); err == nil || errors.Is(err, store.ErrPermanent) {
			t.Fatalf("got %v", err)
		}
	}
	must(t, server.Restart())
	if _, err := s.Renew(t.Context(), l); !errors.Is(err, store.ErrLost) {
		t.Errorf("the first call after the outage: %v", err)
	}
}

// foreign is a client of a kind that the store does not know.
type foreign struct{ redis.UniversalClient }

func TestAClientOfAnotherKindServesWithAWarning(t *testing.T) {
	server := redistest.Start(t)
	var log strings.Builder
	client := server.Client(func(o *redis.Options) { o.ReadTimeout = -1 })
	s := open(t, foreign{client}, &redisstore.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	hinted := make(chan bool, 100)
	must(t, s.Watch(t.Context(), "g", store.LeaseFree, func() { hinted <- true }))
	<-hinted
	l := lead(t, s, "a", "n1")
	if n := strings.Count(log.String(), "level=WARN"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, log.String())
	}
	server.Stop()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := s.Renew(short, l); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	server.Cont()
	_, err := s.Renew(t.Context(), l)
	must(t, err)
	must(t, s.Close())
	must(t, client.Ping(t.Context()).Err()) // which is not ours to close
}

func TestNewDoesNoIOAndItsProblemsAreToldByEachCall(t *testing.T) {
	var dials atomic.Int64
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", Dialer: func(context.Context, string, string) (net.Conn, error) {
		dials.Add(1)
		return nil, errors.New("no network")
	}})
	defer client.Close()
	var none *redis.Client
	for name, s := range map[string]*redisstore.Store{
		"no client":        redisstore.New(nil, nil),
		"a nil client":     redisstore.New(none, nil),
		"a bad prefix":     redisstore.New(client, &redisstore.Options{Prefix: "a:{b}"}),
		"a prefix too big": redisstore.New(client, &redisstore.Options{Prefix: strings.Repeat("p", 129)}),
	} {
		for range 2 {
			_, err := s.Leader(t.Context(), "g")
			if !errors.Is(err, store.ErrPermanent) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := s.Watch(t.Context(), "g", store.LeaseFree, func() {}); !errors.Is(err, store.ErrPermanent) {
			t.Errorf("%s: watch: %v", name, err)
		}
		if _, err := s.Check(t.Context(), "g", 0); !errors.Is(err, store.ErrPermanent) {
			t.Errorf("%s: check: %v", name, err)
		}
		must(t, s.Close())
	}
	if n := dials.Load(); n != 0 {
		t.Errorf("%d dials", n)
	}
}
