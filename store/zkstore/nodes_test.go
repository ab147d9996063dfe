package zkstore

import (
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

func TestWhatZnodesHoldIsReadAgain(t *testing.T) {
	g := grant{token: 1, replica: "a", nonce: strings.Repeat("~", 64), ttl: store.MaxDuration}
	if back, err := decodeGrant(g.encode()); err != nil || back != g {
		t.Errorf("%v, %v", back, err)
	}
}

func TestWhatNoStoreHasWrittenIsRefused(t *testing.T) {
	for _, data := range []string{"", "1 1 a n", "1 1 a/b n 5", "1 x a n 5", "1 1 a n x", "1 1 a n 86400001", "2 1 a n 5"} {
		if _, err := decodeGrant([]byte(data)); err == nil {
			t.Errorf("%q is a lease", data)
		}
	}
}

func TestALeaseLastsTwoThirdsOfASession(t *testing.T) {
	if got := (session{timeout: 10 * time.Second}).longest(); got != 6666*time.Millisecond {
		t.Errorf("got %v", got)
	}
}
