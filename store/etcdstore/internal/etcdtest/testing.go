//go:build unix

package etcdtest

import (
	"testing"

	"github.com/go-singleton/singleton/internal/process"
)

// Start starts a server that ends with the test. Where it cannot be built the test fails and says how to do that.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	return process.Started(t, func() (*Server, error) { return New(args...) })
}

// StartCluster starts three servers that end with the test.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	return process.Started(t, func() (*Cluster, error) { return NewCluster(3, args...) })
}
