//go:build unix

package redistest_test

import (
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
)

func TestSentinelsReplaceAPrimaryThatIsGone(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := redistest.StartSentinels(t)
	t.Logf("formed within %v", time.Since(began))
	client := redis.NewFailoverClient(s.Options())
	defer client.Close()
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	old := s.Primary(t.Context())
	if old != s.Servers[0] {
		t.Fatalf("%v is the primary", old)
	}
	old.Kill()
	for p := old; p == old || p == nil; p = s.Primary(t.Context()) {
		<-time.After(10 * time.Millisecond)
	}
}

func TestAClusterReplacesAPrimaryThatIsGone(t *testing.T) {
	t.Parallel()
	began := time.Now()
	c := redistest.StartCluster(t)
	t.Logf("formed within %v", time.Since(began))
	client := redis.NewClusterClient(c.Options())
	defer client.Close()
	for key := range strings.FieldsSeq("a b c d e f g") {
		if err := client.Set(t.Context(), key, "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
	}
	old, err := c.Owner(t.Context(), c.Nodes[0], "a")
	if err != nil {
		t.Fatal(err)
	}
	next := c.Replica(old)
	old.Kill()
	for p := old; p != next; p, err = c.Owner(t.Context(), next, "a") {
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func TestTLSIsMutual(t *testing.T) {
	t.Parallel()
	authority, err := redistest.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := redistest.NewAuthority(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	server := redistest.Start(t, redistest.TLS(authority))
	for _, c := range []struct {
		name   string
		config *tls.Config
		works  bool
	}{
		{"with a certificate", authority.Client(), true},
		{"without one", &tls.Config{RootCAs: authority.Client().RootCAs}, false},
		{"with one of another authority", &tls.Config{RootCAs: authority.Client().RootCAs, Certificates: stranger.Client().Certificates}, false},
		{"trusting another authority", stranger.Client(), false},
		{"without TLS", nil, false},
	} {
		client := server.Client(func(o *redis.Options) { o.TLSConfig, o.MaxRetries, o.DialerRetries = c.config, -1, 1 })
		if err := client.Ping(t.Context()).Err(); (err == nil) != c.works {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
