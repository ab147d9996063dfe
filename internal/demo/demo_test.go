package demo

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/program"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/redis/go-redis/v9"
)

var binary string

func TestMain(m *testing.M) { os.Exit(program.Run(m, &binary)) }

func TestDemoLosesNothingAndDoublesNothing(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	// Long enough for all three faults.
	err := Run(t.Context(), Config{Out: &out, Binary: binary, For: 18 * time.Second, Lease: time.Second})
	if err != nil {
		t.Errorf("%v", err)
	}
	for _, want := range []string{`KILLED`, `FROZEN`, `asked to leave`, `\d+ ticks: \d+ ran once, 0 doubled, 0 lost`} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the output has no %q", want)
		}
	}
	if t.Failed() {
		t.Log(out.String())
	}
}

func TestDemoOnAGivenRedisLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	opts, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var out bytes.Buffer
	time.AfterFunc(3*time.Second, cancel) // Ctrl-C
	if err := Run(ctx, Config{Out: &out, Binary: binary, Store: server.URL(), Client: opts, For: time.Minute, Lease: time.Second}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	if n, err := server.Client().DBSize(t.Context()).Result(); n != 0 || err != nil {
		t.Errorf("%d keys are left, %v", n, err)
	}
}

func TestDemoSaysThatAStoreDoesNotAnswer(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	opts, err := redis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	server.Kill()
	err = Run(t.Context(), Config{Out: new(bytes.Buffer), Binary: binary, Store: server.URL(), Client: opts, For: time.Minute,
		Lease: time.Second})
	if err == nil || errors.Is(err, ErrTicks) {
		t.Errorf("got %v", err)
	}
}

// A replica may have been started again before the news comes that its process has ended.
func TestEndThatWasMeantIsNoFaultAfterARestart(t *testing.T) {
	events := make(chan event, 2)
	r := &replica{name: "r-1", command: []string{"sleep", "1000"}, events: events}
	for _, again := range []bool{false, true} {
		if err := r.start(); err != nil {
			t.Fatal(err)
		}
		if !again {
			r.kill()
		}
	}
	defer r.kill()
	if err := new(show).note(<-events); err != nil {
		t.Error(err)
	}
}

// The ledger has a job a little later than its leader is elected: a tick that is due between the two is nobody's.
func TestTicksAreExpectedSinceTheLedgerHasTheJob(t *testing.T) {
	s := &show{timeline: &timeline{out: new(bytes.Buffer)}, lines: lines{file: filepath.Join(t.TempDir(), "lines")}}
	r := &replica{name: "r-1"}
	for _, c := range []struct {
		e     event
		lines string
		first int64
	}{
		{event{replica: r, at: time.Unix(9, 999_000_000), token: 7}, "", 0},
		{event{replica: r, at: time.Unix(11, 5_000_000), schedules: true}, "", 12},
		{event{replica: r, at: time.Unix(20, 0), token: 8}, "11 r-1-aa\n12 r-1-aa\n", 11},
		{event{replica: r, at: time.Unix(20, 5_000_000), schedules: true}, "11 r-1-aa\n12 r-1-aa\n20 r-1-aa\n", 11},
	} {
		if err := os.WriteFile(s.lines.file, []byte(c.lines), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.note(c.e), s.look(c.e.at)); err != nil {
			t.Fatal(err)
		}
		if s.first != c.first || s.timeline.first != c.first {
			t.Errorf("after %+v: ticks are expected from %d, and numbered from %d; want %d", c.e, s.first, s.timeline.first, c.first)
		}
	}
}
