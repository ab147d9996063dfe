//go:build unix

package zktest

import (
	"io"
	"testing"
)

// Start starts a server that ends with the test. Without ZooKeeper the test fails and says how to install it.
func Start(t testing.TB) *Server {
	t.Helper()
	return started(t, New)
}

// StartEnsemble starts three servers that end with the test.
func StartEnsemble(t testing.TB) *Ensemble {
	t.Helper()
	return started(t, func() (*Ensemble, error) { return NewEnsemble(3) })
}

func started[T io.Closer](t testing.TB, start func() (T, error)) T {
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
