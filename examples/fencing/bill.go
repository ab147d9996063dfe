//go:build unix

package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed pay.lua
var payText string

var payScript = redis.NewScript(payText)

// bill is what replicas write to in Redis: a hash that a script guards, and a plain key that nothing does.
type bill struct {
	client *redis.Client
	group  string
}

func (b bill) key() string   { return "bill:{" + b.group + "}" }
func (b bill) plain() string { return b.key() + ":plain" }

// pay records a payment, or returns errFenced when somebody with a higher token has paid.
func (b bill) pay(ctx context.Context, token uint64, who string) error {
	highest, err := payScript.Run(ctx, b.client, []string{b.key()}, token, who).Uint64()
	if err == nil && highest != token {
		err = fmt.Errorf("%w, with token %d", errFenced, highest)
	}
	return err
}

func (b bill) payUnguarded(ctx context.Context, who string) error {
	return b.client.Set(ctx, b.plain(), who, 0).Err()
}

// paidBy tells who has written last.
func (b bill) paidBy(ctx context.Context) (guarded, plain string, err error) {
	if guarded, err = b.client.HGet(ctx, b.key(), "paid_by").Result(); err != nil {
		return "", "", err
	}
	plain, err = b.client.Get(ctx, b.plain()).Result()
	return guarded, plain, err
}

// remove deletes the bill and what the election has left.
func (b bill) remove() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	keys := []string{b.key(), b.plain()}
	for _, k := range []string{"lease", "fence", "sessions", "info"} {
		keys = append(keys, "singleton:{"+b.group+"}:"+k)
	}
	b.client.Del(ctx, keys...)
}
