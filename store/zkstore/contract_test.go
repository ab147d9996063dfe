package zkstore_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/zktest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/storetest"
	"github.com/go-singleton/singleton/store/zkstore"
)

// server is the one that the tests share which leave it as it is.
var server *zktest.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = zktest.New(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(closing{m})
}

// closing ends the shared server when the tests have run.
type closing struct{ m *testing.M }

func (c closing) Run() int {
	code := c.m.Run()
	err := server.Close()
	if started != nil {
		err = errors.Join(err, started.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// open returns a store that ends with the test.
func open(t testing.TB, c zkstore.Config) *zkstore.Store {
	if len(c.Servers) == 0 {
		c.Servers = []string{server.Addr()}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	s := zkstore.New(c)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// admin returns a client of a server that ends with the test.
func admin(t testing.TB, addr string) *zk.Conn {
	conn, _, err := zk.Connect([]string{addr}, 10*time.Second, zk.WithLogInfo(false))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// wipe deletes path and all below it.
func wipe(t *testing.T, conn *zk.Conn, path string) {
	t.Helper()
	children, _, err := conn.Children(path)
	if err == zk.ErrNoNode {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range children {
		wipe(t, conn, path+"/"+c)
	}
	if err := conn.Delete(path, -1); err != nil && err != zk.ErrNoNode {
		t.Fatal(err)
	}
}

func TestContract(t *testing.T) {
	conn := admin(t, server.Addr())
	n := 0
	chroot := func() string { return fmt.Sprintf("%s/%d", chrootOf(t), n) }
	storetest.Run(t, storetest.Harness{
		Open: func(t *testing.T) store.Store {
			n++
			return open(t, zkstore.Config{Chroot: chroot(), SessionTimeout: time.Hour})
		},
		Wipe: func(t *testing.T) { wipe(t, conn, chroot()) },
		Fill: func(t *testing.T, ids []string) {
			inbox := chroot() + "/singleton/g/inbox"
			acl := zk.WorldACL(zk.PermAll)
			var path strings.Builder
			for name := range strings.SplitSeq(inbox[1:], "/") {
				path.WriteString("/" + name)
				if _, err := conn.Create(path.String(), nil, 0, acl); err != nil && err != zk.ErrNodeExists {
					t.Fatal(err)
				}
			}
			var ops []any
			for i, id := range ids {
				ops = append(ops, &zk.CreateRequest{Path: inbox + "/" + id, Data: []byte("m"), Acl: acl})
				if len(ops) == 1000 || i == len(ids)-1 {
					if _, err := conn.Multi(ops...); err != nil {
						t.Fatal(err)
					}
					ops = nil
				}
			}
		},
	})
}
