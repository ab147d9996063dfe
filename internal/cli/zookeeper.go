package cli

import (
	"errors"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/zkstore"
)

const (
	zookeeperScheme = "zk://"
	wantZooKeeper   = "want zk://[user:password@]host[:port][,host...][/chroot][?session=15s]"
)

// openZooKeeper is the Opener of "zk".
func openZooKeeper(url string, lease time.Duration, log *slog.Logger) (store.Store, string, error) {
	c, name, err := parseZooKeeper(url, lease)
	if err != nil {
		return nil, "", err
	}
	c.Logger = log
	return zkstore.New(c), name, nil
}

// parseZooKeeper reads the URL of a ZooKeeper ensemble, and asks nobody. The session lasts for lease where the URL does
// not say, so that leadership outlives a crash by no more. Its errors repeat no part of the URL that could be a password.
func parseZooKeeper(raw string, lease time.Duration) (c zkstore.Config, name string, err error) {
	bad := func(what string) (zkstore.Config, string, error) {
		return zkstore.Config{}, "", errors.New("the store's URL " + what + "; " + wantZooKeeper)
	}
	rest := strings.TrimPrefix(raw, zookeeperScheme)
	authority, _, _ := strings.Cut(rest, "/")
	if end := strings.IndexAny(authority, "?#"); end >= 0 {
		authority = authority[:end]
	}
	at := strings.LastIndexByte(authority, '@') + 1
	u, err := url.Parse(zookeeperScheme + authority[:at] + "host" + rest[len(authority):])
	var query url.Values
	if err == nil {
		query, err = url.ParseQuery(u.RawQuery)
	}
	if err != nil || u.User == nil && strings.Contains(rest, "@") || u.Fragment != "" {
		return bad("cannot be read; percent-encode special characters of the password, such as / as %2F")
	}
	user := u.User.Username()
	password, given := u.User.Password()
	if u.User != nil && (!given || user == "") {
		return bad("has no user, a colon and a password before the @")
	}
	c = zkstore.Config{
		Servers: strings.Split(authority[at:], ","), Chroot: u.Path, User: user, Password: password, SessionTimeout: lease,
	}
	for option, values := range query {
		if option != "session" || len(values) != 1 {
			return bad("has an option other than session")
		}
		if c.SessionTimeout, err = time.ParseDuration(values[0]); err != nil || c.SessionTimeout <= 0 {
			return bad("has a session that is no duration")
		}
	}
	if c.Check() != nil {
		return bad("has a host, a chroot or a session that is not valid")
	}
	shown := url.URL{Scheme: "zk", User: u.User, Host: authority[at:], Path: u.Path}
	return c, shown.Redacted(), nil
}
