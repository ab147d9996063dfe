package redisstore

import (
	"context"
	"embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed lua/*.lua
var sources embed.FS

var (
	acquireScript  = load("acquire")
	renewScript    = load("renew")
	releaseScript  = load("release")
	leaderScript   = load("leader")
	joinScript     = load("join")
	leaveScript    = load("leave")
	replicasScript = load("replicas")
	commitScript   = load("commit")
	readScript     = load("read")
	positionScript = load("position")
	postScript     = load("post")
)

func load(name string) *redis.Script {
	var text strings.Builder
	for _, part := range []string{"prelude", name} {
		b, err := sources.ReadFile("lua/" + part + ".lua")
		if err != nil {
			panic(err) // embedded: it is there or the program does not build
		}
		text.WriteString(string(b))
	}
	return redis.NewScript(text.String())
}

// reply is what a script has returned: a word that says how it went, and more.
type reply struct {
	word string
	rest []any
}

// run runs a script; method names the caller in errors.
func (s *Store) run(ctx context.Context, method string, script *redis.Script, keys []string, args ...any) (reply, error) {
	got, err := s.call(ctx, func(ctx context.Context, c redis.UniversalClient) (any, error) {
		return script.Run(ctx, c, keys, args...).Result()
	})
	if err := s.judge(ctx, method, err); err != nil {
		return reply{}, err
	}
	list, _ := got.([]any)
	if len(list) == 0 {
		return reply{}, strange(method, got)
	}
	word, _ := list[0].(string)
	return reply{word: word, rest: list[1:]}, nil
}

// text returns the string at i, "" when there is none.
func (r reply) text(i int) string {
	if i >= len(r.rest) {
		return ""
	}
	t, _ := r.rest[i].(string)
	return t
}

// integer returns the integer at i, which may come as one or as its digits.
func (r reply) integer(i int) (int64, error) {
	if i >= len(r.rest) {
		return 0, strange("script", r.rest)
	}
	if n, ok := r.rest[i].(int64); ok {
		return n, nil
	}
	n, err := strconv.ParseInt(r.text(i), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("redisstore: a script has returned no number: %w", err)
	}
	return n, nil
}

// list returns the list at i.
func (r reply) list(i int) []any {
	if i >= len(r.rest) {
		return nil
	}
	l, _ := r.rest[i].([]any)
	return l
}

// strange says that an answer has a form that no script of ours gives; it is not printed, because it may hold anything.
func strange(method string, got any) error {
	return fmt.Errorf("redisstore: %s: an answer of type %T that no script gives", method, got)
}
