//go:build unix

package process

import (
	"io"
	"testing"
)

// Started returns what start has started, until the test ends. Where that fails, the test does.
func Started[T io.Closer](t testing.TB, start func() (T, error)) T {
	t.Helper()
	s, err := start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
