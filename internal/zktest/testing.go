//go:build unix

package zktest

import (
	"testing"

	"github.com/go-singleton/singleton/internal/process"
)

// Start starts a server that ends with the test. Without ZooKeeper the test fails and says how to install it.
func Start(t testing.TB) *Server {
	t.Helper()
	return process.Started(t, New)
}

// StartEnsemble starts three servers that end with the test.
func StartEnsemble(t testing.TB) *Ensemble {
	t.Helper()
	return process.Started(t, func() (*Ensemble, error) { return NewEnsemble(3) })
}
