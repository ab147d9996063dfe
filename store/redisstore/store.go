package redisstore

import (
	"context"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redisclient"
	"github.com/go-singleton/singleton/internal/spell"
	"github.com/go-singleton/singleton/store"
)

// Options tunes a Store; nil and the zero value are the documented defaults.
type Options struct {
	Prefix string       // of every key and channel: a name (store.CheckName); "singleton"
	Logger *slog.Logger // nil is silent

	// MinReplicas is how many replicas must have received a lease that is granted, and each commit, before it counts: 0 to
	// 100; 0 asks for none. What it costs and narrows stands under "Acknowledgement by replicas".
	MinReplicas int
	// ReplicaTimeout is how long to wait for them: 1 ms to 2 s, 0 is 500 ms; at most three quarters of what the call has.
	ReplicaTimeout time.Duration
}

var errClosed = store.Permanent("redisstore: the store has been closed: close it after everything that uses it", nil)

// Store implements store.Store on one Redis primary. Its methods are safe for concurrent use.
type Store struct {
	connect  func(context.Context) servers // makes the connections of its own
	prefix   string
	log      *slog.Logger
	replicas replicas
	problem  error         // of New's arguments; nil when there is none
	slots    chan struct{} // one for each call over connections of our own; nil when there are none
	hub      *redisclient.Subscription
	spells   spell.Spells
	batch    *batch

	mu      sync.Mutex
	servers servers           // nil until the first call
	herds   map[string]*crowd // groups that are one
	closed  bool
	calls   sync.WaitGroup
	waits   bool  // the server has been asked whether it can wait for replicas
	refusal error // and has said that it cannot
}

var _ store.Store = (*Store)(nil)

// New returns a store on client, which it neither changes nor closes: a *redis.Client of one server, or a
// *redis.ClusterClient. For a primary that Sentinels name, use NewFailover. It does no I/O; a problem of client or opts is
// the permanent error of each call.
func New(client redis.UniversalClient, opts *Options) *Store {
	s := newStore(opts)
	if client == nil || reflect.ValueOf(client).IsZero() {
		s.problem = store.Permanent("redisstore: the client is nil: give New one made by redis.NewClient", nil)
		return s
	}
	s.slots = make(chan struct{}, connections)
	switch c := client.(type) {
	case *redis.Client:
		s.connect = func(ctx context.Context) servers {
			o := c.Options()
			if o.Addr == failoverAddr {
				s.log.WarnContext(ctx, "a Sentinel that does not answer can hold up the client that New was given; "+
					"use redisstore.NewFailover with its options")
			}
			return single{redis.NewClient(redisclient.Derive(o)), true}
		}
	case *redis.ClusterClient:
		s.connect = func(context.Context) servers { return newCluster(c.Options(), s.hub.Wake) }
	case *redis.Ring:
		s.problem = store.Permanent("redisstore: a *redis.Ring moves a group to another server when one does not answer, "+
			"and its leases stay behind: give New a client of one server or of a cluster, or use NewFailover", nil)
	default:
		s.slots = nil
		s.connect = func(ctx context.Context) servers {
			s.log.WarnContext(ctx, "leases share the connections, timeouts and repetitions of the Redis client, "+
				"which is of a kind that cannot be copied; give New a *redis.Client or *redis.ClusterClient")
			return single{client, false}
		}
	}
	return s
}

// failoverAddr is what redis.NewFailoverClient calls the address of its client.
const failoverAddr = "FailoverClient"

// NewFailover returns a store on the primary that Redis Sentinels name; from is what redis.NewFailoverClient takes. All
// Sentinels should stand in SentinelAddrs: a majority of them decides. It does no I/O; a problem of from or opts is the
// permanent error of each call.
func NewFailover(from *redis.FailoverOptions, opts *Options) *Store {
	s := newStore(opts)
	if from == nil || from.MasterName == "" || len(from.SentinelAddrs) == 0 {
		s.problem = store.Permanent("redisstore: NewFailover needs MasterName and SentinelAddrs: set both", nil)
		return s
	}
	s.slots = make(chan struct{}, connections)
	copied := *from
	s.connect = func(context.Context) servers { return newSentinels(&copied, s.log, s.hub.Wake) }
	return s
}

func newStore(opts *Options) *Store {
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
	s := &Store{prefix: o.Prefix, herds: map[string]*crowd{}, log: o.Logger}
	s.hub = s.subscription()
	s.batch = newBatch(s)
	s.problem = store.CheckName("prefix", o.Prefix)
	var err error
	if s.replicas, err = newReplicas(o); s.problem == nil {
		s.problem = err
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
	servers := s.servers
	s.mu.Unlock()

	s.hub.Close()
	if servers == nil {
		return nil
	}
	err := servers.close()
	if s.slots != nil { // calls over a client of another kind end when that client ends them
		s.calls.Wait()
	}
	return wrap("close", err)
}

// begin returns the servers for one call, which the caller ends with s.calls.Done.
func (s *Store) begin(ctx context.Context) (servers, error) {
	if s.problem != nil {
		return nil, s.problem
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed
	}
	if s.servers == nil {
		s.servers = s.connect(ctx)
	}
	s.calls.Add(1)
	return s.servers, nil
}

func (s *Store) open() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.closed
}

// ours tells whether the connections are the store's own, and open.
func (s *Store) ours() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slots != nil && !s.closed
}
