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

const (
	defaultStore = "redis://127.0.0.1:6379"
	memoryStore  = "memory:"
	leaveLimit   = 100 * time.Millisecond
)

// place is where the store is, and who said so.
type place struct {
	url  string // may hold a password
	from string // flag or variable, for errors
}

// choose applies the order: flag (or SINGLETON_STORE, which sets it), REDIS_URL, a Redis on this machine.
func (a *app) choose(flag string) place {
	if flag != "" {
		return place{flag, "--store"}
	}
	if u, ok := a.lookup("REDIS_URL"); ok && u != "" {
		return place{u, "REDIS_URL"}
	}
	return place{defaultStore, "--store"}
}

// opened is an open store.
type opened struct {
	store.Store
	redis  *redisstore.Store // nil for memory:
	client *redis.Client
	name   string // its URL, without password and options
}

// open opens a store; it does no I/O. Its errors are about the URL and never show a password.
func open(p place, log *slog.Logger) (*opened, error) {
	if p.url == memoryStore || p.url == memoryStore+"//" {
		return &opened{Store: memstore.New(), name: memoryStore}, nil
	}
	opts, name, err := parseStore(p.url)
	if err != nil {
		return nil, usagef("%s: %w", p.from, err)
	}
	redis.SetLogger(clientLog{log})
	client := redis.NewClient(opts)
	st := redisstore.New(client, &redisstore.Options{Logger: log})
	return &opened{Store: st, redis: st, client: client, name: name}, nil
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
		return nil, "", fmt.Errorf("stores of the kind %.20q:// are not supported; %s", line(scheme), want)
	}
	u, err := url.Parse(raw)
	if err != nil || u.User == nil && strings.Contains(rest, "@") || u.Fragment != "" {
		return nil, "", errors.New("the store's URL cannot be read; percent-encode special characters of the password, such as " +
			"/ as %2F, and " + want)
	}
	if opts, err = redis.ParseURL(raw); err != nil {
		return nil, "", errors.New("the store's URL has a database, a port or an option that is not valid; " + want)
	}
	// The store makes connections of its own with these options and switches this off for them. Here it would look up the
	// host's name although nothing is sent over this client.
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	shown := url.URL{Scheme: u.Scheme, User: u.User, Host: u.Host, Path: u.Path}
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

// unreachable explains an error of a command that asks the store once.
func (o *opened) unreachable(err error) error {
	switch {
	case errors.Is(err, store.ErrPermanent):
		return err // says what to do
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("the store %s does not answer in time: %w; is it overloaded, or the network cut?", o.name, err)
	}
	return fmt.Errorf("the store %s cannot be asked: %w; is it running, and the URL of --store right?", o.name, err)
}
