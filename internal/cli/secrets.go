package cli

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
)

// ownOptions are the options of a store's URL that are not go-redis's.
const ownOptions = "ca, cert, key, password_file, min_replicas and replica_timeout, for Sentinels sentinel_user and sentinel_password_file"

// maxSecret is how large a file with a password may be.
const maxSecret = 4 << 10

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
		if _, err := word(s.password); err != nil {
			return fmt.Errorf("password_file: %w", err)
		}
	}
	return nil
}

// config returns base with what the files hold now.
func (s *secrets) config(base *tls.Config) (*tls.Config, error) {
	c := base.Clone()
	if s.ca != "" {
		text, err := os.ReadFile(s.ca)
		if err != nil {
			return nil, fmt.Errorf("ca: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("ca: %s holds no certificate: give a file of certificates in PEM", s.ca)
		}
	}
	if s.cert != "" {
		pair, err := tls.LoadX509KeyPair(s.cert, s.key)
		if err != nil {
			return nil, fmt.Errorf("cert and key: %w: give a certificate in PEM and the key that belongs to it", err)
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
		password, err := word(file)
		if err != nil {
			return "", "", fmt.Errorf("password_file: %w", err)
		}
		return user, password, nil
	}
}

// word returns what a file holds, less the end of its line.
func word(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	text = bytes.TrimRight(text, "\r\n")
	switch {
	case len(text) == 0:
		return "", errors.New(file + " is empty: write the password into it")
	case len(text) > maxSecret || bytes.ContainsAny(text, "\r\n\x00"):
		return "", errors.New(file + " holds more than a password: write that alone into it, on one line")
	}
	return string(text), nil
}
