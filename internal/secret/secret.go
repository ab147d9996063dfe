// Package secret reads the files that a store's URL names: a password, and what TLS needs. Its errors name the file and
// what to write there, never what it holds.
package secret

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// maxWord is how large a file with a password may be.
const maxWord = 4 << 10

// Word returns what a file holds, less the end of its line.
func Word(file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	text = bytes.TrimRight(text, "\r\n")
	switch {
	case len(text) == 0:
		return "", errors.New(file + " is empty: write the password into it")
	case len(text) > maxWord || bytes.ContainsAny(text, "\r\n\x00"):
		return "", errors.New(file + " holds more than a password: write that alone into it, on one line")
	}
	return string(text), nil
}

// Authorities returns the certificates of a file in PEM.
func Authorities(file string) (*x509.CertPool, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("ca: %s holds no certificate: give a file of certificates in PEM", file)
	}
	return pool, nil
}

// Certificate returns the certificate of one file in PEM, with the key of another.
func Certificate(cert, key string) (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("cert and key: %w: give a certificate in PEM and the key that belongs to it", err)
	}
	return pair, nil
}
