package etcdstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store/etcdstore"
)

func TestParseURL(t *testing.T) {
	authority, err := redistest.NewAuthority(t.TempDir())
	must(t, err)
	certificate, key, err := authority.Issue("client")
	must(t, err)
	secret, empty := filepath.Join(t.TempDir(), "secret"), filepath.Join(t.TempDir(), "empty")
	must(t, os.WriteFile(secret, []byte("from a file\n"), 0o600))
	must(t, os.WriteFile(empty, nil, 0o600))

	for raw, want := range map[string]struct{ endpoints, prefix, user, password, name string }{
		"etcd://h":                           {"h", "", "", "", "etcd://h"},
		"etcd://h1,h2:1,[::1]:2/a/b":         {"h1 h2:1 [::1]:2", "/a/b", "", "", "etcd://h1,h2:1,[::1]:2/a/b"},
		"etcd://u:p%2Fw@h/":                  {"h", "/", "u", "p/w", "etcd://u:xxxxx@h/"},
		"etcd://u@h?password_file=" + secret: {"h", "", "u", "from a file", "etcd://u@h"},
		"etcds://h?ca=" + certificate + "&cert=" + certificate + "&key=" + key: {"h", "", "", "", "etcds://h"},
	} {
		c, name, err := etcdstore.ParseURL(raw)
		if err != nil || strings.Join(c.Endpoints, " ") != want.endpoints || c.Prefix != want.prefix || c.User != want.user ||
			c.Password != want.password || name != want.name || (c.TLS != nil) != strings.HasPrefix(raw, "etcds") {
			t.Errorf("%s: got %+v, %s, %v", raw, c, name, err)
		}
	}
	for raw, want := range map[string]string{
		"http://h":               "does not begin",
		"etcd://":                "not valid",
		"etcd://a b":             "not valid",
		"etcd://h/a//b":          "not valid",
		"etcd://u:s3cret/@h":     "percent-encode",
		"etcd://s3cret@h":        "has no user, a colon and a password",
		"etcd://h?s3cret=1":      "not known",
		"etcd://h?ca=":           "empty",
		"etcd://h?ca=x":          "write etcds",
		"etcds://h?cert=x":       "one of cert and key",
		"etcds://h?ca=/none":     "ca: open /none",
		"etcds://h?ca=" + secret: "holds no certificate",
		"etcds://h?cert=" + secret + "&key=" + key: "cert and key",
		"etcd://h?password_file=" + secret:         "without a user",
		"etcd://u:p@h?password_file=" + secret:     "beside a password",
		"etcd://u@h?password_file=" + empty:        "is empty",
		"etcd://u@h?password_file=/none":           "password_file: open /none",
	} {
		_, _, err := etcdstore.ParseURL(raw)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got %v, want %s", raw, err, want)
		}
	}
}
