package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// leaveLimit is how long a process that ends waits for its connections to close.
const leaveLimit = 100 * time.Millisecond

// opened is an open store.
type opened struct {
	store.Store
	redis  *redisstore.Store // nil for memory:
	client *redis.Client
	name   string // its URL, without password and options
	from   string // who named it
}

// open opens a store; it does no I/O. Its errors are about the URL and never show a password.
func open(p place, log *slog.Logger) (*opened, error) {
	if p.url == memoryStore || p.url == memoryStore+"//" {
		return &opened{Store: memstore.New(), name: memoryStore, from: p.from}, nil
	}
	opts, name, err := parseStore(p.url)
	if err != nil {
		return nil, usagef("%s: %w", p.from, err)
	}
	redis.SetLogger(clientLog{log})
	client := redis.NewClient(opts)
	st := redisstore.New(client, &redisstore.Options{Logger: log})
	return &opened{Store: st, redis: st, client: client, name: name, from: p.from}, nil
}

// Close closes all connections.
func (o *opened) Close() error {
	err := o.Store.Close()
	if o.client != nil {
		err = errors.Join(err, o.client.Close())
	}
	return err
}

// leave is Close for a process that ends: it does not wait for calls that a silent server holds up.
func (o *opened) leave() {
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_ = o.Close() // the process ends with the connections
	}()
	timer := time.NewTimer(leaveLimit)
	defer timer.Stop()
	select {
	case <-closed:
	case <-timer.C:
	}
}

// parseStore reads the URL of a Redis. The errors of the parsers below are not shown: they repeat parts of the URL, and
// where a password holds a special character those parts can be its own.
func parseStore(raw string) (opts *redis.Options, name string, err error) {
	const want = "want redis://[user:password@]host[:port][/database], rediss:// for TLS, memory: or unix://path"
	scheme, rest, found := strings.Cut(raw, "://")
	switch {
	case !found:
		return nil, "", errors.New("the store's URL has no scheme; " + want)
	case scheme != "redis" && scheme != "rediss" && scheme != "unix":
		return nil, "", fmt.Errorf("stores of the kind %q are not supported; %s", line(clip(scheme, 20))+"://", want)
	}
	u, err := url.Parse(raw)
	if err != nil || u.User == nil && strings.Contains(rest, "@") || u.Fragment != "" {
		return nil, "", errors.New("the store's URL cannot be read; percent-encode special characters of the password, such as " +
			"/ as %2F, and " + want)
	}
	if _, given := u.User.Password(); u.User != nil && !given { // a password that was written without its colon, most likely
		return nil, "", errors.New("the store's URL has one word before the @: write redis://:PASSWORD@host for a password, " +
			"redis://USER:@host for a user without one; " + want)
	}
	if strings.Contains(u.Host, ",") {
		return nil, "", errors.New("the store's URL names several hosts, and one is allowed; " + want)
	}
	if opts, err = redis.ParseURL(raw); err != nil {
		return nil, "", errors.New("the store's URL has a database, a port or an option that is not valid; " + want)
	}
	// The store makes connections of its own with these options and switches this off for them. Here it would look up the
	// host's name although nothing is sent over this client.
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	shown := url.URL{Scheme: u.Scheme, User: u.User, Path: u.Path}
	if scheme != "unix" {
		shown.Host = opts.Addr // with the port, and the host where none is given
	}
	return opts, shown.Redacted(), nil
}

// clientLog brings what go-redis says of its connections into the log.
type clientLog struct{ log *slog.Logger }

// Printf implements the interface of redis.SetLogger.
func (l clientLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", "line", line(fmt.Sprintf(format, args...)))
	}
}
