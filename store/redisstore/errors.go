package redisstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redisclient"
	"github.com/go-singleton/singleton/store"
)

// judge turns the error of a method into what the contract wants, and logs once what a person should see. A nil error
// ends the spell.
func (s *Store) judge(ctx context.Context, method string, err error) error {
	if err == nil {
		s.spells.End(method)
		return nil
	}
	if errors.Is(err, store.ErrPermanent) {
		return err
	}
	if errors.Is(err, redis.ErrClosed) && !s.ours() { // one of ours is closed when another server takes its place
		return store.Permanent("redisstore: the Redis client has been closed: close it after everything that uses it", err)
	}
	err = wrap(method, err)
	what, remedy := redisclient.Classify(err.Error())
	switch what {
	case redisclient.Permanent:
		return store.Permanent(remedy, err)
	case redisclient.Alarming:
		s.spells.Alarm(ctx, s.log, method, err, remedy)
	}
	return err
}

// wrap names the method, and leaves out what a server repeats of the arguments.
func wrap(method string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redisstore: %s: %w", method, redisclient.Discreet(err))
}
