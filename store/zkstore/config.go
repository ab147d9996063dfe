package zkstore

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/store"
)

// Bounds of Config.SessionTimeout.
const (
	minTimeout     = 500 * time.Millisecond
	maxTimeout     = 36 * time.Hour // its two thirds are the longest lease
	defaultTimeout = 15 * time.Second
)

// Config says which servers a Store uses and how; only Servers is required.
type Config struct {
	Servers []string // "host" or "host:port" of the members of one ensemble, all of them; port 2181
	Chroot  string   // the znode that everything lies under, "/" or "/a/b"; created when it is missing

	// SessionTimeout is the timeout asked for the ZooKeeper session that leases and sessions live on: 500ms to 36h, 15s
	// by default. The servers allow 2 to 20 of their ticks where they are not configured otherwise, 4s to 40s; let it be
	// five ticks at least. No lease is longer than two thirds of it, and a lease outlives a crash by no more than it and a
	// tick.
	SessionTimeout time.Duration

	User, Password string      // of ZooKeeper's digest scheme; "" is nobody
	ACL            []zk.ACL    // of the znodes created; nil allows everything to User, or to anyone where there is no User
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
	var servers, problems []string
	for _, s := range c.Servers {
		host, port, err := net.SplitHostPort(s)
		if err != nil {
			host, port = strings.Trim(s, "[]"), strconv.Itoa(zk.DefaultPort)
		}
		_, address := netip.ParseAddr(host)
		if host == "" || port == "" || strings.Contains(host, ":") && address != nil {
			problems = append(problems, fmt.Sprintf("server %.140q is not host or host:port", s))
		}
		servers = append(servers, net.JoinHostPort(host, port))
	}
	c.Servers = servers
	if len(servers) == 0 {
		problems = append(problems, "no server is named: set Servers")
	}
	c.Chroot = strings.TrimSuffix(c.Chroot, "/")
	if c.Chroot != "" && !slices.Equal(strings.Split(c.Chroot, "/"), components(c.Chroot)) || len(c.Chroot) > maxChroot {
		problems = append(problems, fmt.Sprintf("chroot %.140q is not a path: use \"/a/b\", names of letters, digits, '.', '_' and '-'", c.Chroot))
	}
	if c.SessionTimeout == 0 {
		c.SessionTimeout = defaultTimeout
	}
	if c.SessionTimeout < minTimeout || c.SessionTimeout > maxTimeout {
		problems = append(problems, fmt.Sprintf("a session timeout of %v is not possible: use %v to %v", c.SessionTimeout, minTimeout, maxTimeout))
	}
	if strings.Contains(c.User, ":") || c.User == "" && c.Password != "" {
		problems = append(problems, "the user is empty beside a password, or has a colon")
	}
	if c.ACL == nil {
		c.ACL = zk.WorldACL(zk.PermAll)
		if c.User != "" {
			c.ACL = zk.DigestACL(zk.PermAll, c.User, c.Password)
		}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if len(problems) > 0 {
		return c, store.Permanent("zkstore: "+strings.Join(problems, "; "), nil)
	}
	return c, nil
}
