package redlock_test

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/testlog"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redlock"
)

func to(t *testing.T, addrs ...string) (list []*redis.Client) {
	for _, addr := range addrs {
		c := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = c.Close() })
		list = append(list, c)
	}
	return list
}

func TestAllProblemsOfTheArgumentsAreToldAtOnce(t *testing.T) {
	sentinels := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: "m", SentinelAddrs: []string{"a:1"}})
	defer sentinels.Close()
	_, err := redlock.New(append(to(t, "a:1", "a:1"), nil, sentinels), redlock.Config{Prefix: "a:b"})
	if !errors.Is(err, store.ErrPermanent) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"clients 1 and 2 are both of a:1", "client 3 is nil", "client 4 follows Sentinels", "prefix name"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	if _, err := redlock.New(to(t, "a:1", "b:1"), redlock.Config{}); err == nil || !strings.Contains(err.Error(), "2 servers") {
		t.Errorf("got %v", err)
	}
}

func TestAnEvenNumberOfServersIsWarnedAbout(t *testing.T) {
	for n, want := range map[int]bool{3: false, 4: true, 5: false} {
		var log testlog.Log
		s := open(t, to(t, "a:1", "b:1", "c:1", "d:1", "e:1")[:n], redlock.Config{Logger: log.Logger(slog.LevelInfo)})
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if warned := strings.Contains(log.String(), "even number"); warned != want {
			t.Errorf("%d servers: %q", n, log.String())
		}
	}
}
