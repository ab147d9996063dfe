package cli

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/redis/go-redis/v9"
)

func TestURLsOfStoresAreRead(t *testing.T) {
	for url, name := range map[string]string{
		"redis://h":                       "redis://h:6379",
		"redis://h/3":                     "redis://h:6379/3",
		"rediss://h?ca=/c&cert=/a&key=/b": "rediss://h:6379",
		"redis://h?min_replicas=1&replica_timeout=100ms": "redis://h:6379",
		"redis://h?dial_timeout=2s":                      "redis://h:6379",
		"redis://u:@h?password_file=/p":                  "redis://u:xxxxx@h:6379",
		"unix:///run/redis.sock?db=2":                    "unix:///run/redis.sock",
		"redis+sentinel://a,b:1,[::1]/main":              "redis+sentinel://a:26379,b:1,[::1]:26379/main",
		"redis+sentinel://:" + canary + "@a/main/2":      "redis+sentinel://:xxxxx@a:26379/main/2",
		"rediss+sentinel://a/main?sentinel_user=u":       "rediss+sentinel://a:26379/main",
		"redis+cluster://a:1,b":                          "redis+cluster://a:1,b:6379",
		"rediss+cluster://u:" + canary + "@a,b/?ca=c":    "rediss+cluster://u:xxxxx@a:6379,b:6379/",
	} {
		a, err := parseStore(url)
		if err != nil || a.name != name {
			t.Errorf("%s: %+v, %v; want the name %s", url, a, err, name)
		}
	}
	a, err := parseStore("rediss+sentinel://u:p@a,b/main/2?sentinel_user=s&min_replicas=2&replica_timeout=1s")
	if err != nil {
		t.Fatal(err)
	}
	o := a.sentinels
	if o.MasterName != "main" || len(o.SentinelAddrs) != 2 || o.DB != 2 || o.Username != "u" || o.Password != "p" ||
		o.SentinelUsername != "s" || o.TLSConfig == nil || a.replicas != 2 || a.wait != time.Second {
		t.Errorf("got %+v, %+v", a, o)
	}
}

func TestURLsOfStoresAreRefusedWithPartAndRemedy(t *testing.T) {
	for url, want := range map[string]string{
		"redis+sentinel://a,b":                       "the name of the primary",
		"redis+sentinel://a/main/x":                  "the number of a database",
		"redis+sentinel://a/main/1/2":                "the number of a database",
		"redis+sentinel://a,,b/main":                 "an empty host",
		"redis+sentinel:///main":                     "an empty host",
		"redis+sentinel://a:0/main":                  "between 1 and 65535",
		"redis+sentinel://a:99999/main":              "between 1 and 65535",
		"redis+sentinel://a/main?read_timeout=1":     "an option that is not known",
		"redis+sentinel://a:x,b/main":                "cannot be read",
		"redis+sentinel://a,b:x/main":                "a host or a port",
		"redis+cluster://a,b/1":                      "database 0 only",
		"redis+cluster://a,b?sentinel_user=x":        "an option that is not known",
		"redis+ring://a":                             "not supported",
		"unix+cluster://a":                           "not supported",
		"redis://a/x":                                "the number of a database",
		"redis://a?nothing=1":                        "an option that is not known",
		"redis://a?min_replicas=many":                "from 0 to 100",
		"redis+cluster://a?min_replicas=-1":          "from 0 to 100",
		"redis://a?replica_timeout=1":                "from 1ms to 2s",
		"redis://a?replica_timeout=3s":               "from 1ms to 2s",
		"redis://a?ca=/c":                            "write rediss",
		"rediss://a?cert=/c":                         "one of cert and key",
		"rediss://a?ca=":                             "an empty option",
		"redis://:" + canary + "@a?password_file=/p": "give one of them",
		"redis+cluster://" + canary + "@a,b":         "one word before the @",
		"redis+cluster://u:" + canary + "/x@a,b":     "cannot be read",
		"redis+sentinel://u:" + canary + "?@a/main":  "cannot be read",
	} {
		a, err := parseStore(url)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), wantURL) {
			t.Errorf("%s: %+v, %v; want it to say %q", url, a, err, want)
			continue
		}
		checkSecret(t, url, err.Error())
	}
}

func TestFilesOfAStoreAreLookedAtFirst(t *testing.T) {
	dir := t.TempDir()
	junk := write(t, "junk", "junk")
	for url, want := range map[string]string{
		"rediss://h?ca=" + dir + "/none":                                                 "ca: open",
		"rediss://h?ca=" + junk:                                                          "holds no certificate",
		"rediss://h?cert=" + junk + "&key=" + junk:                                       "cert and key:",
		"redis://h?password_file=" + dir + "/none":                                       "password_file: open",
		"redis://h?password_file=" + write(t, "empty", "\n"):                             "is empty",
		"redis://h?password_file=" + write(t, "two", canary+"\n"+canary+"\n"):            "on one line",
		"redis+sentinel://h/main?sentinel_password_file=" + dir + "/none":                "sentinel_password_file: open",
		"redis+cluster://h?password_file=" + write(t, "long", strings.Repeat("x", 5000)): "more than a password",
	} {
		_, err := opens(url)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want it to say %q", url, err, want)
			continue
		}
		checkSecret(t, url, err.Error())
	}
}

// reach posts a message to a store.
func reach(t *testing.T, st *opened) error {
	t.Helper()
	return st.Post(t.Context(), "g", "1", nil)
}

func openURL(t *testing.T, url string) *opened {
	t.Helper()
	st, err := opens(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	return st
}

// TestSEC1RenewedCertificatesAndPasswordsCountFromTheNextConnection renews all of them while a store is open.
func TestSEC1RenewedCertificatesAndPasswordsCountFromTheNextConnection(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	authority := newAuthority(t, dir)
	server := redistest.Start(t, redistest.TLS(authority), redistest.Args("--requirepass", "first"))
	admin := server.Client(func(o *redis.Options) { o.Password = "first" })
	file := filepath.Join(dir, "password")
	write := func(password string) {
		if err := os.WriteFile(file, []byte(password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	query := "?ca=" + authority.CA + "&cert=" + authority.Certificate + "&key=" + authority.Key + "&password_file=" + file
	st := openURL(t, "rediss://"+server.Addr()+query)
	if err := reach(t, st); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []string{
		"redis://" + server.Addr(),                                                                   // no TLS
		"rediss://" + server.Addr() + "?password_file=" + file,                                       // no trust, no certificate
		"rediss://" + server.Addr() + "?ca=" + authority.CA + "&password_file=" + file,               // no certificate
		"rediss://" + server.Addr() + strings.Replace(query, authority.CA, authority.Certificate, 1), // trusts nobody who signs
	} {
		if err := reach(t, openURL(t, refused)); err == nil {
			t.Errorf("%s is let in", refused)
		}
	}

	// Another authority, certificate and password from now on: files first, then the server.
	renewed := newAuthority(t, t.TempDir())
	for from, to := range map[string]string{renewed.CA: authority.CA, renewed.Certificate: authority.Certificate, renewed.Key: authority.Key} {
		if err := os.Rename(from, to); err != nil {
			t.Fatal(err)
		}
	}
	certificate, key, err := renewed.Issue("server")
	if err != nil {
		t.Fatal(err)
	}
	for _, set := range [][]any{
		{"CONFIG", "SET", "tls-ca-cert-file", authority.CA, "tls-cert-file", certificate, "tls-key-file", key},
		{"CONFIG", "SET", "requirepass", "second"},
		{"CLIENT", "KILL", "TYPE", "normal"},
	} {
		if err := admin.Do(t.Context(), set...).Err(); err != nil {
			t.Fatalf("%v: %v", set, err)
		}
	}
	write("second")
	until(t, "what was renewed counts", func() bool { return reach(t, st) == nil })
}

func newAuthority(t *testing.T, dir string) *redistest.Authority {
	t.Helper()
	a, err := redistest.NewAuthority(dir)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestSEC15SentinelsAndClustersAreReachedByTLS names them by URL; the Sentinels want a password of their own.
func TestSEC15SentinelsAndClustersAreReachedByTLS(t *testing.T) {
	t.Parallel()
	authority := newAuthority(t, t.TempDir())
	query := "?ca=" + authority.CA + "&cert=" + authority.Certificate + "&key=" + authority.Key
	t.Run("Sentinels", func(t *testing.T) {
		t.Parallel()
		s := redistest.StartSentinels(t, redistest.TLS(authority), redistest.SentinelPassword(canary))
		password := write(t, "password", canary+"\n")
		url := "rediss+sentinel://" + strings.Join(s.Addrs(), ",") + "/"
		query := query + "&sentinel_password_file=" + password
		if err := reach(t, openURL(t, url+redistest.PrimaryName+query)); err != nil {
			t.Error(err)
		}
		for _, c := range []struct {
			name, url, want string
			permanent       bool
		}{
			{"without trust and certificate", url + redistest.PrimaryName, "no Sentinel", false},
			{"another primary", url + "other" + query, `no primary called "other"`, true},
			{"without the Sentinels' password", url + redistest.PrimaryName + strings.Split(query, "&sentinel")[0], "a Sentinel", true},
		} {
			err := reach(t, openURL(t, c.url))
			if err == nil || errors.Is(err, store.ErrPermanent) != c.permanent || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			checkSecret(t, c.name, err.Error())
		}
	})
	t.Run("cluster", func(t *testing.T) {
		t.Parallel()
		c := redistest.StartCluster(t, redistest.TLS(authority))
		url := "rediss+cluster://" + strings.Join(c.Addrs()[:2], ",")
		st := openURL(t, url+query)
		for group := range strings.FieldsSeq("a b c d e f") {
			if err := st.Post(t.Context(), group, "1", nil); err != nil {
				t.Error(err)
			}
		}
		if err := reach(t, openURL(t, url)); err == nil || errors.Is(err, store.ErrPermanent) {
			t.Errorf("without trust and certificate: %v", err)
		}
	})
}
