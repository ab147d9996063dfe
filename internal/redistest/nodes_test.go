//go:build linux

package redistest_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
)

// TestFaultsOfANodeAreItsOwn does to the first of three nodes whatever can be done to one, and looks at all of them.
func TestFaultsOfANodeAreItsOwn(t *testing.T) {
	t.Parallel()
	nodes := redistest.StartNodes(t, 3, redistest.AppendOnly())
	// A client of its own for each look: none meets a connection that a fault has ended.
	client := func(i int) *redis.Client {
		return redis.NewClient(&redis.Options{Addr: nodes.Addrs()[i], ContextTimeoutEnabled: true, MaxRetries: -1, DialerRetries: 1})
	}
	look := func(i int, patience time.Duration) string {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		c := client(i)
		defer c.Close()
		value, err := c.Get(ctx, "last").Result()
		switch {
		case errors.Is(err, redis.Nil):
			return "nothing"
		case err != nil:
			return "no answer"
		}
		return value
	}
	put := func(i int) {
		t.Helper()
		c := client(i)
		defer c.Close()
		for value := range strings.FieldsSeq("a b") {
			if err := c.Set(t.Context(), "last", value, time.Minute).Err(); err != nil {
				t.Fatal(err)
			}
		}
	}
	first := nodes.All[0]
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		fault func()
		want  string
	}{
		{"none", func() {}, "b"},
		{"hung", first.Stop, "no answer"},
		{"running again", first.Cont, "b"},
		{"cut off", first.Cut, "no answer"},
		{"connected again", first.Heal, "b"},
		{"killed", first.Kill, "no answer"},
		{"restarted", func() { must(first.Restart()) }, "b"},
		{"restarted without the last byte", func() { must(first.RestartTruncated(1)) }, "a"},
		{"an hour ahead", func() { first.Clock.Jump(time.Hour) }, "nothing"},
		{"restarted empty", func() { first.Clock.Reset(); must(first.RestartEmpty()) }, "nothing"},
	} {
		if c.name == "none" || c.name == "an hour ahead" {
			for i := range nodes.All {
				put(i)
			}
		}
		c.fault()
		patience := 10 * time.Second
		if c.want == "no answer" {
			patience = 200 * time.Millisecond
		}
		if got := look(0, patience); got != c.want {
			t.Errorf("%s: the node says %q, want %q", c.name, got, c.want)
		}
		for i := 1; i < 3; i++ {
			if got := look(i, 10*time.Second); got != "b" {
				t.Errorf("%s: node %d says %q", c.name, i+1, got)
			}
		}
	}
}
