//go:build unix

package redistest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
)

func TestRestartKeepsWhatTheAppendOnlyFileHolds(t *testing.T) {
	for _, c := range []struct {
		name    string
		opts    []redistest.Option
		restart func(*redistest.Server) error
		want    string
	}{
		{"append-only", []redistest.Option{redistest.AppendOnly()}, (*redistest.Server).Restart, "v"},
		{"append-only, emptied", []redistest.Option{redistest.AppendOnly()}, (*redistest.Server).RestartEmpty, ""},
		{"nothing on disk", nil, (*redistest.Server).Restart, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, ctx := redistest.Start(t, c.opts...), t.Context()
			client := s.Client()
			if err := client.Set(ctx, "k", "v", 0).Err(); err != nil {
				t.Fatal(err)
			}
			addr := s.Addr()
			if err := c.restart(s); err != nil {
				t.Fatal(err)
			}
			got, err := client.Get(ctx, "k").Result()
			if err != nil && err != redis.Nil || got != c.want || s.Addr() != addr {
				t.Errorf("got %q, %v at %s; want %q at %s", got, err, s.Addr(), c.want, addr)
			}
		})
	}
}

func TestStoppedServerAnswersWhenItGoesOn(t *testing.T) {
	s := redistest.Start(t)
	client := s.Client(func(o *redis.Options) { o.ContextTimeoutEnabled, o.MaxRetries = true, -1 })
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := client.Ping(short).Err(); err == nil {
		t.Error("a stopped server answered")
	}
	s.Cont()
	if err := client.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}

func TestServerThatEndsAtOnceSaysWhy(t *testing.T) {
	_, err := redistest.New(redistest.Config{Args: []string{"--no-such-option", "1"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Errorf("got %v, want what the server said", err)
	}
}

func TestMissingServerSaysHowToInstallIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := redistest.New(redistest.Config{})
	if err == nil || !strings.Contains(err.Error(), "apt-get install -y redis-server") {
		t.Errorf("got %v", err)
	}
}
