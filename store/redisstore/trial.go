package redisstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redisclient"
)

// trial is what a user was refused that tried every command on a key of its own.
type trial struct {
	prefix   string
	barred   string   // why the server does not let the user in; "" where it does
	commands []string // refused ones
	unknown  []string // ones that the server does not have
	keys     bool     // refused
	channels bool     // refused
	written  error    // of a write
	received int64    // by so many replicas, of those that were waited for
}

// attempts are the commands that the scripts run and that the store sends, as they change nothing while the key is not
// there. A server checks permissions before it does anything else. Those that make a connection have been used before.
func attempts(key, channel string) [][]any {
	return [][]any{
		{"ping"}, {"time"}, {"type", key}, {"get", key}, {"set", key, "", "XX", "PX", 1}, {"del", key},
		{"pttl", key}, {"pexpire", key, 1000}, {"pexpireat", key, 1 << 50},
		{"hget", key, "f"}, {"hmget", key, "f"}, {"hdel", key, "f"}, {"hexists", key, "f"}, {"hlen", key}, {"hkeys", key},
		{"zadd", key, "XX", 0, "m"}, {"zscore", key, "m"}, {"zrem", key, "m"}, {"zcount", key, 0, 0}, {"zrangebyscore", key, 0, 0},
		{"eval", "return redis.call('TYPE', KEYS[1])", 1, key}, {"evalsha", strings.Repeat("0", 40), 1, key},
		{"publish", channel, ""},
	}
}

// inCluster are the commands that nodes of a cluster are sent besides: who owns the slots, and ASKING, which concerns the
// next command alone.
func inCluster() [][]any { return [][]any{{"cluster", "slots"}, {"asking"}, {"ping"}} }

// try sends each command that is needed, those of more too, also to see that a write is taken and which replicas receive it
// in time. Nobody listens to the channel of the probe.
func try(ctx context.Context, c redis.UniversalClient, wanted replicas, prefix, probe string, more [][]any) (trial, error) {
	t := trial{prefix: prefix}
	cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, args := range slices.Concat(attempts(probe, probe), more) {
			p.Do(ctx, args...)
		}
		p.HSet(ctx, probe, "f", "")
		p.Do(ctx, "pexpire", probe, 10_000) // should the last not come through
		if wanted.count > 0 {
			waiting(ctx, p, wanted.count, wanted.timeout)
		}
		p.Del(ctx, probe)
		return nil
	})
	if err != nil && !refused(err) {
		return t, err
	}
	if ping := cmds[0].(*redis.Cmd); ping.Val() == nil && barred(cmp.Or(ping.Err(), err)) { // a login is refused for all
		t.barred = err.Error()
		return t, nil
	}
	for _, cmd := range cmds {
		name := cmd.Name()
		if name == "cluster" {
			name = "cluster|slots"
		}
		denied := t.judge(name, cmd.Err())
		switch name {
		case "hset":
			if !denied {
				t.written = cmd.Err()
			}
		case "wait":
			t.received = cmd.(*redis.IntCmd).Val()
		}
	}
	return t, nil
}

// barred tells whether an error is that of a server which does not know the user or the password.
func barred(err error) bool {
	if err == nil {
		return false
	}
	class, _ := redisclient.Classify(err.Error())
	return class == redisclient.Permanent && !strings.Contains(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "unknown command")
}

// listen subscribes to channels that hints come over, and unsubscribes.
func (t *trial) listen(ctx context.Context, c redis.UniversalClient, channels []string) error {
	sub := c.Subscribe(ctx) // to nothing yet: no I/O
	defer sub.Close()
	for _, step := range []struct {
		command string
		send    func(context.Context, ...string) error
	}{{"subscribe", sub.Subscribe}, {"unsubscribe", sub.Unsubscribe}} {
		if err := step.send(ctx, channels...); err != nil {
			return err
		}
		for range channels {
			_, err := sub.ReceiveTimeout(ctx, ioTimeout)
			if t.judge(step.command, err) {
				return nil // one answer to all
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// judge notes that a command was refused, and tells whether it was.
func (t *trial) judge(command string, err error) bool {
	if err == nil || !refused(err) {
		return false
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "unknown command"):
		t.unknown = append(t.unknown, command)
	case !strings.Contains(text, "NOPERM"):
		return false // what else it says is no matter of permissions
	case strings.Contains(text, "channel"):
		t.channels = true
	case strings.Contains(text, " key"):
		t.keys = true
	default:
		t.commands = append(t.commands, command)
	}
	return true
}

// permissions tells what the user may not do.
func (t trial) permissions() Finding {
	f := Finding{Check: "permissions"}
	commands := slices.Compact(slices.Sorted(slices.Values(t.commands))) // some are tried more than once
	var rules, refused []string
	for _, c := range commands {
		rules = append(rules, "+"+c)
	}
	if len(rules) > 0 {
		refused = append(refused, "run "+strings.Join(commands, ", "))
	}
	if t.keys {
		rules, refused = append(rules, "~"+t.prefix+":*"), append(refused, "use the keys "+t.prefix+":*")
	}
	if t.channels {
		rules, refused = append(rules, "&"+t.prefix+":*"), append(refused, "use the channels "+t.prefix+":*")
	}
	switch {
	case t.barred != "":
		return f.fail("the server does not let the user in: "+t.barred, "ACL SETUSER its-name as on the primary, with the same password")
	case len(t.unknown) > 0:
		return f.fail("the server does not know "+strings.Join(t.unknown, ", "), redisclient.TooOld)
	case len(rules) > 0:
		return f.fail("the user may not "+strings.Join(refused, ", nor "), "ACL SETUSER its-name "+strings.Join(rules, " "))
	}
	return f.ok(fmt.Sprintf("the user may run what is needed on the keys and channels %s:*", t.prefix))
}

// writing tells whether the server has taken a write.
func (t trial) writing() Finding {
	f := Finding{Check: "writing"}
	switch {
	case slices.Contains(t.commands, "hset") || slices.Contains(t.unknown, "hset") || t.keys:
		return f.with(LevelSkip, "not known: the user may not write", "see permissions")
	case t.written != nil:
		text := t.written.Error()
		_, remedy := redisclient.Classify(text)
		switch { // what passes by itself in a failover has no remedy
		case redis.IsReadOnlyError(t.written):
			remedy = "use the address of the primary"
		case strings.HasPrefix(text, "NOREPLICAS"):
			remedy = "bring back the replicas that min-replicas-to-write asks for, or lower it"
		}
		return f.fail("a write is refused: "+text, remedy)
	}
	return f.ok("a write is taken")
}

// acknowledgement tells whether as many replicas as the store waits for have received the write in time; nothing where that
// was not to be seen, and said.
func (t trial) acknowledgement(wanted replicas) []Finding {
	if wanted.count == 0 || t.written != nil || t.keys || slices.ContainsFunc([]string{"wait", "hset"}, func(c string) bool {
		return slices.Contains(t.commands, c) || slices.Contains(t.unknown, c)
	}) {
		return nil
	}
	f, found := Finding{Check: "acknowledgement"}, fmt.Sprintf("%d of %d replicas have received a write within %v", t.received,
		wanted.count, wanted.timeout)
	if t.received < int64(wanted.count) {
		return []Finding{f.fail(found+", so that nothing is acquired or committed",
			"find out what keeps the others, or set a longer ReplicaTimeout (replica_timeout) or a lower MinReplicas (min_replicas)")}
	}
	return []Finding{f.ok(found)}
}
