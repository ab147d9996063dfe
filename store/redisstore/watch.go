package redisstore

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redisclient"
	"github.com/go-singleton/singleton/store"
)

// Watch implements store.Leases.
func (s *Store) Watch(ctx context.Context, group string, t store.Topic, hint func()) error {
	if err := store.CheckWatch(group, t); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	open := false
	if name := s.channel(group, t); t == store.LeaseFree {
		open = s.hub.Listen(ctx, name, group, t, (&turn{store: s, ctx: ctx, group: group, hint: hint}).listen)
	} else {
		open = s.hub.Watch(ctx, name, group, t, hint)
	}
	if !open {
		return errClosed
	}
	return nil
}

// subscription returns one at the primary.
func (s *Store) subscription() *redisclient.Subscription {
	sub := redisclient.NewSubscription()
	sub.Name, sub.Log = "redisstore", s.log
	known := func() servers { // there are some: somebody watches
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.servers
	}
	sub.Server = func(ctx context.Context, group string) (redis.UniversalClient, error) {
		return known().primary(ctx, group)
	}
	sub.Heard = func(group string, client redis.UniversalClient, err error) { known().heard(group, client, err) }
	return sub
}
