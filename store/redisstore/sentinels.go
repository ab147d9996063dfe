package redisstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redisclient"
	"github.com/go-singleton/singleton/store"
)

const (
	confirmed = time.Second // how long the Sentinels' word is taken for true
	askLimit  = time.Second // for their answers, at most half of what the call has
)

// sentinels is the primary that a majority of the Sentinels names. They are asked before each call, unless they were a
// second ago, because a primary that was replaced while it stood still does not know that: it goes on granting leases for
// some ten seconds, to all who have a connection to it.
type sentinels struct {
	name    string
	options *redis.Options // of a client of any of the servers
	ask     []*redis.SentinelClient
	log     *slog.Logger
	changed func() // called when the primary is another
	asking  sync.WaitGroup

	mu     sync.Mutex
	addr   string
	client *redis.Client // nil until they have answered once
	asked  time.Time     // when they were asked last
	closed bool
}

func newSentinels(from *redis.FailoverOptions, log *slog.Logger, changed func()) *sentinels {
	s := &sentinels{name: from.MasterName, options: redisclient.Derive(shared(from)), log: log, changed: changed}
	for _, addr := range slices.Compact(slices.Sorted(slices.Values(from.SentinelAddrs))) {
		o := redisclient.Derive(shared(from))
		o.Addr, o.DB, o.Protocol = addr, 0, 0
		o.Username, o.Password = from.SentinelUsername, from.SentinelPassword
		o.CredentialsProvider, o.CredentialsProviderContext, o.StreamingCredentialsProvider = nil, nil, nil
		o.ReadBufferSize, o.WriteBufferSize = 4096, 4096
		s.ask = append(s.ask, redis.NewSentinelClient(o))
	}
	return s
}

func (s *sentinels) primary(ctx context.Context, _ string) (redis.UniversalClient, error) {
	s.mu.Lock()
	client, fresh, closed := s.client, time.Since(s.asked) < confirmed, s.closed
	s.mu.Unlock()
	if closed {
		return nil, redis.ErrClosed
	}
	if client != nil && fresh {
		return client, nil
	}
	begun := time.Now()
	addr, err := s.elect(ctx)
	return s.take(ctx, begun, addr, err)
}

func (s *sentinels) primaries(ctx context.Context, groups []string) ([]redis.UniversalClient, error) {
	client, err := s.primary(ctx, "")
	return slices.Repeat([]redis.UniversalClient{client}, len(groups)), err
}

// take makes addr, as it was named to someone who began to ask at begun, the primary.
func (s *sentinels) take(ctx context.Context, begun time.Time, addr string, err error) (redis.UniversalClient, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, redis.ErrClosed
	case err != nil && s.client == nil:
		return nil, err
	case begun.Before(s.asked) && s.client != nil: // others have asked since
		return s.client, nil
	}
	s.asked = begun
	if err != nil || addr == s.addr {
		return s.client, nil // without Sentinels the primary stays what it was: most likely they alone are gone
	}
	if old := s.client; old != nil {
		s.log.WarnContext(ctx, "the Sentinels have named another primary", slog.String("addr", addr), slog.String("before", s.addr))
		s.asking.Go(func() { _ = old.Close() }) // what is under way there gets no answer
	}
	o := *s.options
	o.Addr = addr
	s.addr, s.client = addr, redis.NewClient(&o)
	s.changed()
	return s.client, nil
}

// elect returns the address that more than half of the Sentinels name, or, when not so many answer in time, most of those
// that do.
func (s *sentinels) elect(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, half(ctx, askLimit))
	defer cancel()
	type answer struct {
		addr string
		err  error
	}
	answers := make(chan answer, len(s.ask))
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return "", redis.ErrClosed
	}
	for _, one := range s.ask {
		s.asking.Go(func() {
			got, err := one.GetMasterAddrByName(ctx, s.name).Result()
			if err == nil && len(got) != 2 {
				err = strange("get-master-addr-by-name", got)
			}
			if err != nil {
				answers <- answer{err: err}
				return
			}
			answers <- answer{addr: net.JoinHostPort(got[0], got[1])}
		})
	}
	s.mu.Unlock()
	votes := map[string]int{}
	best := ""
	var refusals, failures []error
	for range s.ask {
		select {
		case a := <-answers:
			switch {
			case a.err == nil:
				if votes[a.addr]++; best == "" || votes[a.addr] > votes[best] {
					best = a.addr
				}
				if 2*votes[best] > len(s.ask) {
					return best, nil
				}
			case refused(a.err):
				refusals = append(refusals, a.err)
			default:
				failures = append(failures, a.err)
			}
		case <-ctx.Done():
			failures = append(failures, ctx.Err())
		}
	}
	switch {
	case best != "":
		return best, nil
	case len(failures) > 0: // what the others have refused is no reason to give up
		return "", fmt.Errorf("no Sentinel has named a primary: %w", failures[0])
	case errors.Is(refusals[0], redis.Nil):
		return "", store.Permanent(fmt.Sprintf("redisstore: the Sentinels know no primary called %q: "+
			"use the name of their configuration", s.name), nil)
	}
	return "", fmt.Errorf("a Sentinel (which has a user and a password of its own): %w", refusals[0])
}

// replicas returns clients of the servers that the first Sentinel to answer knows besides the primary: none where the user may
// not ask. The caller closes them.
func (s *sentinels) replicas(ctx context.Context) (clients []*redis.Client) {
	for _, one := range s.ask {
		attempt, cancel := context.WithTimeout(ctx, half(ctx, askLimit))
		known, err := one.Replicas(attempt, s.name).Result()
		cancel()
		if err != nil {
			continue
		}
		for _, r := range known {
			o := *s.options
			o.Addr = net.JoinHostPort(r["ip"], r["port"])
			clients = append(clients, redis.NewClient(&o))
		}
		return clients
	}
	return nil
}

// half returns how long to ask before a call: at most half of the time that it has.
func half(ctx context.Context, limit time.Duration) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(limit, time.Until(end)/2)
	}
	return limit
}

func (s *sentinels) heard(_ string, client redis.UniversalClient, err error) (redis.UniversalClient, bool) {
	if elsewhere(err) {
		s.mu.Lock()
		if client == s.client {
			s.asked = time.Time{}
		}
		s.mu.Unlock()
	}
	return nil, false
}

func (s *sentinels) all(ctx context.Context) ([]redis.UniversalClient, error) {
	client, err := s.primary(ctx, "")
	if err != nil {
		return nil, err
	}
	return []redis.UniversalClient{client}, nil
}

func (s *sentinels) close() error {
	s.mu.Lock()
	client := s.client
	s.client, s.closed = nil, true
	s.mu.Unlock()
	var errs []error
	if client != nil {
		errs = append(errs, client.Close())
	}
	for _, one := range s.ask {
		errs = append(errs, one.Close())
	}
	s.asking.Wait()
	return errors.Join(errs...)
}
