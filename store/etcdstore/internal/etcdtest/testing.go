//go:build unix

package etcdtest

import (
	"io"
	"testing"
)

// Start starts a server that ends with the test. Where it cannot be built the test fails and says how to do that.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return started(t, func() (*Server, error) { return New(args...) })
}

// StartCluster starts three servers that end with the test.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	return started(t, func() (*Cluster, error) { return NewCluster(3, args...) })
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
