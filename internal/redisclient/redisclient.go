// Package redisclient is what stores on Redis have in common: the client that they use themselves, and what the errors of
// servers mean.
package redisclient

import (
	"context"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Bounds of a client that Derive has made.
const (
	Connections = 8               // calls at once
	Timeout     = 3 * time.Second // for a dial, a write, a read
)

// Derive returns the options of the client that a store uses itself: the same server, and settings under which a call
// ends with its context, is sent once, and waits for no one else's.
func Derive(from *redis.Options) *redis.Options {
	o := *from
	o.ContextTimeoutEnabled = true // else a deadline is ignored while reading
	o.MaxRetries = -1              // else a command whose reply was lost is executed again
	o.DialerRetries = 1
	o.DialTimeout = Timeout
	o.ReadTimeout = within(from.ReadTimeout)
	o.WriteTimeout = within(from.WriteTimeout)
	o.PoolTimeout = Timeout
	if dial := from.Dialer; dial != nil {
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, Timeout) // the dialer has the timeout of the other client
			defer cancel()
			return dial(ctx, network, addr)
		}
	}
	// After as many failed dials as PoolSize, the pool answers with the last error for up to a second without trying: a
	// server that has come back would not be seen. The number of connections is bounded by the slots of the store instead.
	o.PoolSize = 1 << 14
	o.MaxConcurrentDials = Connections
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

// within returns d when it is a timeout that is at most ours.
func within(d time.Duration) time.Duration {
	if d <= 0 || d > Timeout {
		return Timeout
	}
	return d
}
