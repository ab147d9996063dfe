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

	"github.com/go-singleton/singleton/internal/clockjump"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/testlog"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// everything calls each method once so that each script is run and each key written.
func everything(ctx context.Context, s store.Store) error {
	c := candidate("a", "n1")
	c.Info = []byte("about a")
	l, err := s.Acquire(ctx, "g", c)
	if err != nil {
		return err
	}
	if _, err := s.Acquire(ctx, "g", candidate("b", "n2")); !strings.Contains(fmt.Sprint(err), "is held by a") {
		return fmt.Errorf("held acquire: %w", err)
	}
	if _, err := s.Renew(ctx, l); err != nil {
		return err
	}
	if _, err := s.Leader(ctx, "g"); err != nil {
		return err
	}
	if _, err := s.Join(ctx, "g", store.Replica{ID: "c"}, time.Minute, true); err != nil {
		return err
	}
	if _, err := s.Replicas(ctx, "g"); err != nil {
		return err
	}
	if err := s.Leave(ctx, "g", "c"); err != nil {
		return err
	}
	if err := s.Post(ctx, "g", "1", []byte("m")); err != nil {
		return err
	}
	if err := s.Post(ctx, "g", "2", []byte("m")); err != nil {
		return err
	}
	if err := s.Commit(ctx, l, 1, []store.Change{
		{Bucket: "job", Key: "k", Value: []byte("v")}, {Bucket: "history/report", Key: "1", Value: []byte("h")},
		{Bucket: "inbox", Key: "1", Delete: true},
	}); err != nil {
		return err
	}
	if _, _, err := s.Position(ctx, "g"); err != nil {
		return err
	}
	if err := readAll(s, ctx, "job"); err != nil {
		return err
	}
	return s.Release(ctx, l)
}

func TestKeysAndChannelsAreThoseDocumented(t *testing.T) {
	client := redistest.Start(t).Client()
	ctx := t.Context()
	heard := client.PSubscribe(ctx, "*")
	defer heard.Close()
	_, err := heard.Receive(ctx)
	must(t, err)
	s := open(t, client, nil)
	must(t, everything(ctx, s))
	l := lead(t, s, "a", "n3")

	keys := client.Keys(ctx, "*").Val()
	slices.Sort(keys)
	want := []string{
		"singleton:{g}:fence", "singleton:{g}:inbox", "singleton:{g}:info", "singleton:{g}:lease", "singleton:{g}:r:history/report",
		"singleton:{g}:r:job", "singleton:{g}:sessions",
	}
	if !slices.Equal(keys, want) {
		t.Errorf("keys %v, want %v", keys, want)
	}
	for key, atLeast := range map[string]time.Duration{
		"fence": 30 * 24 * time.Hour, "lease": 59 * time.Second, "sessions": 47 * time.Hour, "info": 47 * time.Hour,
	} {
		if ttl := client.PTTL(ctx, "singleton:{g}:"+key).Val(); ttl < atLeast || ttl > 31*24*time.Hour {
			t.Errorf("%s expires in %v", key, ttl)
		}
	}
	for _, key := range []string{"inbox", "r:job", "r:history/report"} {
		if ttl := client.PTTL(ctx, "singleton:{g}:"+key).Val(); ttl != -1 {
			t.Errorf("%s expires in %v", key, ttl)
		}
	}
	if got, want := client.Get(ctx, "singleton:{g}:lease").Val(), fmt.Sprintf("%d a n3", l.Token); got != want {
		t.Errorf("the lease is %q, want %q", got, want)
	}
	fence := client.HGetAll(ctx, "singleton:{g}:fence").Val()
	if fence["token"] != fmt.Sprint(l.Token) || fence["number"] != "1" || fence["released"] != "n1 " || len(fence["committed"]) != 16 {
		t.Errorf("the fence is %v", fence)
	}
	for _, want := range []redis.Message{
		{Channel: "singleton:{g}:post"}, {Channel: "singleton:{g}:post"}, {Channel: "singleton:{g}:wake", Payload: "2"},
	} {
		m, err := heard.ReceiveMessage(ctx)
		must(t, err)
		if m.Channel != want.Channel || m.Payload != want.Payload {
			t.Errorf("%q came over %s, want %q over %s", m.Payload, m.Channel, want.Payload, want.Channel)
		}
	}
}

func TestPrefixesAreSeparate(t *testing.T) {
	client := redistest.Start(t).Client()
	lead(t, open(t, client, nil), "a", "n1")
	lead(t, open(t, client, &redisstore.Options{Prefix: "other"}), "a", "n1")
	if n := client.Exists(t.Context(), "singleton:{g}:lease", "other:{g}:lease").Val(); n != 2 {
		t.Errorf("%d leases", n)
	}
}

func TestSessionsThatAreOverAreClearedAway(t *testing.T) {
	client := redistest.Start(t).Client()
	s, ctx := open(t, client, nil), t.Context()
	for i := range 25 {
		_, err := s.Join(ctx, "g", store.Replica{ID: fmt.Sprintf("r%d", i), Info: []byte("about")}, time.Millisecond, true)
		must(t, err)
	}
	until(t, func() bool {
		_, err := s.Join(ctx, "g", store.Replica{ID: "last"}, time.Minute, true)
		must(t, err)
		return client.ZCard(ctx, "singleton:{g}:sessions").Val() == 1 && client.HLen(ctx, "singleton:{g}:info").Val() == 0
	})
}

// TestALeaseDoesNotOutliveItsSession has the server look at the lease when a renewal begins, and at its clock a moment later,
// when both are over: the lease is lost, and not only the session.
func TestALeaseDoesNotOutliveItsSession(t *testing.T) {
	client := redistest.Start(t).Client()
	s, ctx := open(t, client, nil), t.Context()
	l := lead(t, s, "a", "n1")
	must(t, client.ZAdd(ctx, "singleton:{g}:sessions", redis.Z{Score: float64(time.Now().Add(-time.Second).UnixMilli()), Member: "a"}).Err())
	if _, err := s.Renew(ctx, l); !errors.Is(err, store.ErrLost) {
		t.Errorf("got %v", err)
	}
}

// documented returns the commands that the package's documentation lists.
func documented(t *testing.T) []string {
	t.Helper()
	b, err := os.ReadFile("doc.go")
	must(t, err)
	_, rest, found := strings.Cut(strings.ReplaceAll(string(b), "\n// ", " "), "the commands ")
	list, _, ended := strings.Cut(rest, "; ")
	if !found || !ended {
		t.Fatal("doc.go lists no commands")
	}
	list = strings.ReplaceAll(list, " and ", " ")
	return strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' })
}

func TestB19TokensGrowWhenTheServersClockJumps(t *testing.T) {
	clock := clockjump.Start(t)
	s, ctx := open(t, redistest.Start(t, redistest.Clock(clock)).Client(), nil), t.Context()
	last := uint64(0)
	for i, offset := range []time.Duration{0, time.Hour, -time.Hour, 0, -2 * time.Hour} {
		clock.Jump(offset - clock.Offset())
		l := lead(t, s, "a", fmt.Sprintf("n%d", i))
		if l.Token <= last {
			t.Errorf("clock %v: token %d after %d", offset, l.Token, last)
		}
		if off := time.Until(l.Time) - offset; off.Abs() > time.Minute {
			t.Errorf("clock %v: the store's time is %v off", offset, off)
		}
		last = l.Token
		must(t, s.Commit(ctx, l, 1, nil))
		must(t, s.Release(ctx, l))
	}
}

// TestB19AStepOfTheClockEndsALeaseAndItsHolderIsRefused is one forward beyond the lease's end, which is then given to
// another at once, and one back, after which it goes on.
func TestB19AStepOfTheClockEndsALeaseAndItsHolderIsRefused(t *testing.T) {
	clock := clockjump.Start(t)
	s, ctx := open(t, redistest.Start(t, redistest.Clock(clock)).Client(), nil), t.Context()
	l := lead(t, s, "a", "n1")
	must(t, s.Commit(ctx, l, 1, nil))
	clock.Jump(l.TTL - time.Second)
	_, err := s.Renew(ctx, l)
	must(t, err) // there was a second left
	clock.Jump(l.TTL + time.Second)
	next := lead(t, s, "b", "n2")
	if next.Token <= l.Token {
		t.Errorf("token %d after %d", next.Token, l.Token)
	}
	must(t, s.Commit(ctx, next, 1, nil))
	if err := s.Commit(ctx, l, 2, nil); !errors.Is(err, store.ErrLost) {
		t.Errorf("a commit of the one before: %v", err)
	}
	if _, err := s.Renew(ctx, l); !errors.Is(err, store.ErrLost) {
		t.Errorf("a renewal of the one before: %v", err)
	}
	clock.Reset()
	_, err = s.Renew(ctx, next)
	must(t, err)
	must(t, s.Commit(ctx, next, 2, nil))
	leader, err := s.Leader(ctx, "g")
	if err != nil || leader.Token != next.Token || leader.Remaining > next.TTL {
		t.Errorf("after the renewal: %+v, %v", leader, err)
	}
}

func TestB19AFarExpiryIsSeen(t *testing.T) {
	client := redistest.Start(t).Client()
	s := open(t, client, nil)
	lead(t, s, "a", "n1")
	do(t, client, "PEXPIRE", "singleton:{g}:lease", time.Hour.Milliseconds()) // as a jump back leaves it
	leader, err := s.Leader(t.Context(), "g")
	must(t, err)
	if leader.Remaining < 59*time.Minute {
		t.Errorf("%v remain", leader.Remaining)
	}
}

func TestSEC7NoSecretReachesLogOrError(t *testing.T) {
	server := redistest.Start(t, redistest.Args("--requirepass", "canary-password"))
	proxy := redistest.StartProxy(t, server.Addr())
	log := &testlog.Log{}
	client := redis.NewClient(&redis.Options{Addr: proxy.Addr(), Password: "canary-password"})
	defer client.Close()
	s := open(t, client, &redisstore.Options{Logger: log.Logger(slog.LevelDebug)})
	redisstore.Silence(s, 20*time.Millisecond)
	<-watched(t, s, "g")
	l := lead(t, s, "a", "canary-nonce")
	var texts []string
	try := func() {
		short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		_, err := s.Renew(short, l)
		texts = append(texts, fmt.Sprint(err))
		_, err = s.Acquire(short, "g", candidate("a", "canary-nonce"))
		texts = append(texts, fmt.Sprint(err))
		texts = append(texts, fmt.Sprint(s.Commit(short, l, 7, nil)), fmt.Sprint(s.Release(short, l)))
	}
	admin := server.Client(func(o *redis.Options) { o.Password = "canary-password" })
	proxy.Replies.Drop()
	try()
	proxy.Cut()
	proxy.Replies.Pass()
	proxy.Requests.Reset()
	try()
	proxy.Requests.Pass()
	do(t, admin, "CONFIG", "SET", "requirepass", "other")
	proxy.Cut()
	try()
	do(t, admin, "CONFIG", "SET", "requirepass", "canary-password")
	do(t, admin, "DEL", "singleton:{g}:lease")
	do(t, admin, "RPUSH", "singleton:{g}:lease", "canary-nonce")
	try()
	do(t, admin, "DEL", "singleton:{g}:lease")
	do(t, admin, "SET", "singleton:{g}:lease", "a canary-nonce")
	try()
	do(t, admin, "CONFIG", "SET", "maxmemory", 1)
	try()
	texts = append(texts, log.String(), fmt.Sprint(l), fmt.Sprintf("%+v", l))
	for _, text := range texts {
		if strings.Contains(text, "canary") {
			t.Errorf("a secret is in %s", text)
		}
	}
}
