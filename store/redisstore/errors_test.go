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
