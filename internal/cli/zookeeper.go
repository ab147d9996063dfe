package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/zkstore"
)

const wantZooKeeper = "want zk://[user:password@]host[:port][,host...][/chroot][?session=15s], zks in place of zk for TLS"

// openZooKeeper is the Opener of "zk" and "zks".
func openZooKeeper(url string, lease time.Duration, log *slog.Logger) (store.Store, string, error) {
	c, name, err := parseZooKeeper(url, lease)
	if err != nil {
		return nil, "", fmt.Errorf("%w; %s", err, wantZooKeeper)
	}
	c.Logger = log
	return zkstore.New(c), name, nil
}

// parseZooKeeper reads the URL of a ZooKeeper ensemble. The session lasts for lease where the URL does not say, so that
// leadership outlives a crash by no more.
func parseZooKeeper(raw string, lease time.Duration) (c zkstore.Config, name string, err error) {
	u, err := readURL(raw, "zks")
	if err != nil {
		return c, "", err
	}
	c = zkstore.Config{
		Servers: u.Hosts, Chroot: u.Path, User: u.User, Password: u.Password, TLS: u.TLS, SessionTimeout: lease,
	}
	for option, values := range u.Options {
		if option != "session" || len(values) != 1 {
			return c, "", errors.New("the store's URL has an option that is not known, or twice")
		}
		if c.SessionTimeout, err = time.ParseDuration(values[0]); err != nil || c.SessionTimeout <= 0 {
			return c, "", errors.New("the store's URL has a session that is no duration")
		}
	}
	if c.Check() != nil {
		return c, "", errors.New("the store's URL has a host, a chroot or a session that is not valid")
	}
	return c, u.Name, nil
}
