package redisstore

import (
	"context"
	"embed"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redisclient"
)

//go:embed lua/*.lua
var sources embed.FS

var (
	acquireScript  = load("acquire")
	renewScript    = load("renew")
	releaseScript  = load("release")
	retractScript  = load("retract")
	leaderScript   = load("leader")
	joinScript     = load("join")
	leaveScript    = load("leave")
	replicasScript = load("replicas")
	commitScript   = load("commit")
	readScript     = load("read")
	positionScript = load("position")
	postScript     = load("post")
)

func load(name string) *redis.Script { return redisclient.Load(sources, name) }

// reply is what a script has returned: a word that says how it went, and more.
type reply struct {
	word string
	rest []any
}

// hops is how many redirections of a cluster one call follows.
const hops = 5

// run runs a script about a group; method names the caller in errors.
func (s *Store) run(ctx context.Context, method, group string, script *redis.Script, keys []string, args ...any) (reply, error) {
	return s.send(ctx, method, group, request{script: script, keys: keys, args: args})
}

// send carries out a request about a group.
func (s *Store) send(ctx context.Context, method, group string, q request) (reply, error) {
	slots := s.slots
	if slots != nil && q.slots != nil {
		slots = q.slots
	}
	got, err := s.call(ctx, slots, func(ctx context.Context, servers servers) (any, error) {
		client, err := servers.primary(ctx, group)
		if err != nil {
			return nil, err
		}
		if err := s.supported(ctx, client, q.wait); err != nil {
			servers.heard(group, client, err)
			return nil, err
		}
		for range hops {
			var got any
			got, err = q.send(ctx, client)
			next, asking := servers.heard(group, client, err)
			if next == nil {
				return got, err
			}
			client, q.asking = next, asking // another server is to be asked: this one has done nothing
		}
		return nil, err
	})
	return s.read(ctx, method, got, err)
}

// read returns what a script has answered, or its error as the contract wants it.
func (s *Store) read(ctx context.Context, method string, got any, err error) (reply, error) {
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

// request is a script to be run.
type request struct {
	script *redis.Script
	keys   []string
	args   []any
	wait   replicas      // that are to have received what it writes
	undo   *request      // what to do when they have not; nil is nothing
	asking bool          // of a server that does not own the slot yet
	slots  chan struct{} // to take one of; nil is those of all calls
}

// send runs the script by its digest, or by its text where the server has lost it.
func (q request) send(ctx context.Context, client redis.UniversalClient) (any, error) {
	got, received, err := q.once(ctx, client, func(c redis.Cmdable) *redis.Cmd { return q.script.EvalSha(ctx, c, q.keys, q.args...) })
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		got, received, err = q.once(ctx, client, func(c redis.Cmdable) *redis.Cmd { return q.script.Eval(ctx, c, q.keys, q.args...) })
	}
	if err != nil || received >= q.wait.count || !wrote(got) {
		return got, err
	}
	short := fmt.Errorf("%d of %d replicas have acknowledged it within %v: look at the replicas", received, q.wait.count, q.wait.timeout)
	if q.undo != nil {
		detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoLimit)
		defer cancel()
		undo := *q.undo
		undo.asking = q.asking
		if _, err := undo.send(detached, client); err != nil {
			return nil, fmt.Errorf("%w; it lapses, because it could not be undone: %w", short, err)
		}
	}
	return nil, short
}

// once sends one request, and what belongs to it over the same connection. It returns how many replicas have received what
// the request has written.
func (q request) once(ctx context.Context, client redis.UniversalClient, run func(redis.Cmdable) *redis.Cmd) (got any, received int, err error) {
	if !q.asking && q.wait.count == 0 {
		got, err = run(client).Result()
		return got, 0, err
	}
	pipe := client.Pipeline()
	var asked *redis.Cmd
	if q.asking {
		asked = pipe.Do(ctx, "ASKING")
	}
	cmd := run(pipe)
	waited := q.wait.add(ctx, pipe)
	_, failed := pipe.Exec(ctx)
	if asked != nil && asked.Err() != nil {
		return nil, 0, asked.Err() // the script was sent on, and says less
	}
	if got, err = cmd.Result(); err != nil {
		return nil, 0, err
	}
	if waited == nil {
		return got, 0, nil
	}
	n, err := waited.Result()
	if err == nil {
		err = failed
	}
	return got, int(n), err
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
