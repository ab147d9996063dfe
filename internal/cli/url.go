package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/go-singleton/singleton/internal/secret"
)

// storeURL is the URL of a store of several servers, in parts:
//
//	scheme://[user:password@]host[:port][,host[:port]...][/path][?option=value...]
type storeURL struct {
	Hosts          []string // as they stand there
	User, Password string
	Path           string
	TLS            *tls.Config // nil without TLS
	Options        url.Values  // but ca, cert, key and password_file
	Name           string      // the URL for people, without password and options
}

// readURL reads a URL and the files that its options ca, cert, key and password_file name, and asks nobody. secure is the
// scheme of those for TLS. The certificate and its key are read again for each connection. Its errors are to be followed by
// what is wanted; they repeat no part of the URL that could be a password.
func readURL(raw, secure string) (u storeURL, err error) {
	scheme, rest, _ := strings.Cut(raw, "://")
	authority, _, _ := strings.Cut(rest, "/")
	if end := strings.IndexAny(authority, "?#"); end >= 0 {
		authority = authority[:end]
	}
	at := strings.LastIndexByte(authority, '@') + 1
	parts, err := url.Parse(scheme + "://" + authority[:at] + "host" + rest[len(authority):])
	if err == nil {
		u.Options, err = url.ParseQuery(parts.RawQuery)
	}
	if err != nil || parts.User == nil && strings.Contains(rest, "@") || parts.Fragment != "" {
		return storeURL{}, errors.New("the store's URL cannot be read; percent-encode special characters of the password, such as / as %2F")
	}
	u.Hosts, u.Path = strings.Split(authority[at:], ","), parts.Path
	u.Name = (&url.URL{Scheme: scheme, User: parts.User, Host: authority[at:], Path: parts.Path}).Redacted()

	var files secrets
	for name, field := range map[string]*string{"ca": &files.ca, "cert": &files.cert, "key": &files.key, "password_file": &files.password} {
		if u.Options.Has(name) {
			if *field = u.Options.Get(name); *field == "" {
				return storeURL{}, fmt.Errorf("the store's URL has %s without a file", name)
			}
			u.Options.Del(name)
		}
	}
	if err := u.identify(parts.User, &files); err != nil {
		return storeURL{}, err
	}
	if err := u.encrypt(scheme == secure, &files); err != nil {
		return storeURL{}, err
	}
	return u, nil
}

// identify finds user and password.
func (u *storeURL) identify(who *url.Userinfo, files *secrets) (err error) {
	if who != nil {
		var given bool
		u.User = who.Username()
		if u.Password, given = who.Password(); !given || u.User == "" {
			return errors.New("the store's URL has no user, a colon and a password before the @")
		}
	}
	if (u.Password != "") == (files.password != "") && u.User != "" {
		return errors.New("the store's URL has a user and no password, or a password and a password_file: give one of them")
	}
	if files.password == "" {
		return nil
	}
	if u.User == "" {
		return errors.New("the store's URL has a password_file and no user: write the user and a colon before the @")
	}
	if u.Password, err = secret.Word(files.password); err != nil {
		return fmt.Errorf("the store's URL: password_file: %w", err)
	}
	return nil
}

// encrypt makes the configuration of TLS.
func (u *storeURL) encrypt(on bool, files *secrets) (err error) {
	switch {
	case !on && files.tls():
		return errors.New("the store's URL has ca, cert or key, which belong to TLS")
	case (files.cert == "") != (files.key == ""):
		return errors.New("the store's URL has one of cert and key: give the certificate and its key, or neither")
	case !on:
		return nil
	}
	base := &tls.Config{MinVersion: tls.VersionTLS12}
	if u.TLS, err = files.config(base); err != nil {
		return fmt.Errorf("the store's URL: %w", err)
	}
	if files.cert != "" {
		pair := *files
		u.TLS.Certificates = nil
		u.TLS.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			c, err := pair.config(base)
			if err != nil {
				return nil, err
			}
			return &c.Certificates[0], nil
		}
	}
	return nil
}
