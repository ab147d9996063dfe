package redlock

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/internal/redisclient"
	"github.com/go-singleton/singleton/store"
)

//go:embed lua/*.lua
var sources embed.FS

var (
	acquireScript  = load("acquire")
	settleScript   = load("settle")
	renewScript    = load("renew")
	repairScript   = load("repair")
	releaseScript  = load("release")
	leaderScript   = load("leader")
	joinScript     = load("join")
	leaveScript    = load("leave")
	replicasScript = load("replicas")
	headScript     = load("head")
	writeScript    = load("write")
	stageScript    = load("stage")
	installScript  = load("install")
	vouchScript    = load("vouch")
	bucketsScript  = load("buckets")
	readScript     = load("read")
	postScript     = load("post")
	deliverScript  = load("deliver")
)

func load(name string) *redis.Script { return redisclient.Load(sources, "common", name) }

// refusedBytes is how much a group remembers of the nonces released last, and of the attempts withdrawn last: 27 of the usual
// 36 bytes, 30 attempts.
const refusedBytes = 1000

// redisNode is a Redis server.
type redisNode struct {
	client *redis.Client
	prefix string
	slots  chan struct{} // one for each connection
	sub    *redisclient.Subscription
}

var _ node = (*redisNode)(nil)

// newRedisNode returns a node at the server of a client with these options. It does no I/O.
func newRedisNode(from *redis.Options, cfg Config) *redisNode {
	n := &redisNode{
		client: redis.NewClient(redisclient.Derive(from)), prefix: cfg.Prefix, slots: make(chan struct{}, redisclient.Connections),
		sub: redisclient.NewSubscription(),
	}
	n.sub.Name, n.sub.Log = "redlock: "+n.name(), cfg.Logger
	if n.sub.Log == nil {
		n.sub.Log = slog.New(slog.DiscardHandler)
	}
	n.sub.Server = func(context.Context, string) (redis.UniversalClient, error) { return n.client, nil }
	n.sub.Heard = func(string, redis.UniversalClient, error) {}
	return n
}

func (n *redisNode) name() string { return n.client.Options().Addr }

func (n *redisNode) close() error {
	n.sub.Close()
	return n.client.Close()
}

// key returns the name of one of a group's keys or channels.
func (n *redisNode) key(group, what string) string { return n.prefix + ":{" + group + "}:" + what }

func (n *redisNode) bucketKey(group, bucket string) string {
	if bucket == store.InboxBucket {
		return n.key(group, store.InboxBucket)
	}
	return n.key(group, "r:"+bucket)
}

// stagedKey is where records of a transfer are put aside; the bucket "" is the list of them.
func (n *redisNode) stagedKey(group, transfer, bucket string) string {
	if bucket == "" {
		return n.key(group, "s:"+transfer)
	}
	return n.key(group, "s:"+transfer+":"+bucket)
}

// channel returns where the news of a topic is published.
func (n *redisNode) channel(group string, t store.Topic) string {
	if t == store.InboxFilled {
		return n.key(group, "post")
	}
	return n.key(group, "wake")
}

// keys returns those that every script gets, and more.
func (n *redisNode) keys(group string, more ...string) []string {
	list := make([]string, 0, 8+len(more))
	for _, what := range []string{"lease", "fence", "votes", "ledger", "sessions", "info", "buckets", store.InboxBucket} {
		list = append(list, n.key(group, what))
	}
	return append(list, more...)
}

// run runs a script, loaded again when the server has lost it.
func (n *redisNode) run(ctx context.Context, script *redis.Script, keys []string, args ...any) (reply, error) {
	got, err := connected(ctx, n, func() (any, error) {
		got, err := script.EvalSha(ctx, n.client, keys, args...).Result()
		if redis.HasErrorPrefix(err, "NOSCRIPT") {
			got, err = script.Eval(ctx, n.client, keys, args...).Result()
		}
		return got, err
	})
	if err != nil {
		return reply{}, err
	}
	list, _ := got.([]any)
	if len(list) == 0 {
		return reply{}, errStrange
	}
	word, _ := list[0].(string)
	return reply{word: word, rest: list[1:]}, nil
}

// connected does something that takes a connection, when there is one.
func connected[T any](ctx context.Context, n *redisNode, do func() (T, error)) (T, error) {
	select {
	case n.slots <- struct{}{}:
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
	defer func() { <-n.slots }()
	got, err := do()
	return got, judge(err)
}

// judge turns the error of a server into what the protocol wants.
func judge(err error) error {
	if err == nil {
		return nil
	}
	err = redisclient.Discreet(err)
	switch what, remedy := redisclient.Classify(err.Error()); what {
	case redisclient.Permanent:
		return store.Permanent(remedy, err)
	case redisclient.Alarming:
		return fmt.Errorf("%w: %s", err, remedy)
	}
	return err
}

// identity asks with commands that a user may not be allowed: what is not known counts as not so.
func (n *redisNode) identity(ctx context.Context) (identity, error) {
	return connected(ctx, n, func() (identity, error) {
		pipe := n.client.Pipeline()
		server, replication := pipe.Info(ctx, "server"), pipe.Info(ctx, "replication")
		appends, syncs := pipe.ConfigGet(ctx, "appendonly"), pipe.ConfigGet(ctx, "appendfsync")
		if _, err := pipe.Exec(ctx); err != nil && !redisclient.Refused(err) {
			return identity{}, err
		}
		if err := server.Err(); err != nil {
			return identity{}, err
		}
		followers, _ := strconv.Atoi(field(replication.Val(), "connected_slaves"))
		return identity{
			Run:     field(server.Val(), "run_id"),
			Durable: appends.Val()["appendonly"] == "yes" && syncs.Val()["appendfsync"] == "always",
			Replica: field(replication.Val(), "role") == "slave", Replicas: followers,
		}, nil
	})
}

// field returns a field of INFO.
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, is := strings.CutPrefix(line, name+":"); is {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (n *redisNode) watch(ctx context.Context, group string, t store.Topic, listener func(hub.Notice)) error {
	n.sub.Listen(ctx, n.channel(group, t), group, t, listener)
	return nil
}

// reply is what a script has returned: a word that says how it went, and more.
type reply struct {
	word string
	rest []any
}

var errStrange = errors.New("an answer that no script gives")

func (r reply) text(i int) string {
	if i >= len(r.rest) {
		return ""
	}
	t, _ := r.rest[i].(string)
	return t
}

func (r reply) list(i int) []any {
	if i >= len(r.rest) {
		return nil
	}
	l, _ := r.rest[i].([]any)
	return l
}

func (r reply) number(i int) (uint64, error) {
	v, err := strconv.ParseUint(r.text(i), 10, 64)
	if err != nil || v > store.MaxToken {
		return 0, errStrange
	}
	return v, nil
}

// stamp reads what every answer begins with that a vote is made of. The server counts whole seconds of its clock, so that it
// may have run for almost one less.
func (r reply) stamp() (stamp, error) {
	seconds, err := r.number(1)
	if err != nil {
		return stamp{}, err
	}
	us, err := r.number(2)
	if err != nil {
		return stamp{}, err
	}
	up := time.Duration(max(seconds, 1)-1) * time.Second
	return stamp{Run: r.text(0), Up: up, Clock: time.UnixMicro(int64(us)).UTC()}, nil
}

// stampFields is how many fields that is.
const stampFields = 3

// milliseconds reads a duration.
func (r reply) milliseconds(i int) (time.Duration, error) {
	ms, err := strconv.ParseInt(r.text(i), 10, 64)
	if err != nil {
		return 0, errStrange
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// foreign says that a key of ours holds what no store puts there.
func (n *redisNode) foreign(key string, err error) error {
	return store.Permanent("find out who writes there, then DEL "+key, fmt.Errorf("%s holds something that is not ours: %w", key, err))
}
