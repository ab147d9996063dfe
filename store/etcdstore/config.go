package etcdstore

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"strings"

	"github.com/go-singleton/singleton/store"
)

const defaultPort = "2379"

// Config says which servers a Store uses and how; only Endpoints is required.
type Config struct {
	Endpoints []string // "host" or "host:port" of the members of one cluster, all of them; port 2379
	Prefix    string   // what all keys begin with, "" or "/a/b": "/a/b/singleton/..."

	User, Password string      // of etcd's authentication; "" is nobody, or who the client's certificate names
	TLS            *tls.Config // nil is plain
	Logger         *slog.Logger
}

// Check returns what is wrong with c, as each call of a Store made of it would.
func (c Config) Check() error {
	_, err := c.complete()
	return err
}

// complete returns c with its defaults, and what is wrong with it.
func (c Config) complete() (Config, error) {
	var endpoints, problems []string
	for _, e := range c.Endpoints {
		host, port, err := net.SplitHostPort(e)
		if err != nil {
			host, port = strings.Trim(e, "[]"), defaultPort
		}
		_, address := netip.ParseAddr(host)
		if host == "" || port == "" || strings.ContainsAny(host, "/ ") || strings.Contains(host, ":") && address != nil {
			problems = append(problems, fmt.Sprintf("endpoint %.140q is not host or host:port", e))
		}
		endpoints = append(endpoints, net.JoinHostPort(host, port))
	}
	c.Endpoints = endpoints
	if len(endpoints) == 0 {
		problems = append(problems, "no endpoint is named: set Endpoints")
	}
	if c.Prefix = strings.TrimSuffix(c.Prefix, "/"); c.Prefix != "" {
		for name := range strings.SplitSeq(strings.TrimPrefix(c.Prefix, "/"), "/") {
			if store.CheckName("prefix", name) != nil || len(c.Prefix) > maxPrefix {
				problems = append(problems, fmt.Sprintf("prefix %.140q is not a path: use \"/a/b\", names of letters, digits, '.', '_' and '-'", c.Prefix))
				break
			}
		}
		c.Prefix += "/"
	}
	if (c.User == "") != (c.Password == "") {
		problems = append(problems, "there is a user without a password, or a password without a user")
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if len(problems) > 0 {
		return c, store.Permanent("etcdstore: "+strings.Join(problems, "; "), nil)
	}
	return c, nil
}
