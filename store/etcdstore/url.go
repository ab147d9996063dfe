package etcdstore

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-singleton/singleton/internal/secret"
)

const wantURL = "want etcd://[user:password@]host[:port][,host...][/prefix], etcds in place of etcd for TLS, with the options " +
	"ca, cert, key and password_file"

// ParseURL reads where an etcd cluster is, and the files that the URL names: a password, and for TLS the authority that has
// signed the servers' certificates and a certificate of the client, which is read again for each connection. It asks
// nobody. The name is the URL without password and options. Errors repeat no part of the URL that could be a password.
//
//	etcd://h1,h2,h3                                  the keys begin with singleton/
//	etcds://user:password@h1:2379/billing?ca=ca.pem  TLS; they begin with /billing/singleton/
func ParseURL(raw string) (c Config, name string, err error) {
	bad := func(what string) (Config, string, error) {
		return Config{}, "", errors.New("the store's URL " + what + "; " + wantURL)
	}
	scheme, rest, _ := strings.Cut(raw, "://")
	if scheme != "etcd" && scheme != "etcds" {
		return bad("does not begin with etcd:// or etcds://")
	}
	authority, _, _ := strings.Cut(rest, "/")
	if end := strings.IndexAny(authority, "?#"); end >= 0 {
		authority = authority[:end]
	}
	at := strings.LastIndexByte(authority, '@') + 1
	u, err := url.Parse(scheme + "://" + authority[:at] + "host" + rest[len(authority):])
	var query url.Values
	if err == nil {
		query, err = url.ParseQuery(u.RawQuery)
	}
	if err != nil || u.User == nil && strings.Contains(rest, "@") || u.Fragment != "" {
		return bad("cannot be read; percent-encode special characters of the password, such as / as %2F")
	}
	c = Config{Endpoints: strings.Split(authority[at:], ","), Prefix: u.Path, User: u.User.Username()}
	password, given := u.User.Password()
	options := map[string]string{}
	for option, values := range query {
		switch option {
		case "ca", "cert", "key", "password_file":
		default:
			return bad("has an option that is not known")
		}
		if len(values) != 1 || values[0] == "" {
			return bad("has an option that is empty or stands twice")
		}
		options[option] = values[0]
	}
	file := options["password_file"]
	switch {
	case u.User != nil && (c.User == "" || !given && file == ""):
		return bad("has no user, a colon and a password before the @")
	case file != "" && (given || c.User == ""):
		return bad("has a password_file without a user before the @, or beside a password")
	case (options["cert"] == "") != (options["key"] == ""):
		return bad("has one of cert and key: give the certificate and its key, or neither")
	case scheme == "etcd" && (options["ca"] != "" || options["cert"] != ""):
		return bad("has ca, cert or key, which belong to TLS: write etcds for etcd")
	}
	c.Password = password
	if file != "" {
		if c.Password, err = secret.Word(file); err != nil {
			return Config{}, "", fmt.Errorf("the store's URL: password_file: %w", err)
		}
	}
	if scheme == "etcds" {
		if c.TLS, err = secured(options["ca"], options["cert"], options["key"]); err != nil {
			return Config{}, "", fmt.Errorf("the store's URL: %w", err)
		}
	}
	if c.Check() != nil {
		return bad("has a host or a prefix that is not valid")
	}
	shown := url.URL{Scheme: scheme, User: u.User, Host: authority[at:], Path: u.Path}
	return c, shown.Redacted(), nil
}

// secured returns how to speak TLS with what the files hold; "" is no file.
func secured(ca, cert, key string) (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pool, err := secret.Authorities(ca)
		if err != nil {
			return nil, err
		}
		c.RootCAs = pool
	}
	if cert == "" {
		return c, nil
	}
	load := func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		pair, err := secret.Certificate(cert, key)
		if err != nil {
			return nil, err
		}
		return &pair, nil
	}
	c.GetClientCertificate = load
	_, err := load(nil)
	return c, err
}
