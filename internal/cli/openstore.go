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

// Opener opens a store by its URL, and asks nobody. The lease is how long those are that will be asked for, 0 the usual one.
// The name is the URL without password and options. Errors are about the URL and the files that it names, say what is
// wanted, and never show a password.
type Opener func(url string, lease time.Duration, log *slog.Logger) (st store.Store, name string, err error)

// Openers are the openers of the stores that are neither a Redis nor memory, by the scheme of their URLs: what stands before
// "://".
type Openers map[string]Opener

// elsewhere says where to get the program for the URLs that this one does not know.
var elsewhere = map[string]string{"etcd": etcdProgram, "etcds": etcdProgram}

const etcdProgram = "singleton-etcd, which has the same commands; build it in a clone of https://github.com/go-singleton/singleton: " +
	`go build -C store/etcdstore -o "$PWD/" ./cmd/singleton-etcd`

// open opens a store; it asks nobody, and reads the files that the URL names. Its errors are about the URL and those files,
// and never show a password. A lease of 0 is the usual one.
func (a *app) open(p place, lease time.Duration, log *slog.Logger) (*opened, error) {
	if p.url == memoryStore || p.url == memoryStore+"//" {
		return &opened{Store: memstore.New(), alone: true, name: memoryStore, from: p.from}, nil
	}
	scheme, _, _ := strings.Cut(p.url, "://")
	if open, ok := a.openers[scheme]; ok {
		st, name, err := open(p.url, lease, log)
		if err != nil {
			return nil, usagef("%s: %w", p.from, err)
		}
		return &opened{Store: st, name: name, from: p.from}, nil
	}
	if program, ok := elsewhere[scheme]; ok {
		return nil, usagef("%s: stores of the kind %q are for %s", p.from, scheme+"://", program)
	}
	where, err := parseStore(p.url)
	if err != nil {
		return nil, usagef("%s: %w", p.from, err)
	}
	redis.SetLogger(clientLog{log}) // of the whole process: that is for a program to do, not for a library
	st, client, err := where.open(log)
	if err != nil {
		return nil, usagef("%s: the store's URL: %w", p.from, err)
	}
	return &opened{Store: st, redis: st, client: client, name: where.name, from: p.from}, nil
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
