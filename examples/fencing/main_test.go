//go:build unix

package main

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "replica" { // started by show
		main()
		return
	}
	os.Exit(m.Run())
}

// told is the tale as it must go, whatever the times and tokens.
var told = regexp.MustCompile(`(?s)` +
	`a  leads with token \d+\n.*a is FROZEN.*` +
	`b  leads with token (\d+)\n.*b  writes to Redis: taken\n.*b  writes to the service: taken\n.*b  writes to the plain key: taken\n.*` +
	`a is thawed.*a  writes to Redis: REFUSED: a newer leader has written, with token (\d+)\n` +
	`.*a  writes to the service: REFUSED: 412 .*a  writes to the plain key: taken\n.*a  asks Valid\(\) again: false\n` +
	`.*the token: b .*the token: b .*the plain key: a\n`)

func TestWhatChecksTheTokenRefusesALeaderThatWasFrozen(t *testing.T) {
	server := redistest.Start(t)
	for name, url := range map[string]string{"embedded": "", "a real Redis": server.URL()} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			if err := show(t.Context(), &out, url, 500*time.Millisecond); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			} else if m := told.FindStringSubmatch(out.String()); m == nil || m[1] != m[2] {
				t.Errorf("another tale:\n%s", out.String())
			}
		})
	}
	if keys, err := server.Client().Keys(t.Context(), "*").Result(); len(keys) != 0 || err != nil {
		t.Errorf("%v are left, %v", keys, err)
	}
}

func TestGuardsTakeATokenAgainAndLaterOnesAndNoEarlierOnes(t *testing.T) {
	bill := bill{redistest.Start(t).Client(), "g"}
	server := httptest.NewServer(&service{})
	defer server.Close()
	const highest = 1<<53 - 1
	for _, c := range []struct {
		token uint64
		taken bool
	}{{highest - 2, true}, {highest - 1, true}, {highest - 1, true}, {highest - 2, false}, {highest, true}, {highest - 1, false}, {1, false}} {
		for what, err := range map[string]error{
			"Redis":       bill.pay(t.Context(), c.token, "a"),
			"the service": post(t.Context(), server.URL, c.token, "a"),
		} {
			if taken := err == nil; taken != c.taken || !taken && !errors.Is(err, errFenced) {
				t.Errorf("%s, token %d: %v", what, c.token, err)
			}
		}
	}
	for _, token := range []string{"", "-1", "x"} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set(tokenHeader, token)
		(&service{}).ServeHTTP(w, r)
		if w.Code != http.StatusPreconditionRequired {
			t.Errorf("token %q: status %d", token, w.Code)
		}
	}
}
