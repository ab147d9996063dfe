//go:build linux

package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/testlog"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/go-singleton/singleton/store/redlock"
)

func candidate(id, nonce string) store.Candidate {
	return store.Candidate{Replica: store.Replica{ID: id}, Nonce: nonce, TTL: time.Minute, Session: time.Minute, Start: true}
}

func lead(t testing.TB, s store.Store, id, nonce string) store.Lease {
	t.Helper()
	l, err := s.Acquire(t.Context(), "g", candidate(id, nonce))
	must(t, err)
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func put(key, value string) store.Change {
	return store.Change{Bucket: "job", Key: key, Value: []byte(value)}
}

// records returns what a bucket holds for a leader.
func records(t testing.TB, s store.Store, l *store.Lease, bucket string) (text string) {
	t.Helper()
	for r, err := range s.Read(t.Context(), "g", l, bucket) {
		must(t, err)
		text += r.Key + "=" + string(r.Value) + " "
	}
	return text
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

// job returns a record of the bucket job as one server keeps it.
func job(t testing.TB, n *redistest.Node, key string) string {
	t.Helper()
	value, err := n.Client().HGet(t.Context(), "singleton:{g}:r:job", key).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		t.Fatal(err)
	}
	return value
}

func renew(t testing.TB, s store.Store, l store.Lease) {
	t.Helper()
	_, err := s.Renew(t.Context(), l)
	must(t, err)
}

// three are servers that have acknowledged nothing which they could lose, until they are restarted.
func three(t *testing.T) (*redistest.Nodes, *redlock.Store) {
	nodes := redistest.StartNodes(t, 3, redistest.AppendOnly())
	return nodes, open(t, clients(nodes), redlock.Config{})
}

func TestQ1CallsGoOnWhileAServerHangsOrIsGone(t *testing.T) {
	t.Parallel()
	nodes, s := three(t)
	l := lead(t, s, "a", "first")
	must(t, s.Commit(t.Context(), l, 1, nil)) // a new group needs all
	must(t, s.Release(t.Context(), l))
	for round, breaks := range []func(){nodes.All[0].Stop, nodes.All[1].Kill} {
		breaks()
		var want string
		l = lead(t, s, "a", fmt.Sprint("n", round))
		for i := range uint64(20) {
			want = fmt.Sprint(round, "-", i)
			must(t, s.Commit(t.Context(), l, i+1, []store.Change{put("k", want)}))
			renew(t, s, l)
		}
		if got := records(t, s, &l, "job"); got != "k="+want+" " {
			t.Errorf("read %q, want %s", got, want)
		}
		nodes.All[0].Cont()
		until(t, func() bool { // two must not be away at once
			renew(t, s, l)
			return job(t, nodes.All[0], "k") == want
		})
		must(t, s.Release(t.Context(), l))
	}
}

// TestQ5ACommitOutlivesTheLossOfAnyMinority kills one server after another, each at a moment when the others have all.
func TestQ5ACommitOutlivesTheLossOfAnyMinority(t *testing.T) {
	t.Parallel()
	nodes, s := three(t)
	for i, n := range nodes.All {
		l := lead(t, s, "a", fmt.Sprint("n", i))
		number := uint64(1)
		must(t, s.Commit(t.Context(), l, number, []store.Change{put("k", fmt.Sprint("before ", i)), put(fmt.Sprint("k", i), "v")}))
		until(t, func() bool { // two must not be away at once
			renew(t, s, l)
			return !slices.ContainsFunc(nodes.All, func(n *redistest.Node) bool { return job(t, n, "k") != fmt.Sprint("before ", i) })
		})
		n.Kill()
		number++
		must(t, s.Commit(t.Context(), l, number, []store.Change{put("k", fmt.Sprint("while ", i))}))
		must(t, n.RestartEmpty())
		until(t, func() bool { // it is given the lease, and then the whole state
			renew(t, s, l)
			return job(t, n, "k") == fmt.Sprint("while ", i) && job(t, n, fmt.Sprint("k", i)) == "v"
		})
		until(t, func() bool { // and counts from then on, with another one away
			other := nodes.All[(i+1)%3]
			other.Stop()
			defer other.Cont()
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			number++
			err := s.Commit(ctx, l, number, []store.Change{put("k", fmt.Sprint("after ", i))})
			if err != nil {
				number--
			}
			return err == nil
		})
		must(t, s.Release(t.Context(), l))
	}
	l := lead(t, s, "b", "last")
	if got := records(t, s, &l, "job"); got != "k=after 2 k0=v k1=v k2=v " {
		t.Errorf("read %q", got)
	}
}

func TestQ5AServerThatWasAwayIsGivenALargeStateWhileCommitsGoOn(t *testing.T) {
	t.Parallel()
	nodes, s := three(t)
	l := lead(t, s, "a", "n1")
	number := uint64(0)
	commit := func(changes ...store.Change) {
		t.Helper()
		number++
		must(t, s.Commit(t.Context(), l, number, changes))
	}
	commit(put("gone", "v"))
	must(t, s.Post(t.Context(), "g", "1", []byte("one")))
	away := nodes.All[2]
	away.Kill()
	value := strings.Repeat("v", 2000)
	for i := range 60 {
		var changes []store.Change
		for k := range store.MaxChanges {
			changes = append(changes, store.Change{Bucket: fmt.Sprint("history/j", i%3), Key: fmt.Sprint(i*store.MaxChanges + k), Value: []byte(value)})
		}
		commit(changes...)
	}
	commit(store.Change{Bucket: "job", Key: "gone", Delete: true}, put("last", "0"))
	must(t, away.RestartEmpty())
	sum := func(n *redistest.Node) string {
		keys := []string{"singleton:{g}:inbox", "singleton:{g}:r:job", "singleton:{g}:r:history/j0", "singleton:{g}:r:history/j1", "singleton:{g}:r:history/j2"}
		var parts []string
		for _, key := range keys {
			all, err := n.Client().HGetAll(t.Context(), key).Result()
			must(t, err)
			parts = append(parts, fmt.Sprint(all))
		}
		return strings.Join(parts, "\n")
	}
	until(t, func() bool {
		renew(t, s, l)
		commit(put("last", fmt.Sprint(number)), put(fmt.Sprint("k", number%7), fmt.Sprint(number)))
		return sum(away) == sum(nodes.All[0])
	})
	if got := records(t, s, &l, "job"); strings.Contains(got, "gone") || !strings.Contains(got, fmt.Sprint("last=", number-1)) {
		t.Errorf("read %q", got)
	}
	aside, err := away.Client().Keys(t.Context(), "singleton:{g}:s:*").Result()
	must(t, err)
	for _, key := range aside { // of a copy that did not come to its end
		if left := away.Client().PTTL(t.Context(), key).Val(); left < time.Minute {
			t.Errorf("%s was put aside for %v", key, left)
		}
	}
}

func TestQ6WithTooFewServersThatAreSureNothingIsReadUntilTheLossIsAccepted(t *testing.T) {
	t.Parallel()
	nodes, s := three(t)
	l := lead(t, s, "a", "n1")
	must(t, s.Commit(t.Context(), l, 1, []store.Change{put("k", "v")}))
	until(t, func() bool { // the one that will be left need not have been of the majority
		renew(t, s, l)
		return job(t, nodes.All[2], "k") == "v"
	})
	must(t, s.Release(t.Context(), l))
	for _, n := range nodes.All[:2] { // without a restart: the lease is not what this is about
		must(t, n.Client().FlushAll(t.Context()).Err())
	}
	l = lead(t, s, "b", "n2")
	var err error
	for _, err = range s.Read(t.Context(), "g", &l, "job") {
		break
	}
	if err == nil || store.Definite(err) || !strings.Contains(err.Error(), "--group g --accept-loss") {
		t.Fatalf("reading ends with %v, want what an operator can do", err)
	}
	if err := s.Commit(t.Context(), l, 1, nil); err == nil || store.Definite(err) {
		t.Errorf("committing ends with %v", err)
	}
	must(t, s.Trust(t.Context(), "g"))
	if got := records(t, s, &l, "job"); got != "k=v " { // which one server of three still has
		t.Errorf("read %q", got)
	}
	must(t, s.Commit(t.Context(), l, 1, []store.Change{put("k", "w")}))
	if got := records(t, s, &l, "job"); got != "k=w " {
		t.Errorf("read %q", got)
	}
}

func TestQ6ANewGroupNeedsAllServersOnce(t *testing.T) {
	t.Parallel()
	nodes, s := three(t)
	nodes.All[2].Kill()
	l := lead(t, s, "a", "n1") // to lead takes a majority
	if err := s.Commit(t.Context(), l, 1, nil); err == nil || store.Definite(err) || !strings.Contains(err.Error(), "--group g --accept-loss") {
		t.Fatalf("committing ends with %v", err)
	}
	must(t, nodes.All[2].Restart())
	until(t, func() bool { return s.Commit(t.Context(), l, 1, []store.Change{put("k", "v")}) == nil })
}

func TestQ8AGroupOfAnotherStoreIsRefused(t *testing.T) {
	t.Parallel()
	nodes, s := three(t)
	single := redisstore.New(nodes.All[0].Client(), nil)
	defer single.Close()
	l := lead(t, s, "a", "n1")
	for range 2 { // with a lease, and without one
		if _, err := single.Acquire(t.Context(), "g", candidate("b", "n2")); !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "singleton:{g}:") {
			t.Errorf("a store on one Redis takes a group of Redlock: %v", err)
		}
		must(t, s.Release(t.Context(), l))
	}
	findings, err := single.Check(t.Context(), "g", 0)
	must(t, err)
	if !slices.ContainsFunc(findings, func(f redisstore.Finding) bool {
		return f.Level == redisstore.LevelFail && strings.Contains(f.Found, "singleton:{g}:fence")
	}) {
		t.Errorf("doctor does not notice: %v", findings)
	}

	for _, n := range nodes.All[:2] {
		other := redisstore.New(n.Client(), nil)
		defer other.Close()
		_, err := other.Acquire(t.Context(), "h", candidate("b", "n2"))
		must(t, err)
	}
	if _, err := s.Acquire(t.Context(), "h", candidate("a", "n3")); !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "singleton:{h}:fence") {
		t.Errorf("Redlock takes a group of a store on one Redis: %v", err)
	}
}

func TestQ7OneServerGivenTwiceIsNamed(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartNodes(t, 2, redistest.AppendOnly())
	list := clients(nodes)
	twice := redis.NewClient(&redis.Options{Addr: nodes.All[0].Proxy.Addr()})
	defer twice.Close()
	s := open(t, append(list, twice), redlock.Config{})
	var err error
	until(t, func() bool { // two of the three answers suffice, and they may be of two servers
		_, err = s.Acquire(t.Context(), "g", candidate("a", "n1"))
		return errors.Is(err, store.ErrPermanent)
	})
	if !strings.Contains(err.Error(), nodes.All[0].Addr()) || !strings.Contains(err.Error(), twice.Options().Addr) {
		t.Errorf("got %v, want both names", err)
	}
}

func TestAReplicaIsWarnedAbout(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartNodes(t, 3, redistest.AppendOnly())
	var log testlog.Log
	s := open(t, clients(nodes), redlock.Config{Logger: log.Logger(slog.LevelInfo)})
	primary := nodes.All[0].Addr()
	must(t, nodes.All[1].Client().Do(t.Context(), "REPLICAOF", "127.0.0.1", primary[strings.LastIndex(primary, ":")+1:]).Err())
	until(t, func() bool {
		_, _ = s.Acquire(t.Context(), "g", candidate("a", "n1"))
		return strings.Contains(log.String(), "READONLY")
	})
	until(t, func() bool {
		_, _, _ = s.Position(t.Context(), "g")
		return strings.Contains(log.String(), "follows another server")
	})
}

func TestSEC2ACopyTakesNoMoreThanIsDocumented(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartNodes(t, 3, redistest.AppendOnly())
	s := open(t, few(t, nodes, "singleton"), redlock.Config{})
	l := lead(t, s, "a", "n1")
	must(t, s.Commit(t.Context(), l, 1, []store.Change{put("k", "v")}))
	must(t, nodes.All[0].Client().Del(t.Context(), "singleton:{g}:ledger", "singleton:{g}:r:job").Err())
	number := uint64(1)
	until(t, func() bool {
		number++
		must(t, s.Commit(t.Context(), l, number, []store.Change{put("last", "v")}))
		return job(t, nodes.All[0], "k") == "v"
	})
	nothingRefused(t, clients(nodes))
}

// TestQ6ANewLeaderSettlesWhatOnlyAMinorityHas has a commit reach one server of three, and another go away that might have it:
// where the ledger stands cannot be told then, but by whoever leads.
func TestQ6ANewLeaderSettlesWhatOnlyAMinorityHas(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartNodes(t, 3, redistest.AppendOnly())
	through := func() *redlock.Store {
		var list []*redis.Client
		for _, addr := range nodes.Addrs() {
			c := redis.NewClient(&redis.Options{Addr: addr})
			t.Cleanup(func() { _ = c.Close() })
			list = append(list, c)
		}
		return open(t, list, redlock.Config{})
	}
	old, young := through(), through()
	l := lead(t, old, "a", "n1")
	must(t, old.Commit(t.Context(), l, 1, []store.Change{put("k", "v")}))
	for _, n := range nodes.All[1:] {
		n.Cut()
	}
	short, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := old.Commit(short, l, 2, []store.Change{put("k", "w")}); err == nil || store.Definite(err) {
		t.Fatalf("a commit that one of three servers has: %v", err)
	}
	nodes.All[1].Heal()
	nodes.All[1].Proxy.Cut()
	nodes.All[2].Kill()
	until(t, func() bool { return old.Release(t.Context(), l) == nil })
	lead(t, young, "b", "n2")
	token, number, err := young.Position(t.Context(), "g")
	if err != nil || token != l.Token || number < 1 || number > 2 {
		t.Errorf("position %d %d, %v", token, number, err)
	}
}

// TestALeaseDoesNotOutliveItsSession has servers look at the lease when a renewal begins, and at their clocks a moment later,
// when both are over: the lease is lost, and not only the session.
func TestALeaseDoesNotOutliveItsSession(t *testing.T) {
	t.Parallel()
	nodes, s := three(t)
	l := lead(t, s, "a", "n1")
	renew(t, s, l)
	for _, n := range nodes.All {
		past := redis.Z{Score: float64(time.Now().Add(-time.Second).UnixMilli()), Member: "a"}
		must(t, n.Client().ZAdd(t.Context(), "singleton:{g}:sessions", past).Err())
	}
	if _, err := s.Renew(t.Context(), l); !errors.Is(err, store.ErrLost) {
		t.Errorf("got %v", err)
	}
}
