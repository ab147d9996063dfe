//go:build linux

package clockjump_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/clockjump"
	"github.com/go-singleton/singleton/internal/redistest"
)

// TestAnHourForwardEndsWhatLastsTenSeconds has a server expire a key by its wall clock, and keep one by the same.
func TestAnHourForwardEndsWhatLastsTenSeconds(t *testing.T) {
	clock := clockjump.Start(t)
	server, ctx := redistest.Start(t, redistest.Clock(clock)), t.Context()
	client := server.Client()
	told := func() time.Time {
		t.Helper()
		now, err := client.Time(ctx).Result()
		if err != nil {
			t.Fatal(err)
		}
		return now
	}
	put := func() {
		t.Helper()
		if err := client.Set(ctx, "k", "v", 10*time.Second).Err(); err != nil {
			t.Fatal(err)
		}
	}
	put()
	if left := client.PTTL(ctx, "k").Val(); left <= 0 {
		t.Fatalf("the key is not there before the jump: %v", left)
	}
	before := told()
	clock.Jump(time.Hour)
	if value, err := client.Get(ctx, "k").Result(); !errors.Is(err, redis.Nil) {
		t.Errorf("an hour later: %q, %v", value, err)
	}
	if after := told(); after.Sub(before) < time.Hour {
		t.Errorf("%v, after the jump %v", before, after)
	}
	put()
	clock.Reset()
	if left := client.PTTL(ctx, "k").Val(); left <= 59*time.Minute {
		t.Errorf("a key that an hour back made live longer has %v left", left)
	}
	if after := told(); after.Sub(before) >= time.Hour {
		t.Errorf("%v, after the jump back %v", before, after)
	}
	clock.Jump(-time.Hour)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if after := told(); clock.Offset() != -time.Hour || !after.Before(before) {
		t.Errorf("a server that was restarted says %v, %v before its clock went back by an hour", after, before)
	}
}

// TestClocksOfOneDirectoryAreIndependent compiles once, for two servers.
func TestClocksOfOneDirectoryAreIndependent(t *testing.T) {
	dir := t.TempDir()
	var clocks []*clockjump.Clock
	var offsets []time.Duration
	for range 2 {
		c, err := clockjump.New(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clocks = append(clocks, c)
	}
	clocks[1].Jump(time.Minute)
	for _, c := range clocks {
		now, err := redistest.Start(t, redistest.Clock(c)).Client().Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		offsets = append(offsets, time.Until(now))
	}
	if offsets[1]-offsets[0] < 50*time.Second {
		t.Errorf("the clocks of two servers are ahead by %v", offsets)
	}
}

func TestMissingCompilerSaysHowToInstallIt(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := clockjump.New(t.TempDir())
	if err == nil || !strings.Contains(err.Error(), "apt-get install -y --no-install-recommends gcc libc6-dev") {
		t.Errorf("got %v", err)
	}
}
