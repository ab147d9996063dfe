package redisstore_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

func candidate(id, nonce string) store.Candidate {
	return store.Candidate{Replica: store.Replica{ID: id}, Nonce: nonce, TTL: time.Minute, Session: time.Minute, Start: true}
}

func lead(t testing.TB, s store.Store, id, nonce string) store.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), "g", candidate(id, nonce))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func do(t testing.TB, c *redis.Client, args ...any) {
	t.Helper()
	if err := c.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// until waits for what comes by itself.
func until(t testing.TB, come func() bool) {
	t.Helper()
	patience := time.After(time.Minute)
	for !come() {
		select {
		case <-time.After(time.Millisecond):
		case <-patience:
			t.Fatal("it did not come")
		}
	}
}

func acquires(t *testing.T, s store.Store) error {
	_, err := s.Acquire(t.Context(), "g", candidate("a", "n1"))
	return err
}

func wantPermanent(t *testing.T, err error, texts ...string) {
	t.Helper()
	if !errors.Is(err, store.ErrPermanent) {
		t.Fatalf("got %v, want a permanent error", err)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want it to say %q", err, text)
		}
	}
}

func wantTransient(t *testing.T, err error, text string) {
	t.Helper()
	if err == nil || errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), text) {
		t.Fatalf("got %v, want a transient error that says %q", err, text)
	}
}

func TestB17WrongCredentialsAreToldForGood(t *testing.T) {
	server := redistest.Start(t, redistest.Args("--requirepass", "right"))
	for _, c := range []struct{ user, password, want, remedy string }{
		{"", "", "", "wants a password"}, // NOAUTH, or a refusal of long requests
		{"", "wrong-s3cret", "WRONGPASS", "set those that it knows"},
		{"nobody", "wrong-s3cret", "WRONGPASS", "set those that it knows"},
	} {
		err := acquires(t, open(t, server.Client(func(o *redis.Options) { o.Username, o.Password = c.user, c.password }), nil))
		wantPermanent(t, err, c.want, c.remedy)
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("SEC7: the password is in %v", err)
		}
	}
	must(t, acquires(t, open(t, server.Client(func(o *redis.Options) { o.Password = "right" }), nil)))

	err := acquires(t, open(t, redistest.Start(t).Client(func(o *redis.Options) { o.DB = 99 }), nil))
	wantPermanent(t, err, "use another")
}

func TestB17AForeignTypeAtEachOfOurKeysIsNamed(t *testing.T) {
	client := redistest.Start(t).Client()
	s, ctx := open(t, client, nil), t.Context()
	l := store.Lease{Group: "g", Replica: "a", Nonce: "n1", Token: 1, Grant: store.Grant{TTL: time.Minute}}
	calls := map[string]func() error{
		"acquire": func() error { _, err := s.Acquire(ctx, "g", candidate("a", "n1")); return err },
		"renew":   func() error { _, err := s.Renew(ctx, l); return err },
		"release": func() error { return s.Release(ctx, l) },
		"leader":  func() error { _, err := s.Leader(ctx, "g"); return err },
		"join":    func() error { _, err := s.Join(ctx, "g", store.Replica{ID: "a"}, time.Minute, true); return err },
		"leave":   func() error { return s.Leave(ctx, "g", "a") },
		"replicas": func() error {
			_, err := s.Replicas(ctx, "g")
			return err
		},
		"commit": func() error {
			return s.Commit(ctx, l, 1, []store.Change{{Bucket: "job", Key: "k"}, {Bucket: "history/x", Key: "k"}})
		},
		"read":     func() error { return readAll(s, ctx, "job") },
		"position": func() error { _, _, err := s.Position(ctx, "g"); return err },
		"post":     func() error { return s.Post(ctx, "g", "1", nil) },
	}
	for key, methods := range map[string]string{
		"lease":       "acquire renew release leader commit read",
		"fence":       "acquire renew release commit position",
		"sessions":    "acquire renew join leave replicas",
		"info":        "acquire renew join leave replicas",
		"r:job":       "commit read",
		"r:history/x": "commit",
		"inbox":       "post",
	} {
		for method := range strings.FieldsSeq(methods) {
			t.Run(key+" in "+method, func(t *testing.T) {
				name := "singleton:{g}:" + key
				do(t, client, "FLUSHALL")
				do(t, client, "RPUSH", name, "foreign")
				wantPermanent(t, calls[method](), "WRONGTYPE", name, "prefix")
				if keys := client.Keys(ctx, "*").Val(); !slices.Equal(keys, []string{name}) {
					t.Errorf("a refused call has left %v", keys)
				}
			})
		}
	}
}

func readAll(s store.Store, ctx context.Context, bucket string) error {
	for _, err := range s.Read(ctx, "g", nil, bucket) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestB7WhatOthersHaveWrittenIsNotBelieved(t *testing.T) {
	client := redistest.Start(t).Client()
	s, ctx := open(t, client, nil), t.Context()
	leader := func() error { _, err := s.Leader(ctx, "g"); return err }
	for _, c := range []struct {
		name  string
		write []any
		call  func() error
	}{
		{"no lease", []any{"SET", "singleton:{g}:lease", "mine", "PX", 60000}, leader},
		{"a lease without a nonce", []any{"SET", "singleton:{g}:lease", "1 a", "PX", 60000}, leader},
		{"a lease without a token", []any{"SET", "singleton:{g}:lease", "x a n", "PX", 60000}, leader},
		{"a lease with too high a token", []any{"SET", "singleton:{g}:lease", "9007199254740992 a n", "PX", 60000}, leader},
		{"a lease of no name", []any{"SET", "singleton:{g}:lease", "1 a:b n", "PX", 60000}, leader},
		{"a lease of a line break", []any{"SET", "singleton:{g}:lease", "1 a\nb n", "PX", 60000}, leader},
		{"a lease that never ends", []any{"SET", "singleton:{g}:lease", "1 a n"}, leader},
		{"a lease of another", []any{"SET", "singleton:{g}:lease", "lock", "PX", 60000}, func() error { return acquires(t, s) }},
		{"a session of no name", []any{"ZADD", "singleton:{g}:sessions", "inf", "a:b"}, func() error { _, err := s.Replicas(ctx, "g"); return err }},
		{"a record of no name", []any{"HSET", "singleton:{g}:r:job", "a b", "v"}, func() error { return readAll(s, ctx, "job") }},
		{"a position of no number", []any{"HSET", "singleton:{g}:fence", "committed", "x"}, func() error { _, _, err := s.Position(ctx, "g"); return err }},
	} {
		t.Run(c.name, func(t *testing.T) {
			do(t, client, "FLUSHALL")
			do(t, client, c.write...)
			wantPermanent(t, c.call(), c.write[1].(string))
		})
	}
}

func TestB5AnOverwrittenLeaseIsLostAndNotReleased(t *testing.T) {
	client := redistest.Start(t).Client()
	s, ctx := open(t, client, nil), t.Context()
	l := lead(t, s, "a", "n1")
	do(t, client, "SET", "singleton:{g}:lease", fmt.Sprintf("%d b n1", l.Token), "PX", 60000)
	if _, err := s.Renew(ctx, l); !errors.Is(err, store.ErrLost) {
		t.Errorf("renew: %v", err)
	}
	must(t, s.Release(ctx, l))
	if leader, err := s.Leader(ctx, "g"); err != nil || leader.Replica != "b" {
		t.Errorf("after a late release %+v, %v", leader, err)
	}
	for _, gone := range [][]any{{"DEL", "singleton:{g}:lease"}, {"FLUSHALL"}} {
		do(t, client, gone...)
		if _, err := s.Renew(ctx, l); !errors.Is(err, store.ErrLost) {
			t.Errorf("renew after %v: %v", gone, err)
		}
		next := lead(t, s, "c", fmt.Sprintf("%v", gone[0]))
		if next.Token <= l.Token {
			t.Errorf("token %d after %d", next.Token, l.Token)
		}
		l = next
	}
}

func TestServersThatCannotServeAreAskedAgain(t *testing.T) {
	server := redistest.Start(t, redistest.Args("--enable-debug-command", "local", "--busy-reply-threshold", "10"))
	client := server.Client()
	for _, c := range []struct {
		name, want string
		breaks     func(t *testing.T)
		mends      func(t *testing.T)
	}{
		{"too few replicas", "NOREPLICAS",
			func(t *testing.T) { do(t, client, "CONFIG", "SET", "min-replicas-to-write", 1) },
			func(t *testing.T) { do(t, client, "CONFIG", "SET", "min-replicas-to-write", 0) }},
		{"a replica", "READONLY",
			func(t *testing.T) { do(t, client, "REPLICAOF", "127.0.0.1", 1) },
			func(t *testing.T) { do(t, client, "REPLICAOF", "NO", "ONE") }},
		{"a replica that has lost its primary", "MASTERDOWN",
			func(t *testing.T) {
				do(t, client, "CONFIG", "SET", "replica-serve-stale-data", "no")
				do(t, client, "REPLICAOF", "127.0.0.1", 1)
			},
			func(t *testing.T) { do(t, client, "REPLICAOF", "NO", "ONE") }},
		{"no memory", "OOM",
			func(t *testing.T) { do(t, client, "CONFIG", "SET", "maxmemory", 1) },
			func(t *testing.T) { do(t, client, "CONFIG", "SET", "maxmemory", 0) }},
		{"no room for connections", "", // what it says may get lost when it closes the connection
			func(t *testing.T) { do(t, client, "CONFIG", "SET", "maxclients", 1) },
			func(t *testing.T) { do(t, client, "CONFIG", "SET", "maxclients", 10000) }},
		{"no disk", "MISCONF",
			func(t *testing.T) {
				do(t, client, "CONFIG", "SET", "save", "3600 1")
				must(t, os.RemoveAll(server.Dir()))
				do(t, client, "BGSAVE")
				until(t, func() bool {
					return strings.Contains(client.Info(t.Context(), "persistence").Val(), "rdb_last_bgsave_status:err")
				})
			},
			func(t *testing.T) { do(t, client, "CONFIG", "SET", "save", "") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, server.Client(), nil)
			c.breaks(t)
			wantTransient(t, acquires(t, s), c.want)
			c.mends(t)
			must(t, acquires(t, s))
			must(t, s.Release(t.Context(), store.Lease{Group: "g", Replica: "a", Nonce: "n1"}))
			do(t, client, "FLUSHALL")
		})
	}
}

func TestABusyServerIsAskedAgain(t *testing.T) {
	server := redistest.Start(t, redistest.Args("--busy-reply-threshold", "10"))
	client, s := server.Client(), open(t, server.Client(), nil)
	must(t, acquires(t, s))
	forever := make(chan error, 1)
	go func() { forever <- server.Client().Eval(context.Background(), "while true do end", nil).Err() }()
	until(t, func() bool { return redis.HasErrorPrefix(client.Ping(t.Context()).Err(), "BUSY") })
	wantTransient(t, acquires(t, s), "BUSY")
	do(t, client, "SCRIPT", "KILL")
	if err := <-forever; err == nil {
		t.Error("the script ended by itself")
	}
	must(t, acquires(t, s))
}

func TestALoadingServerIsAskedAgain(t *testing.T) {
	server := redistest.Start(t, redistest.AppendOnly(), redistest.Args("--key-load-delay", "100", "--loading-process-events-interval-bytes", "1024"))
	client := server.Client()
	s := open(t, client, nil)
	l := lead(t, s, "a", "n1")
	for i := range 20 {
		do(t, client, "SET", fmt.Sprint("filler", i), strings.Repeat("x", 100_000))
	}
	do(t, client, "BGREWRITEAOF")
	until(t, func() bool {
		info := client.Info(t.Context(), "persistence").Val()
		return strings.Contains(info, "aof_rewrite_in_progress:0") && strings.Contains(info, "aof_rewrite_scheduled:0") &&
			strings.Contains(info, "aof_last_bgrewrite_status:ok")
	})
	must(t, server.Launch())
	var err error
	until(t, func() bool {
		_, err = s.Renew(t.Context(), l)
		return err == nil || strings.Contains(err.Error(), "LOADING")
	})
	wantTransient(t, err, "LOADING")
	must(t, server.Wait())
	_, err = s.Renew(t.Context(), l)
	must(t, err)
}

func TestAClusterWithoutOwnersIsAskedAgain(t *testing.T) {
	server := redistest.Start(t, redistest.Args("--cluster-enabled", "yes"))
	s := open(t, server.Client(), nil)
	wantTransient(t, acquires(t, s), "CLUSTERDOWN")
	do(t, server.Client(), "CLUSTER", "ADDSLOTSRANGE", 0, 16383)
	until(t, func() bool { return acquires(t, s) == nil })
	must(t, s.Commit(t.Context(), lead(t, s, "a", "n1"), 1, []store.Change{{Bucket: "job", Key: "k"}, {Bucket: "history/j", Key: "k"}}))
	must(t, s.Post(t.Context(), "g", "1", nil))
}

func TestAServerWithoutACommandIsToldForGood(t *testing.T) {
	server := redistest.Start(t, redistest.Args("--rename-command", "EVALSHA", ""))
	err := acquires(t, open(t, server.Client(), nil))
	wantPermanent(t, err, "unknown command", "6.2")
	if strings.Contains(err.Error(), "n1") || strings.Contains(err.Error(), "singleton:{g}") {
		t.Errorf("SEC7: arguments are in %v", err)
	}
	inScripts := redistest.Start(t, redistest.Args("--rename-command", "ZADD", ""))
	wantPermanent(t, acquires(t, open(t, inScripts.Client(), nil)), "6.2")
}

func TestAServerOutOfMemoryLetsTheLivingLive(t *testing.T) {
	client := redistest.Start(t).Client()
	var log strings.Builder
	s := open(t, client, &redisstore.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	ctx := t.Context()
	l := lead(t, s, "a", "n1")
	must(t, s.Post(ctx, "g", "1", nil))
	do(t, client, "CONFIG", "SET", "maxmemory", 1)

	_, err := s.Renew(ctx, l)
	must(t, err)
	_, err = s.Acquire(ctx, "g", candidate("a", "n1"))
	must(t, err)
	_, err = s.Join(ctx, "g", store.Replica{ID: "a"}, time.Minute, false)
	must(t, err)
	if _, err = s.Acquire(ctx, "g", candidate("b", "n2")); err == nil || errors.Is(err, store.ErrPermanent) || strings.Contains(err.Error(), "OOM") {
		t.Errorf("a held acquire: %v, want a HeldError", err)
	}
	for range 3 {
		wantTransient(t, s.Commit(ctx, l, 1, []store.Change{{Bucket: "job", Key: "k"}, {Bucket: "inbox", Key: "1", Delete: true}}), "OOM")
	}
	if n := client.HLen(ctx, "singleton:{g}:inbox").Val(); n != 1 {
		t.Errorf("half of a refused commit was done: %d messages are left", n)
	}
	wantTransient(t, s.Post(ctx, "g", "2", nil), "OOM")
	must(t, s.Release(ctx, l))
	wantTransient(t, acquires(t, open(t, client, &redisstore.Options{Prefix: "other"})), "OOM")

	do(t, client, "CONFIG", "SET", "maxmemory", 0)
	l = lead(t, s, "a", "n3")
	must(t, s.Commit(ctx, l, 1, []store.Change{{Bucket: "job", Key: "k"}}))
	if n := strings.Count(log.String(), "level=ERROR"); n != 2 { // commit, post
		t.Errorf("%d alarms, want one for each method:\n%s", n, log.String())
	}
}
