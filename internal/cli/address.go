package cli

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/go-singleton/singleton/internal/secret"
	"github.com/go-singleton/singleton/store/redisstore"
)

// address is where a Redis is, as its URL says: one of the three kinds of options is set.
type address struct {
	name      string // the URL without password and options
	one       *redis.Options
	sentinels *redis.FailoverOptions
	cluster   *redis.ClusterOptions
	files     secrets
	replicas  int           // that must have received a lease or a commit
	wait      time.Duration // for them; 0 is the store's default
}

const wantURL = "want redis://[user:password@]host[:port][/database], redis+sentinel://[user:password@]host[:port],…/primary, " +
	"redis+cluster://[user:password@]host[:port],…, rediss in place of redis for TLS, unix://path, redlock://host[:port],…, " +
	"zk://host[:port],…[/chroot] or memory:"

// The ports of servers and of Sentinels.
const (
	redisPort    = "6379"
	sentinelPort = "26379"
)

// parseStore reads the URL of a Redis, and reads or asks nothing else. Its errors repeat no part of the URL that could be a
// password written in a wrong way; those of the parsers below do, and are not shown.
func parseStore(raw string) (*address, error) {
	scheme, rest, found := strings.Cut(raw, "://")
	base, kind, _ := strings.Cut(scheme, "+")
	switch {
	case !found:
		return nil, badURL("has no scheme")
	case scheme == "unix", scheme == base && (base == "redis" || base == "rediss"),
		(base == "redis" || base == "rediss") && (kind == "sentinel" || kind == "cluster"):
	default:
		if strings.Trim(scheme, "abcdefghijklmnopqrstuvwxyz+") != "" { // more than a word: a password may hold "://", too
			return nil, badURL("begins with no scheme that is known")
		}
		return nil, fmt.Errorf("stores of the kind %q are not supported; %s", shorten(scheme, 20)+"://", wantURL)
	}
	authority, _, _ := strings.Cut(rest, "/")
	if end := strings.IndexAny(authority, "?#"); end >= 0 {
		authority = authority[:end]
	}
	at := strings.LastIndexByte(authority, '@') + 1
	hosts := strings.Split(authority[at:], ",")
	if scheme == "unix" {
		hosts = []string{authority[at:]}
	}
	u, err := url.Parse(base + "://" + authority[:at] + hosts[0] + rest[len(authority):])
	var query url.Values
	if err == nil {
		query, err = url.ParseQuery(u.RawQuery)
	}
	if err != nil || u.User == nil && strings.Contains(rest, "@") || u.Fragment != "" {
		return nil, badURL("cannot be read; percent-encode special characters of the password, such as / as %2F")
	}
	user, password := u.User.Username(), ""
	if u.User != nil {
		var given bool
		if password, given = u.User.Password(); !given { // a password that was written without its colon, most likely
			return nil, badURL("has one word before the @: write redis://:PASSWORD@host for a password, " +
				"redis://USER:@host for a user without one")
		}
	}
	if len(hosts) > 1 && kind == "" {
		return nil, badURL("names several hosts, and one is allowed; for several write redis+sentinel:// or redis+cluster://")
	}
	port := redisPort
	if kind == "sentinel" {
		port = sentinelPort
	}
	for i, host := range hosts {
		if hosts[i], err = hostPort(host, port, kind == ""); err != nil {
			return nil, err
		}
	}
	a := &address{}
	if err := a.files.take(query, password != "", kind == "sentinel"); err != nil {
		return nil, err
	}
	if err := a.acknowledgement(query); err != nil {
		return nil, err
	}
	secure := base == "rediss" // TLS; with files, those are read anew for each connection
	if a.files.tls() && !secure {
		return nil, badURL("has ca, cert or key, which belong to TLS: write rediss for redis")
	}
	path := strings.Split(strings.Trim(u.Path, "/"), "/")
	shown := url.URL{Scheme: scheme, User: u.User, Host: strings.Join(hosts, ","), Path: u.Path}
	switch kind {
	case "sentinel":
		database, err := 0, error(nil)
		if len(path) == 2 {
			database, err = databaseNumber(path[1])
		}
		if path[0] == "" || len(path) > 2 || err != nil {
			return nil, badURL("needs the name of the primary in the Sentinels' configuration after the hosts, " +
				"and after that at most the number of a database: redis+sentinel://a,b,c/NAME")
		}
		a.sentinels = &redis.FailoverOptions{
			MasterName: path[0], SentinelAddrs: hosts, DB: database, Username: user, Password: password,
			SentinelUsername: a.files.sentinelUser,
		}
	case "cluster":
		if u.Path != "" && u.Path != "/" && u.Path != "/0" {
			return nil, badURL("has a path, and a cluster has database 0 only: end it after the hosts")
		}
		a.cluster = &redis.ClusterOptions{Addrs: hosts, Username: user, Password: password, MaintNotificationsConfig: quiet()}
	default:
		if _, err := databaseNumber(path[0]); scheme != "unix" && path[0] != "" && (len(path) > 1 || err != nil) {
			return nil, badURL("has a path that is not the number of a database: end it with /0, or after the host")
		}
		if scheme == "unix" {
			shown.Host = ""
		}
		u.RawQuery = query.Encode()
		if a.one, err = redis.ParseURL(u.String()); err != nil {
			return nil, badURL("has an option that is not known or has no valid value; those of its own are " + ownOptions +
				", others those of redis.ParseURL of go-redis")
		}
		a.one.MaintNotificationsConfig = quiet()
		query = nil
	}
	if len(query) > 0 {
		return nil, badURL("has an option that is not known; there are " + ownOptions)
	}
	a.name = shown.Redacted()
	a.secure(secure)
	return a, nil
}

// quiet switches off for this client what the store switches off for its own: it would look up the host's name although
// nothing is sent over this client.
func quiet() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

func badURL(what string) error { return errors.New("the store's URL " + what + "; " + wantURL) }

// databaseNumber reads the number of a database.
func databaseNumber(text string) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	return int(n), err
}

// hostPort completes one host of the URL with a port, and, where there may be none, the host.
func hostPort(text, port string, optional bool) (string, error) {
	u, err := url.Parse("redis://" + text)
	if err != nil || u.User != nil || u.Path != "" || u.RawQuery != "" {
		return "", badURL("has a host or a port that cannot be read; ports are numbers, and IPv6 addresses stand in brackets")
	}
	host := u.Hostname()
	if _, err := netip.ParseAddr(host); err != nil && strings.ContainsAny(host, ":[]") {
		return "", badURL("has a host that cannot be read; IPv6 addresses stand in brackets")
	}
	if u.Port() != "" {
		port = u.Port()
	}
	if host == "" && optional {
		host = "localhost"
	}
	if n, err := strconv.ParseUint(port, 10, 16); host == "" || err != nil || n == 0 {
		return "", badURL("has an empty host, or a port that is not between 1 and 65535")
	}
	return net.JoinHostPort(host, port), nil
}

// acknowledgement takes what replicas are waited for out of query.
func (a *address) acknowledgement(query url.Values) (err error) {
	if query.Has("min_replicas") {
		a.replicas, err = strconv.Atoi(query.Get("min_replicas"))
	}
	if err != nil || a.replicas < 0 || a.replicas > 100 {
		return badURL("has min_replicas without a number from 0 to 100")
	}
	if query.Has("replica_timeout") {
		a.wait, err = time.ParseDuration(query.Get("replica_timeout"))
		if err != nil || a.wait < time.Millisecond || a.wait > 2*time.Second {
			return badURL("has replica_timeout without a duration from 1ms to 2s")
		}
	}
	query.Del("min_replicas")
	query.Del("replica_timeout")
	return nil
}

// secure puts what the files hold into the options of whatever kind.
func (a *address) secure(on bool) {
	base := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.one != nil && a.one.TLSConfig != nil {
		base = a.one.TLSConfig
	}
	if !on {
		base = nil
	}
	var dial dialer
	if a.files.tls() {
		dial = a.files.dialer(base)
	}
	switch {
	case a.one != nil:
		a.one.TLSConfig, a.one.Dialer = base, dial
		a.one.CredentialsProviderContext = a.files.credentials(a.one.Username)
	case a.sentinels != nil:
		a.sentinels.TLSConfig, a.sentinels.Dialer = base, dial
		a.sentinels.CredentialsProviderContext = a.files.credentials(a.sentinels.Username)
	default:
		a.cluster.TLSConfig, a.cluster.Dialer = base, dial
		a.cluster.CredentialsProviderContext = a.files.credentials(a.cluster.Username)
	}
}

// open makes a store, and the client that it stands on, if any; it does no I/O but for the files.
func (a *address) open(log *slog.Logger) (*redisstore.Store, io.Closer, error) {
	if err := a.files.check(); err != nil {
		return nil, nil, err
	}
	opts := &redisstore.Options{Logger: log, MinReplicas: a.replicas, ReplicaTimeout: a.wait}
	switch {
	case a.sentinels != nil:
		from := *a.sentinels
		if a.files.sentinelPassword != "" {
			password, err := secret.Word(a.files.sentinelPassword)
			if err != nil {
				return nil, nil, fmt.Errorf("sentinel_password_file: %w", err)
			}
			from.SentinelPassword = password
		}
		return redisstore.NewFailover(&from, opts), nil, nil
	case a.cluster != nil:
		from := *a.cluster
		from.Addrs = slices.Clone(from.Addrs)
		client := redis.NewClusterClient(&from)
		return redisstore.New(client, opts), client, nil
	}
	client := redis.NewClient(a.one)
	return redisstore.New(client, opts), client, nil
}
