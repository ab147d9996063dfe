package main

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const flagTTL = 5 * time.Second

// extend renews the leader's key if it is still its own.
var extend = redis.NewScript(`
if redis.call("GET", KEYS[1]) == ARGV[1] then
	return redis.call("PEXPIRE", KEYS[1], ARGV[2])
end
return 0`)

// cronWithLeaderFlag is the leader election that services write by hand: SET NX with a TTL, renewed each third of it by a
// ticker that keeps a flag; each replica's cron job looks at the flag.
func cronWithLeaderFlag(ctx context.Context, r *replica) error {
	var leading atomic.Bool
	go func() {
		ticker := time.NewTicker(flagTTL / 3)
		defer ticker.Stop()
		for {
			leading.Store(leads(ctx, r, leading.Load()))
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	return everySecondDo(ctx, func() {
		r.wait()
		if leading.Load() {
			r.work(now(r.id))
		}
	})
}

// leads renews the key, or tries to get it; with an error it says no.
func leads(ctx context.Context, r *replica, leading bool) bool {
	const key = "peers:leader"
	if leading {
		n, err := extend.Run(ctx, r.client, []string{key}, r.id, flagTTL.Milliseconds()).Int()
		return err == nil && n == 1
	}
	ok, err := r.client.SetNX(ctx, key, r.id, flagTTL).Result()
	return err == nil && ok
}
