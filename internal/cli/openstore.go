package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/go-singleton/singleton/store/zkstore"
	"github.com/redis/go-redis/v9"
)

// leaveLimit is how long a process that ends waits for its connections to close.
const leaveLimit = 100 * time.Millisecond

// opened is an open store.
type opened struct {
	store.Store
	redis  *redisstore.Store // nil for another store
	alone  bool              // it is in the memory of this process
	client io.Closer         // what the store stands on; nil when there is none
	name   string            // its URL, without password and options
	from   string            // who named it
}

// open opens a store; it asks nobody, and reads the files that the URL names. Its errors are about the URL and those files,
// and never show a password.
func open(p place, log *slog.Logger) (*opened, error) { return openFor(p, 0, log) }

// openFor opens a store for leases of that length; 0 is the usual one.
func openFor(p place, lease time.Duration, log *slog.Logger) (*opened, error) {
	if p.url == memoryStore || p.url == memoryStore+"//" {
		return &opened{Store: memstore.New(), alone: true, name: memoryStore, from: p.from}, nil
	}
	if strings.HasPrefix(p.url, zookeeperScheme) {
		c, name, err := parseZooKeeper(p.url, lease)
		if err != nil {
			return nil, usagef("%s: %w", p.from, err)
		}
		c.Logger = log
		return &opened{Store: zkstore.New(c), name: name, from: p.from}, nil
	}
	a, err := parseStore(p.url)
	if err != nil {
		return nil, usagef("%s: %w", p.from, err)
	}
	redis.SetLogger(clientLog{log}) // of the whole process: that is for a program to do, not for a library
	st, client, err := a.open(log)
	if err != nil {
		return nil, usagef("%s: the store's URL: %w", p.from, err)
	}
	return &opened{Store: st, redis: st, client: client, name: a.name, from: p.from}, nil
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

// clientLog brings what go-redis says of its connections into the log.
type clientLog struct{ log *slog.Logger }

// Printf implements the interface of redis.SetLogger.
func (l clientLog) Printf(ctx context.Context, format string, args ...any) {
	if l.log.Enabled(ctx, slog.LevelDebug) {
		l.log.DebugContext(ctx, "redis client", "line", line(fmt.Sprintf(format, args...)))
	}
}
