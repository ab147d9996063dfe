package cli

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestHealthIsLoggedOncePerSpell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var problem atomic.Pointer[error]
		check := func() error {
			if p := problem.Load(); p != nil {
				return *p
			}
			return nil
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			watchHealth(ctx, check, time.Second, slog.New(slog.NewTextHandler(&out, nil)))
		}()
		for _, spell := range []struct {
			problem error
			length  time.Duration
		}{
			{nil, 3 * time.Second},
			{errors.New("stuck"), 3 * time.Second},
			{nil, 300 * time.Millisecond}, // found out at once
			{errors.New("a moment"), 900 * time.Millisecond},
			{nil, 300 * time.Millisecond},
			{errors.New("another"), 900 * time.Millisecond}, // moments do not add up
			{nil, 3 * time.Second},
			{errors.New("stuck again"), 3 * time.Second},
		} {
			synctest.Wait()
			problem.Store(&spell.problem)
			time.Sleep(spell.length)
		}
		cancel()
		<-done
		var messages []string
		for line := range strings.Lines(out.String()) {
			_, message, _ := strings.Cut(strings.TrimSpace(line), "level=")
			messages = append(messages, message)
		}
		want := "ERROR msg=unhealthy error=stuck\nINFO msg=\"healthy again\"\nERROR msg=unhealthy error=\"stuck again\""
		if got := strings.Join(messages, "\n"); got != want {
			t.Errorf("got:\n%s\nwant:\n%s", got, want)
		}
	})
}
