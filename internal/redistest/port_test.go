//go:build unix

package redistest

import (
	"errors"
	"testing"
)

func TestTakenPortIsSeen(t *testing.T) {
	first := Start(t)
	second := &Server{dir: t.TempDir(), port: first.port}
	if err := second.Restart(); !errors.Is(err, errPortTaken) {
		t.Errorf("got %v, want %v", err, errPortTaken)
	}
}
