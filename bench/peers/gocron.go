package main

import (
	"context"

	"github.com/bsm/redislock"
	"github.com/go-co-op/gocron/v2"
)

// gocronWithLocker runs gocron with its distributed locker, over a Redis lock per run.
func gocronWithLocker(ctx context.Context, r *replica) error {
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker{r, redislock.New(r.client)}))
	if err != nil {
		return err
	}
	task := gocron.NewTask(func() { r.work(now(r.id)) })
	if _, err := s.NewJob(gocron.CronJob(everySecond, true), task, gocron.WithName("tick")); err != nil {
		return err
	}
	s.Start()
	<-ctx.Done()
	return s.Shutdown()
}

// locker is gocron's Locker over redislock: gocron takes the lock before a run, and gives it back after it.
type locker struct {
	replica *replica
	client  *redislock.Client
}

// Lock takes the lock of a job; with an error, gocron leaves this run out.
func (l locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	l.replica.wait()
	lock, err := l.client.Obtain(ctx, "peers:"+key, lockTTL, nil)
	if err != nil {
		return nil, err
	}
	return held{lock}, nil
}

type held struct{ lock *redislock.Lock }

// Unlock gives the lock back.
func (h held) Unlock(ctx context.Context) error { return h.lock.Release(context.WithoutCancel(ctx)) }
