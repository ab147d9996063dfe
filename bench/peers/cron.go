package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/bsm/redislock"
	"github.com/robfig/cron/v3"
)

const (
	everySecond = "* * * * * *"
	lockTTL     = 30 * time.Second // longer than any run; the lock is released when the run ends
)

// everySecondDo runs do each second, by robfig/cron, until ctx ends.
func everySecondDo(ctx context.Context, do func()) error {
	c := cron.New(cron.WithSeconds(), cron.WithLocation(time.UTC))
	if _, err := c.AddFunc(everySecond, do); err != nil {
		return err
	}
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done()
	return nil
}

// bareCron runs each tick on each replica.
func bareCron(ctx context.Context, r *replica) error {
	return everySecondDo(ctx, func() {
		r.wait()
		r.work(now(r.id))
	})
}

// cronWithLock takes a lock around each run: whoever has it runs the tick, the others pass.
func cronWithLock(ctx context.Context, r *replica) error {
	return everySecondLocked(ctx, r, lockTTL, func(lock *redislock.Lock) {
		if err := lock.Release(context.WithoutCancel(ctx)); err != nil {
			fmt.Fprintln(os.Stderr, "releasing the lock failed:", err)
		}
	})
}

// cronWithKeptLock takes a lock for each tick and lets it lapse shortly before the next, as few do: it has to be told how
// often the job is due.
func cronWithKeptLock(ctx context.Context, r *replica) error {
	return everySecondLocked(ctx, r, 900*time.Millisecond, func(*redislock.Lock) {})
}

func everySecondLocked(ctx context.Context, r *replica, ttl time.Duration, after func(*redislock.Lock)) error {
	locker := redislock.New(r.client)
	return everySecondDo(ctx, func() {
		r.wait()
		lock, err := locker.Obtain(ctx, "peers:lock", ttl, nil)
		if err != nil {
			if !errors.Is(err, redislock.ErrNotObtained) && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, "taking the lock failed:", err)
			}
			return
		}
		r.work(now(r.id))
		after(lock)
	})
}
