package redisstore

import (
	"context"
	"net"
	"reflect"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	connections = 8               // calls at once
	ioTimeout   = 3 * time.Second // for a dial, a write, a read
	callTimeout = 9 * time.Second // for a whole call, whatever its context allows: one of each
)

// derive returns the options of the client that the store uses itself: the same server, and settings under which a call
// ends with its context, is sent once, and waits for no one else's.
func derive(from *redis.Options) *redis.Options {
	o := *from
	o.ContextTimeoutEnabled = true // else a deadline is ignored while reading
	o.MaxRetries = -1              // else a command whose reply was lost is executed again
	o.DialerRetries = 1
	o.DialTimeout = ioTimeout
	o.ReadTimeout = within(from.ReadTimeout)
	o.WriteTimeout = within(from.WriteTimeout)
	o.PoolTimeout = ioTimeout
	if dial := from.Dialer; dial != nil {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, ioTimeout) // the dialer has the timeout of the other client
			defer cancel()
			return dial(ctx, network, addr)
		}
	}
	// After as many failed dials as PoolSize, the pool answers with the last error for up to a second without trying: a
	// server that has come back would not be seen. The number of connections is bounded by our own slots instead.
	o.PoolSize = 1 << 14
	o.MaxConcurrentDials = connections
	o.PipelinePoolSize = -1
	o.MinIdleConns, o.MaxIdleConns, o.MaxActiveConns = 0, 0, 0
	o.DisableIdentity = true // it takes a command that a user may not be allowed
	o.Limiter = nil          // a circuit that the application's calls have opened must not end leases
	o.PushNotificationProcessor = nil
	o.AutoPipelineOptions = nil
	o.ClientSideCacheConfig, o.ClientSideCache = nil, nil
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

// shared returns the options of a client of one server among those of a client of several: the fields of the same name
// and type. Routing of reads to replicas is not among them.
func shared(from any) *redis.Options {
	o := &redis.Options{}
	to, fields := reflect.ValueOf(o).Elem(), reflect.ValueOf(from).Elem()
	for i := range to.NumField() {
		field := to.Type().Field(i)
		if same := fields.FieldByName(field.Name); field.IsExported() && same.IsValid() && same.Type() == field.Type {
			to.Field(i).Set(same)
		}
	}
	return o
}

// within returns d when it is a timeout that is at most ours.
func within(d time.Duration) time.Duration {
	if d <= 0 || d > ioTimeout {
		return ioTimeout
	}
	return d
}

// call runs fn and returns when it does or, before that, when ctx ends: go-redis obeys the deadline of a context, not its
// cancellation. What fn does after that is nobody's; its outcome is not known.
func (s *Store) call(ctx context.Context, fn func(context.Context, servers) (any, error)) (any, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	servers, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if s.slots != nil {
		select {
		case s.slots <- struct{}{}:
		case <-ctx.Done():
			s.calls.Done()
			return nil, ctx.Err()
		}
	}
	type answer struct {
		value any
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		defer s.calls.Done()
		value, err := fn(ctx, servers)
		if s.slots != nil {
			<-s.slots
		}
		answered <- answer{value, err}
	}()
	select {
	case a := <-answered:
		return a.value, a.err
	case <-ctx.Done():
		select {
		case a := <-answered: // both at once: an answer is worth more
			return a.value, a.err
		default:
			return nil, ctx.Err()
		}
	}
}
