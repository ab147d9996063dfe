package values

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-singleton/singleton/store"
)

func TestWhatKeysHoldIsReadAgain(t *testing.T) {
	f := Fence{Token: store.MaxToken}
	for i := range 2 * Remembered {
		f = f.Release(fmt.Sprint("n", i))
	}
	if back, err := DecodeFence([]byte(f.Encode())); err != nil || back.Token != f.Token || !slices.Equal(back.Released, f.Released) ||
		len(back.Released) != Remembered || back.Released[0] != fmt.Sprint("n", 2*Remembered-1) {
		t.Errorf("%v, %v", back, err)
	}
	p := Position{Token: 7, Number: store.MaxToken}
	if back, err := DecodePosition([]byte(p.Encode())); err != nil || back != p {
		t.Errorf("%v, %v", back, err)
	}
}

func TestWhatNoStoreHasWrittenIsRefused(t *testing.T) {
	for _, data := range []string{"", "2 1 1", "1", "1 x", "1 -1 1", "1 9007199254740992 1", "{}", "\x00"} {
		if _, err := DecodeFence([]byte(data)); err == nil {
			t.Errorf("%q is a fence", data)
		}
		if _, err := DecodePosition([]byte(data)); err == nil {
			t.Errorf("%q is a position", data)
		}
	}
}
