package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Authority is a certificate authority of a test's own, and a certificate by it for a server and for a client.
type Authority struct {
	CA          string // file of its own certificate
	Certificate string // file of one that clients present
	Key         string // file of its key

	server [2]string // files of a server's certificate and key
	dir    string
	self   *x509.Certificate
	key    *ecdsa.PrivateKey
}

// NewAuthority makes an authority that keeps its files in dir.
func NewAuthority(dir string) (*Authority, error) {
	a := &Authority{dir: dir}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	a.self = &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "authority of a test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, a.self, a.self, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	if a.CA, err = a.write("ca.pem", "CERTIFICATE", der); err != nil {
		return nil, err
	}
	if a.server[0], a.server[1], err = a.Issue("server"); err != nil {
		return nil, err
	}
	a.Certificate, a.Key, err = a.Issue("client")
	return a, err
}

// Issue makes a certificate for name on this machine, and returns the files of it and of its key. A file of the same name
// is replaced.
func (a *Authority) Issue(name string) (certificate, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", fmt.Errorf("redistest: %w", err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, c, a.self, &private.PublicKey, a.key)
	if err != nil {
		return "", "", fmt.Errorf("redistest: %w", err)
	}
	bytes, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return "", "", fmt.Errorf("redistest: %w", err)
	}
	if certificate, err = a.write(name+".pem", "CERTIFICATE", der); err != nil {
		return "", "", err
	}
	key, err = a.write(name+".key", "EC PRIVATE KEY", bytes)
	return certificate, key, err
}

// Client returns the configuration of a client that trusts the authority and has a certificate of it; nil for nil.
func (a *Authority) Client() *tls.Config {
	if a == nil {
		return nil
	}
	pool := x509.NewCertPool()
	certificate, err := tls.LoadX509KeyPair(a.Certificate, a.Key)
	text, readErr := os.ReadFile(a.CA)
	if err = errors.Join(err, readErr); err != nil || !pool.AppendCertsFromPEM(text) {
		panic(fmt.Sprintf("redistest: files that were just written are no certificates: %v", err))
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{certificate}}
}

// arguments returns those of a redis-server that speaks TLS to clients, replicas and other nodes.
func (a *Authority) arguments() []string {
	return []string{
		"--tls-ca-cert-file", a.CA, "--tls-cert-file", a.server[0], "--tls-key-file", a.server[1],
		"--tls-auth-clients", "yes", "--tls-replication", "yes", "--tls-cluster", "yes",
	}
}

// write replaces a file in one step: a program may read it at this moment.
func (a *Authority) write(name, kind string, der []byte) (string, error) {
	file := filepath.Join(a.dir, name)
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return "", fmt.Errorf("redistest: %w", err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return "", fmt.Errorf("redistest: %w", err)
	}
	return file, nil
}
