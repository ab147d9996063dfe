//go:build unix

package redistest

import (
	"io"
	"testing"

	"github.com/go-singleton/singleton/internal/clockjump"
	"github.com/go-singleton/singleton/internal/netproxy"
	"github.com/go-singleton/singleton/internal/process"
)

// Option changes the Config of Start.
type Option func(*Config)

// AppendOnly makes the server keep an append-only file.
func AppendOnly() Option { return func(c *Config) { c.AppendOnly = true } }

// Args adds arguments of redis-server.
func Args(args ...string) Option { return func(c *Config) { c.Args = append(c.Args, args...) } }

// TLS makes the server speak TLS only.
func TLS(a *Authority) Option { return func(c *Config) { c.TLS = a } }

// Clock gives the server a wall clock of its own.
func Clock(c *clockjump.Clock) Option { return func(cfg *Config) { cfg.Clock = c } }

// SentinelPassword makes the Sentinels ask for a password.
func SentinelPassword(word string) Option { return func(c *Config) { c.SentinelPassword = word } }

// Start starts a server that ends with the test. Without redis-server the test fails and says how to install it.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return started(t, New, opts)
}

// StartSentinels starts a primary, its replicas and Sentinels, which end with the test.
func StartSentinels(t testing.TB, opts ...Option) *Sentinels {
	t.Helper()
	return started(t, NewSentinels, opts)
}

// StartCluster starts a cluster that ends with the test.
func StartCluster(t testing.TB, opts ...Option) *Cluster {
	t.Helper()
	return started(t, NewCluster, opts)
}

// StartNodes starts n independent servers that end with the test.
func StartNodes(t testing.TB, n int, opts ...Option) *Nodes {
	t.Helper()
	return started(t, func(cfg Config) (*Nodes, error) { return NewNodes(n, cfg) }, opts)
}

func started[T io.Closer](t testing.TB, start func(Config) (T, error), opts []Option) T {
	t.Helper()
	var cfg Config
	for _, o := range opts {
		o(&cfg)
	}
	return process.Started(t, func() (T, error) { return start(cfg) })
}

// Proxy is a network between clients and a server that can be broken.
type Proxy = netproxy.Proxy

// StartProxy starts a proxy to target that ends with the test.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	return netproxy.Start(t, target)
}
