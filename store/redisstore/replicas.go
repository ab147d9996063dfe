package redisstore

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redisclient"
	"github.com/go-singleton/singleton/store"
)

const (
	replicaTimeout = 500 * time.Millisecond // for replicas, unless Options say otherwise
	maxReplicas    = 100
	maxReplicaTime = 2 * time.Second // less than the time for a reply
	undoLimit      = time.Second     // for undoing what too few of them have
)

// replicas says how many are waited for.
type replicas struct {
	count   int
	timeout time.Duration
}

// newReplicas returns what the options say, or what is wrong with them.
func newReplicas(o Options) (replicas, error) {
	r := replicas{o.MinReplicas, o.ReplicaTimeout}
	if r.timeout == 0 {
		r.timeout = replicaTimeout
	}
	if r.count < 0 || r.count > maxReplicas {
		return r, store.Permanent(fmt.Sprintf("redisstore: MinReplicas is %d: use 0 to %d", o.MinReplicas, maxReplicas), nil)
	}
	if r.timeout < time.Millisecond || r.timeout > maxReplicaTime {
		return r, store.Permanent(fmt.Sprintf("redisstore: ReplicaTimeout is %v: use %v to %v, or 0 for %v",
			o.ReplicaTimeout, time.Millisecond, maxReplicaTime, replicaTimeout), nil)
	}
	return r, nil
}

// unwaited asks for WAIT as r does, and for nothing to wait for.
func (r replicas) unwaited() replicas {
	if r.count > 0 {
		r.timeout = time.Millisecond
	}
	return r
}

// add makes the connection of a pipeline wait for the replicas; on another one the server would wait for what that has
// written. A quarter of the call's time is kept for the way.
func (r replicas) add(ctx context.Context, pipe redis.Pipeliner) *redis.IntCmd {
	if r.count == 0 {
		return nil
	}
	timeout := r.timeout
	if end, ok := ctx.Deadline(); ok {
		timeout = max(time.Millisecond, min(timeout, time.Until(end)*3/4))
	}
	return waiting(ctx, pipe, r.count, timeout)
}

// waiting sends WAIT, which go-redis's interfaces lack.
func waiting(ctx context.Context, c interface {
	Process(context.Context, redis.Cmder) error
}, count int, timeout time.Duration) *redis.IntCmd {
	cmd := redis.NewIntCmd(ctx, "WAIT", count, timeout.Milliseconds())
	_ = c.Process(ctx, cmd) // stands in cmd
	return cmd
}

// wrote tells whether a script has done what it was asked to: only that is to be acknowledged.
func wrote(got any) bool {
	list, _ := got.([]any)
	return len(list) > 0 && (list[0] == "granted" || list[0] == "ok")
}

// supported returns an error when the server cannot wait for replicas, which it is asked once, before anything is written.
func (s *Store) supported(ctx context.Context, client redis.UniversalClient, wanted replicas) error {
	if wanted.count == 0 {
		return nil
	}
	s.mu.Lock()
	asked, refusal := s.waits, s.refusal
	s.mu.Unlock()
	if asked {
		return refusal
	}
	err := waiting(ctx, client, 0, time.Millisecond).Err()
	if err != nil {
		what, remedy := redisclient.Classify(err.Error())
		if !refused(err) || what != redisclient.Permanent {
			return err
		}
		if remedy == redisclient.TooOld {
			remedy = "the Redis server cannot wait for replicas: use one that knows WAIT, or set MinReplicas to 0"
		}
		err = store.Permanent(remedy, wrap("wait", err))
		s.log.ErrorContext(ctx, "the server cannot wait for replicas; nothing is acquired or committed", slog.Any("error", err))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits, s.refusal = true, err
	return err
}
