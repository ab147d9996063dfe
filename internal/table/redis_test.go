//go:build unix

package table

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// owned is a store with the client that was made for it.
type owned struct {
	store.Store
	client io.Closer
}

func (o owned) Close() error { return errors.Join(o.Store.Close(), o.client.Close()) }

// one returns a kind of Redis on its own.
func one(name, title string, args ...string) Kind {
	return Kind{
		Name: name, Title: title,
		Start: func(t testing.TB) Servers {
			server := redistest.Start(t, redistest.Args(args...))
			return Servers{Addrs: []string{server.Addr()}, It: server}
		},
		Open: func(addrs []string, link *Link, _ time.Duration) (store.Store, error) {
			client := redis.NewClient(&redis.Options{Addr: addrs[0], Dialer: link.Dial})
			return owned{redisstore.New(client, nil), client}, nil
		},
	}
}

// The faults of a Redis on its own.
var (
	killed = On("Redis is killed and restarted", func(s *Scene, server *redistest.Server) {
		server.Kill()
		s.Rest(time.Second)
		s.Must(server.Restart())
	})
	frozen = On("Redis is frozen past the lease, and goes on", func(s *Scene, server *redistest.Server) {
		server.Stop()
		s.Rest(Lease * 3 / 2)
		server.Cont()
	})
	emptied = On("Redis restarts empty", func(s *Scene, server *redistest.Server) {
		server.Kill()
		s.Rest(time.Second)
		s.Must(server.RestartEmpty())
	}).ThatForgets()
	truncated = On("Redis is killed, and its append-only file loses its last 2 KiB", func(s *Scene, server *redistest.Server) {
		server.Kill()
		s.Must(truncate(server.Dir(), 2<<10))
		s.Still(func() {
			s.Must(server.Restart())
			s.Remains(remains(s, []*redistest.Server{server}))
		})
	}).ThatForgets()
)

// truncate cuts the end of the newest append-only file in a directory off.
func truncate(dir string, bytes int64) error {
	files, err := filepath.Glob(filepath.Join(dir, "appendonlydir", "*.incr.aof"))
	if err != nil || len(files) == 0 {
		return errors.Join(err, errors.New("there is no append-only file"))
	}
	last := files[len(files)-1]
	info, err := os.Stat(last)
	if err != nil {
		return err
	}
	return os.Truncate(last, max(0, info.Size()-bytes))
}

func single() []Kind {
	none := one("redis-nothing", "one Redis, nothing on disk")
	none.Faults = []Fault{killed.ThatForgets(), frozen}
	everysec := one("redis", "one Redis, `appendfsync everysec`", "--appendonly", "yes", "--appendfsync", "everysec")
	everysec.Faults = []Fault{killed, frozen, emptied, truncated}
	always := one("redis-always", "one Redis, `appendfsync always`", "--appendonly", "yes", "--appendfsync", "always")
	always.Faults = []Fault{killed, frozen, emptied, truncated}
	return []Kind{everysec, none, always}
}
