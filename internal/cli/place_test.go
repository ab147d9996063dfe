package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

func TestStoreIsChosenInOrder(t *testing.T) {
	for _, c := range []struct {
		flag place
		env  map[string]string
		want place
	}{
		{place{}, nil, place{"redis://127.0.0.1:6379", "the default"}},
		{place{}, map[string]string{"REDIS_URL": ""}, place{"redis://127.0.0.1:6379", "the default"}},
		{place{}, map[string]string{"REDIS_URL": "redis://a"}, place{"redis://a", "REDIS_URL"}},
		{place{"redis://b", "--store"}, map[string]string{"REDIS_URL": "redis://a"}, place{"redis://b", "--store"}},
	} {
		a := &app{lookup: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok }}
		if got := a.choose(c.flag); got != c.want {
			t.Errorf("flag %v, environment %v: got %v, want %v", c.flag, c.env, got, c.want)
		}
	}
	// SINGLETON_STORE stands for the flag.
	r := call(t, map[string]string{"REDIS_URL": "ftp://a", "SINGLETON_STORE": "http://b"}, "status", "--group", "g")
	if r.code != exitUsage || !strings.Contains(r.stderr, `SINGLETON_STORE: stores of the kind "http://" are not`) {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
	r = call(t, map[string]string{"REDIS_URL": "ftp://a"}, "status", "--group", "g")
	if r.code != exitUsage || !strings.HasPrefix(r.stderr, "singleton: status: REDIS_URL: ") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
}

// TestErrorsOfStoresForPeople compares whole texts: which store, who named it, what it said, what to look at.
func TestErrorsOfStoresForPeople(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	password := errors.New("NOAUTH Authentication required.")
	for _, c := range []struct {
		url, from string
		err       error
		want      string
	}{
		{"redis://h", "REDIS_URL", fmt.Errorf("scheduler: leader of g: redisstore: leader: %w", refused),
			"the store redis://h:6379 (REDIS_URL) cannot be asked: dial tcp: connection refused; is it running, and the URL right?"},
		{"rediss://:" + canary + "@h", "--store", fmt.Errorf("scheduler: create ledger of g: redisstore: acquire: %w", io.EOF),
			"the store rediss://:xxxxx@h:6379 (--store) cannot be asked: EOF; is it running, does it speak TLS, and the URL right?"},
		{"redis://h", "--store", fmt.Errorf("redisstore: leader: %w", io.EOF), "the store redis://h:6379 (--store) cannot be asked: EOF; " +
			"is it running, does it want TLS (rediss in place of redis), and the URL right?"},
		{"rediss://h", "--store", fmt.Errorf("scheduler: jobs of g: redisstore: read: %w", context.DeadlineExceeded),
			"the store rediss://h:6379 (--store) does not answer in time; is it overloaded, does it speak TLS, or the network cut?"},
		{"redis://h", "the default", fmt.Errorf("redisstore: leader: %w", &net.DNSError{Err: "i/o timeout", IsTimeout: true}),
			"the store redis://h:6379 (the default) does not answer in time; is it overloaded, or the network cut?"},
		{"redis://h", "SINGLETON_STORE", store.Permanent("set a password", fmt.Errorf("election: group g: redisstore: acquire: %w", password)),
			"the store redis://h:6379 (SINGLETON_STORE) cannot be used: NOAUTH Authentication required: set a password"},
		{"redis://h", "--store", errors.New("history of a, 00002: scheduler: record has no version"),
			"the store redis://h:6379 (--store): history of a, 00002: scheduler: record has no version"},
		{"redis://h", "--store", errors.New("redisstore: singleton:{g}:x holds an entry that is not ours"),
			"the store redis://h:6379 (--store): singleton:{g}:x holds an entry that is not ours"},
	} {
		a, err := parseStore(c.url)
		if err != nil {
			t.Fatal(err)
		}
		got := (&opened{name: a.name, from: c.from}).explain(c.err)
		if got.Error() != c.want || !errors.Is(got, c.err) {
			t.Errorf("got  %v\nwant %s", got, c.want)
		}
	}
	unknown := (&opened{}).explain(fmt.Errorf("%w: %q in group %q", scheduler.ErrUnknownJob, "a", "g"))
	if !errors.Is(unknown, scheduler.ErrUnknownJob) {
		t.Error(unknown)
	}
}

func TestOneHostInTheURLOfAStore(t *testing.T) {
	r := call(t, nil, "status", "--group", "g", "--store", "redis://a:1,b:2")
	if r.code != exitUsage || !strings.Contains(r.stderr, "--store: the store's URL names several hosts, and one is allowed; ") {
		t.Errorf("exit code %d, %s", r.code, r.stderr)
	}
}

// TestDemoSaysWhatStatusSays asks for a store that does not run.
func TestDemoSaysWhatStatusSays(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][]string{{"demo"}, {"status", "--group", "g"}, {"history", "--group", "g"}} {
		want := "singleton: " + c[0] + ": the store redis://" + addr + " (SINGLETON_STORE) cannot be asked: dial tcp " + addr +
			": connect: connection refused; is it running, and the URL right?\n"
		call(t, map[string]string{"SINGLETON_STORE": "redis://" + addr}, c...).want(t, exitFailed, "", want)
	}
}
