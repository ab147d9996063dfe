package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"

	"github.com/go-singleton/singleton/internal/secret"
)

// ownOptions are the options of a store's URL that are not go-redis's.
const ownOptions = "ca, cert, key, password_file, min_replicas and replica_timeout, for Sentinels sentinel_user and sentinel_password_file"

// secrets are files that a store's URL names. They are read for each connection, so that what is renewed there counts
// from the next one on; only the Sentinels' password is read once.
type secrets struct {
	ca, cert, key, password        string
	sentinelUser, sentinelPassword string
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// take takes its options out of query.
func (s *secrets) take(query url.Values, password, sentinels bool) error {
	fields := map[string]*string{"ca": &s.ca, "cert": &s.cert, "key": &s.key, "password_file": &s.password}
	if sentinels {
		fields["sentinel_user"], fields["sentinel_password_file"] = &s.sentinelUser, &s.sentinelPassword
	}
	empty := false
	for name, field := range fields {
		if query.Has(name) {
			*field = query.Get(name)
			empty = empty || *field == ""
			query.Del(name)
		}
	}
	switch {
	case empty:
		return badURL("has an empty option: give each of " + ownOptions + " a value, or leave it out")
	case (s.cert == "") != (s.key == ""):
		return badURL("has one of cert and key: give the certificate and its key, or neither")
	case s.password != "" && password:
		return badURL("has a password and a password_file: give one of them")
	}
	return nil
}

// tls tells whether the files concern TLS.
func (s *secrets) tls() bool { return s.ca != "" || s.cert != "" }

// check reads all files once, to tell at the start what is wrong.
func (s *secrets) check() error {
	if _, err := s.config(&tls.Config{MinVersion: tls.VersionTLS12}); err != nil {
		return err
	}
	if s.password != "" {
		if _, err := secret.Word(s.password); err != nil {
			return fmt.Errorf("password_file: %w", err)
		}
	}
	return nil
}

// config returns base with what the files hold now.
func (s *secrets) config(base *tls.Config) (*tls.Config, error) {
	c := base.Clone()
	if s.ca != "" {
		pool, err := secret.Authorities(s.ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	if s.cert != "" {
		pair, err := secret.Certificate(s.cert, s.key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// dialer connects by TLS with what the files hold at that moment.
func (s *secrets) dialer(base *tls.Config) dialer {
	files := *s
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := files.config(base)
		if err != nil {
			return nil, err
		}
		return (&tls.Dialer{Config: c}).DialContext(ctx, network, addr)
	}
}

// credentials returns what reads the password for each connection; nil where no file holds it.
func (s *secrets) credentials(user string) func(context.Context) (string, string, error) {
	file := s.password
	if file == "" {
		return nil
	}
	return func(context.Context) (string, string, error) {
		password, err := secret.Word(file)
		if err != nil {
			return "", "", fmt.Errorf("password_file: %w", err)
		}
		return user, password, nil
	}
}
