package zkstore

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

func TestWhatZnodesHoldIsReadAgain(t *testing.T) {
	f := fence{token: store.MaxToken}
	for i := range 2 * remembered {
		f = f.release(fmt.Sprint("n", i))
	}
	if back, err := decodeFence(f.encode()); err != nil || back.token != f.token || !slices.Equal(back.released, f.released) ||
		len(back.released) != remembered || back.released[0] != fmt.Sprint("n", 2*remembered-1) {
		t.Errorf("%v, %v", back, err)
	}
	g := grant{token: 1, replica: "a", nonce: strings.Repeat("~", 64), ttl: store.MaxDuration}
	if back, err := decodeGrant(g.encode()); err != nil || back != g {
		t.Errorf("%v, %v", back, err)
	}
	p := position{token: 7, number: store.MaxToken}
	if back, err := decodePosition(p.encode()); err != nil || back != p {
		t.Errorf("%v, %v", back, err)
	}
}

func TestWhatNoStoreHasWrittenIsRefused(t *testing.T) {
	for _, data := range []string{"", "2 1 1", "1", "1 x", "1 -1 1", "1 9007199254740992 1", "{}", "\x00"} {
		if _, err := decodeFence([]byte(data)); err == nil {
			t.Errorf("%q is a fence", data)
		}
		if _, err := decodePosition([]byte(data)); err == nil {
			t.Errorf("%q is a position", data)
		}
	}
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
