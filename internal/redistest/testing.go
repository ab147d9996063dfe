//go:build unix

package redistest

import "testing"

// Option changes the Config of Start.
type Option func(*Config)

// AppendOnly makes the server keep an append-only file.
func AppendOnly() Option { return func(c *Config) { c.AppendOnly = true } }

// Args adds arguments of redis-server.
func Args(args ...string) Option { return func(c *Config) { c.Args = append(c.Args, args...) } }

// Start starts a server that ends with the test. Without redis-server the test fails and says how to install it.
func Start(t testing.TB, opts ...Option) *Server {
	t.Helper()
	var cfg Config
	for _, o := range opts {
		o(&cfg)
	}
	s, err := New(cfg)
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

// StartProxy starts a proxy to target that ends with the test.
func StartProxy(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := NewProxy(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}
