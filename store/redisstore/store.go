package redisstore

import (
	"context"
	"log/slog"
	"reflect"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/store"
)

// Options tunes a Store; nil and the zero value are the documented defaults.
type Options struct {
	Prefix string       // of every key and channel: a name (store.CheckName); "singleton"
	Logger *slog.Logger // nil is silent
}

// Store implements store.Store on one Redis primary. Its methods are safe for concurrent use.
type Store struct {
	given   redis.UniversalClient
	prefix  string
	log     *slog.Logger
	problem error         // of New's arguments; nil when there is none
	slots   chan struct{} // one for each call over connections of our own; nil when there are none
	hub     *hub

	mu     sync.Mutex
	client redis.UniversalClient // nil until the first call
	closed bool
	calls  sync.WaitGroup
	spells map[string]string // by method: the error that has been logged and has not ended
}

var _ store.Store = (*Store)(nil)

// New returns a store on client, which it neither changes nor closes. It does no I/O; a problem of client or opts is the
// permanent error of each call.
func New(client redis.UniversalClient, opts *Options) *Store {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.Prefix == "" {
		o.Prefix = "singleton"
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Store{given: client, prefix: o.Prefix, log: o.Logger, spells: map[string]string{}}
	s.hub = newHub(s)
	s.problem = store.CheckName("prefix", o.Prefix)
	if client == nil || reflect.ValueOf(client).IsZero() {
		s.problem = store.Permanent("redisstore: the client is nil: give New one made by redis.NewClient", nil)
	}
	if _, ok := client.(*redis.Client); ok {
		s.slots = make(chan struct{}, connections)
	}
	return s
}

// Close ends the connections that the store itself has made and waits for its goroutines; calls under way fail, and later
// ones fail with a permanent error. Leases that are held lapse. The client that New was given stays open.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	client := s.client
	s.mu.Unlock()

	s.hub.stop()
	if s.slots == nil || client == nil {
		return nil // calls over a client of another kind end when that client ends them
	}
	err := client.Close()
	s.calls.Wait()
	return wrap("close", err)
}

// begin returns the client for one call, which the caller ends with s.calls.Done.
func (s *Store) begin(ctx context.Context) (redis.UniversalClient, error) {
	if s.problem != nil {
		return nil, s.problem
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, store.Permanent("redisstore: the store has been closed: close it after everything that uses it", nil)
	}
	if s.client == nil {
		own, ok := s.given.(*redis.Client)
		if ok {
			s.client = redis.NewClient(derive(own.Options()))
		} else {
			s.log.WarnContext(ctx, "leases share the connections, timeouts and repetitions of the Redis client, "+
				"which is of a kind that cannot be copied; give New a *redis.Client")
			s.client = s.given
		}
	}
	s.calls.Add(1)
	return s.client, nil
}
