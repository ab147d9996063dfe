package redisstore

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/store"
)

func TestErrorsOfServersAreClassified(t *testing.T) {
	for _, c := range []struct {
		text string
		want class
	}{
		// As servers send them.
		{"READONLY You can't write against a read only replica.", transient},
		{"LOADING Redis is loading the dataset in memory", transient},
		{"LOADING Valkey is loading the dataset in memory", transient},
		{"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.", transient},
		{"CLUSTERDOWN The cluster is down", transient},
		{"CLUSTERDOWN Hash slot not served", transient},
		{"TRYAGAIN Multiple keys request during rehashing of slot", transient},
		{"MOVED 3999 127.0.0.1:6381", transient},
		{"ASK 3999 127.0.0.1:6381", transient},
		{"BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.", transient},
		{"UNKILLABLE Sorry the script already executed write commands against the dataset.", transient},
		{"NOREPLICAS Not enough good replicas to write.", transient},
		{"NOSCRIPT No matching script. Please use EVAL.", transient},
		{"ERR max number of clients reached", transient},
		{"OOM command not allowed when used memory > 'maxmemory'.", alarming},
		{"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.", alarming},
		{"MISCONF Errors writing to the AOF file: No space left on device", alarming},
		{"NOAUTH Authentication required.", permanent},
		{"NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used.", permanent},
		{"ERR Protocol error: unauthenticated multibulk length", permanent},
		{"WRONGPASS invalid username-password pair or user is disabled.", permanent},
		{"ERR invalid password", permanent},
		{"ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?", permanent},
		{"ERR Client sent AUTH, but no password is set", permanent},
		{"NOPERM User leader has no permissions to run the 'evalsha' command", permanent},
		{"NOPERM this user has no permissions to access one of the keys used as arguments", permanent},
		{"NOPERM No permissions to access a channel", permanent},
		{"CROSSSLOT Keys in request don't hash to the same slot", permanent},
		{"WRONGTYPE Operation against a key holding the wrong kind of value", permanent},
		{"ERR unknown command 'EVALSHA', with args beginning with: 'abc' '4' ", permanent},
		{"ERR unknown command `EVALSHA`, with args beginning with: `abc`, `4`, ", permanent},
		{"ERR DB index is out of range", permanent},
		{"ERR SELECT is not allowed in cluster mode", permanent},
		// In scripts, Redis 7.
		{"READONLY You can't write against a read only replica. script: 5f1, on @user_script:30.", transient},
		{"OOM command not allowed when used memory > 'maxmemory'. script: 5f1, on @user_script:41.", alarming},
		{"ERR Unknown Redis command called from script script: 5f1, on @user_script:1.", permanent},
		{"NOPERM The user executing the script can't run this command or subcommand script: 5f1, on @user_script:1.", permanent},
		{"ERR The user executing the script can't run this command or subcommand script: 5f1, on @user_script:1.", permanent},
		{"WRONGTYPE singleton:{g}:lease holds a list, not a string", permanent},
		{"NOTOKEN singleton:{g}:fence leaves no token below 2^53", permanent},
		// In scripts, Redis 6.2.
		{"ERR Error running script (call to f_5f1): @user_script:30: @user_script: 30: -READONLY You can't write against a read only replica. ", transient},
		{"ERR Error running script (call to f_5f1): @user_script:41: @user_script: 41: -OOM command not allowed when used memory > 'maxmemory'. ", alarming},
		{"ERR Error running script (call to f_5f1): @user_script:1: -NOREPLICAS Not enough good replicas to write. ", transient},
		{"ERR Error running script (call to f_5f1): @user_script:1: WRONGTYPE Operation against a key holding the wrong kind of value ", permanent},
		{"ERR Error running script (call to f_5f1): @user_script:1: @user_script: 1: The user executing the script can't run this command or subcommand", permanent},
		{"ERR Error running script (call to f_5f1): @user_script:1: @user_script: 1: Unknown Redis command called from Lua script", permanent},
		// From the client.
		{"context deadline exceeded", transient},
		{"read tcp 127.0.0.1:1->127.0.0.1:2: i/o timeout", transient},
		{"dial tcp 127.0.0.1:2: connect: connection refused", transient},
		{"EOF", transient},
		{"redis: connection pool timeout", transient},
		// Words inside words and names are none.
		{"ERR something about BUSYGROUP and singleton:{NOAUTH}:lease", transient},
		{"ERR singleton:{WRONGTYPE}:lease", transient},
	} {
		got, remedy := classify(c.text)
		if got != c.want {
			t.Errorf("%s: class %d, want %d", c.text, got, c.want)
		}
		if (got == transient) != (remedy == "") {
			t.Errorf("%s: remedy %q", c.text, remedy)
		}
	}
}

// silentStore returns a store whose server is never asked.
func silentStore(t *testing.T, opts *Options) *Store {
	client := redis.NewClient(&redis.Options{})
	t.Cleanup(func() { client.Close() })
	return New(client, opts)
}

func TestB17PermanentErrorsNameCauseAndRemedy(t *testing.T) {
	s := silentStore(t, nil)
	err := s.judge(t.Context(), "acquire", errors.New("NOAUTH Authentication required."))
	if !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "NOAUTH") || !strings.Contains(err.Error(), "wants a password") {
		t.Errorf("got %v", err)
	}
	for _, transient := range []error{context.DeadlineExceeded, context.Canceled, io.EOF} {
		if err := s.judge(t.Context(), "acquire", transient); errors.Is(err, store.ErrPermanent) || !errors.Is(err, transient) {
			t.Errorf("got %v", err)
		}
	}
}

func TestAlarmsAreLoggedOnceInASpell(t *testing.T) {
	var log strings.Builder
	s := silentStore(t, &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	oom := errors.New("OOM command not allowed when used memory > 'maxmemory'.")
	for range 3 {
		for range 5 {
			if err := s.judge(t.Context(), "commit", oom); errors.Is(err, store.ErrPermanent) || !errors.Is(err, oom) {
				t.Fatalf("got %v", err)
			}
			_ = s.judge(t.Context(), "renew", nil) // another method goes well meanwhile
		}
		_ = s.judge(t.Context(), "commit", nil)
	}
	if n := strings.Count(log.String(), "level=ERROR"); n != 3 {
		t.Errorf("%d lines for three spells:\n%s", n, log.String())
	}
}

func TestSEC7ArgumentsThatAServerRepeatsAreCutOff(t *testing.T) {
	for _, text := range []string{
		"ERR unknown command 'evalsha', with args beginning with: 'abc' 's3cret' ",
		"ERR unknown command `HELLO`, with args beginning with: `3`, `AUTH`, `default`, `s3cret`, ",
	} {
		if got := wrap("acquire", errors.New(text)).Error(); strings.Contains(got, "s3cret") || !strings.Contains(got, "unknown command") {
			t.Errorf("got %s", got)
		}
	}
}
