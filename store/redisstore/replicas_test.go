package redisstore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/testlog"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/go-singleton/singleton/store/storetest"
)

// pair starts a primary with one replica.
func pair(t *testing.T) (primary, replica *redistest.Server) {
	t.Helper()
	primary = redistest.Start(t)
	_, port, _ := strings.Cut(primary.Addr(), ":")
	replica = redistest.Start(t, redistest.Args("--replicaof", "127.0.0.1", port))
	replicated(t, primary, 1)
	return primary, replica
}

// patiently acquires a lease when a replica that is busy has received it.
func patiently(t *testing.T, s *redisstore.Store, group, nonce string) (l store.Lease) {
	t.Helper()
	until(t, func() bool {
		var err error
		l, err = s.Acquire(t.Context(), group, candidate("a", nonce))
		return err == nil
	})
	return l
}

func TestContractWithAcknowledgement(t *testing.T) {
	primary, _ := pair(t)
	client := primary.Client()
	h, _ := harness(func(t *testing.T, opts *redisstore.Options) *redisstore.Store {
		opts.MinReplicas = 1
		return open(t, client, opts)
	}, client)
	storetest.Run(t, h)
}

func TestB21AnAcquireThatNoReplicaHasReceivedIsUndone(t *testing.T) {
	primary, replica := pair(t)
	client := primary.Client()
	s := open(t, client, &redisstore.Options{MinReplicas: 1, ReplicaTimeout: 50 * time.Millisecond})
	must(t, s.Release(t.Context(), patiently(t, s, "g", "n0"))) // the script is loaded, and a connection has written
	replicated(t, primary, 1)
	replica.Stop()
	for range 3 { // also with a connection that was not used meanwhile
		_, err := s.Acquire(t.Context(), "g", candidate("a", "n1"))
		wantTransient(t, err, "0 of 1 replicas")
		if n := client.Exists(t.Context(), "singleton:{g}:lease").Val(); n != 0 {
			t.Fatal("the lease is still there")
		}
	}
	replica.Cont()
	_, err := s.Renew(t.Context(), patiently(t, s, "g", "n1")) // the nonce is as good as before
	must(t, err)
}

func TestACommitIsAskedAgainUntilAReplicaHasReceivedIt(t *testing.T) {
	primary, replica := pair(t)
	client := primary.Client()
	s := open(t, client, &redisstore.Options{MinReplicas: 1, ReplicaTimeout: 50 * time.Millisecond})
	l := patiently(t, s, "g", "n1")
	commit := func(s *redisstore.Store) error {
		return s.Commit(t.Context(), l, 1, []store.Change{{Bucket: "job", Key: "k", Value: []byte("v")}})
	}
	replicated(t, primary, 1)
	replica.Stop()
	wantTransient(t, commit(s), "0 of 1 replicas")
	for range 2 { // connections that have written nothing themselves
		other := open(t, client, &redisstore.Options{MinReplicas: 1, ReplicaTimeout: 50 * time.Millisecond})
		wantTransient(t, commit(other), "0 of 1 replicas")
	}
	replica.Cont()
	until(t, func() bool { return commit(s) == nil })
	if got := replica.Client().HGet(t.Context(), "singleton:{g}:r:job", "k").Val(); got != "v" {
		t.Errorf("the replica has %q", got)
	}
	// What writes nothing waits for nobody.
	replica.Stop()
	if err := s.Commit(t.Context(), l, 3, nil); !errors.Is(err, store.ErrGap) {
		t.Errorf("got %v, want %v", err, store.ErrGap)
	}
	if _, err := s.Acquire(t.Context(), "g", candidate("b", "n2")); err == nil || !strings.Contains(err.Error(), "held") {
		t.Errorf("got %v, want a HeldError", err)
	}
	replica.Cont()
}

func TestB16FlushedScriptsAreLoadedAgainBeforeTheWait(t *testing.T) {
	primary, replica := pair(t)
	s := open(t, primary.Client(), &redisstore.Options{MinReplicas: 1})
	for _, n := range []string{"n1", "n2", "n3"} {
		do(t, primary.Client(), "SCRIPT", "FLUSH")
		l := lead(t, s, "a", n)
		if n := replica.Client().Exists(t.Context(), "singleton:{g}:lease").Val(); n != 1 {
			t.Error("the replica does not have the lease")
		}
		must(t, s.Release(t.Context(), l))
	}
}

func TestAServerThatCannotWaitIsRecognisedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		remedy string
	}{
		"unknown": {[]string{"--rename-command", "WAIT", ""}, "MinReplicas to 0"},
		"refused": {[]string{"--user", "default", "on", "nopass", "~*", "&*", "+@all", "-wait"}, "grant"},
	} {
		t.Run(name, func(t *testing.T) {
			server, log := redistest.Start(t, redistest.Args(c.args...)), &testlog.Log{}
			s := open(t, server.Client(), &redisstore.Options{MinReplicas: 1, Logger: textLogger(log)})
			for range 3 {
				wantPermanent(t, acquires(t, s), c.remedy)
			}
			if n := server.Client().Exists(t.Context(), "singleton:{g}:lease").Val(); n != 0 {
				t.Error("a lease was taken")
			}
			if n := strings.Count(log.String(), "level=ERROR"); n != 1 {
				t.Errorf("said %d times:\n%s", n, log)
			}
		})
	}
}

func TestBadOptionsOfAcknowledgementAreToldByEachCall(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1"})
	defer client.Close()
	for _, o := range []redisstore.Options{{MinReplicas: -1}, {MinReplicas: 101}, {ReplicaTimeout: -1}, {ReplicaTimeout: 3 * time.Second}} {
		s := redisstore.New(client, &o)
		wantPermanent(t, acquires(t, s), "redisstore: ", "use ")
		must(t, s.Close())
	}
}

// TestWhatAcknowledgementNarrows is the failover of TestWhatAFailoverHasLostIsToldAndTokensGrow: what it loses was never
// taken for granted.
func TestWhatAcknowledgementNarrows(t *testing.T) {
	t.Parallel()
	servers := redistest.StartSentinels(t)
	s, ctx := openFailover(t, servers, &redisstore.Options{MinReplicas: 1, ReplicaTimeout: 100 * time.Millisecond}), t.Context()
	kept := patiently(t, s, "g", "n1")
	keep(t, "commit", func(ctx context.Context) error { return s.Commit(ctx, kept, 1, nil) })
	replicated(t, servers.Servers[0], 2)
	cutOff(t, servers.Servers[0], servers.Servers[1:])
	wantTransient(t, s.Commit(ctx, kept, 2, nil), "0 of 1 replicas")
	_, err := s.Acquire(ctx, "lost", candidate("a", "n1"))
	wantTransient(t, err, "0 of 1 replicas")
	servers.Servers[0].Kill()
	for _, r := range servers.Servers[1:] {
		r.Cont()
	}
	keep(t, "commit", func(ctx context.Context) error { return s.Commit(ctx, kept, 2, nil) })
	keep(t, "commit", func(ctx context.Context) error { return s.Commit(ctx, kept, 3, nil) })
}

func TestAcknowledgementInAClusterIsThatOfTheSlotsOwner(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartCluster(t)
	s := openCluster(t, nodes, &redisstore.Options{MinReplicas: 1, ReplicaTimeout: 50 * time.Millisecond})
	patiently(t, s, "g", "n1")
	owner, err := nodes.Owner(t.Context(), nodes.Nodes[0], "{h}")
	must(t, err)
	replica := nodes.Replica(owner)
	replica.Stop()
	_, err = s.Acquire(t.Context(), "h", candidate("a", "n1"))
	wantTransient(t, err, "0 of 1 replicas")
	if n := owner.Client().Exists(t.Context(), "singleton:{h}:lease").Val(); n != 0 {
		t.Error("the lease is still there")
	}
	replica.Cont()
	patiently(t, s, "h", "n1")
}

// TestWhatMinReplicasToWriteNarrows: the server refuses by itself, but only when replicas have lagged for a while.
func TestWhatMinReplicasToWriteNarrows(t *testing.T) {
	t.Parallel()
	primary, replica := pair(t)
	s := open(t, primary.Client(), nil)
	do(t, primary.Client(), "CONFIG", "SET", "min-replicas-to-write", 1, "min-replicas-max-lag", 1)
	var l store.Lease
	until(t, func() (led bool) { // until the replica has told how far it is
		var err error
		l, err = s.Acquire(t.Context(), "g", candidate("a", "n1"))
		return err == nil
	})
	replica.Stop()
	began, taken := time.Now(), uint64(0)
	var err error
	until(t, func() bool {
		if err = s.Commit(t.Context(), l, taken+1, nil); err == nil {
			taken++
		}
		return err != nil
	})
	t.Logf("%d commits were taken that no replica has, for %v", taken, time.Since(began))
	wantTransient(t, err, "NOREPLICAS")
	if taken == 0 {
		t.Error("none was taken")
	}
	_, err = s.Renew(t.Context(), l)
	wantTransient(t, err, "NOREPLICAS")
	replica.Cont()
	until(t, func() bool { return s.Commit(t.Context(), l, taken+1, nil) == nil })
}
