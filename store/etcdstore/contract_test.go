package etcdstore_test

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"testing"

	"go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
	"go.uber.org/zap"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
	"github.com/go-singleton/singleton/store/storetest"
)

// server is the one that the tests share which leave it as it is.
var server *etcdtest.Server

func TestMain(m *testing.M) {
	var err error
	if server, err = etcdtest.New(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(closing{m})
}

// closing ends the shared servers when the tests have run.
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
func open(t testing.TB, c etcdstore.Config) *etcdstore.Store {
	if len(c.Endpoints) == 0 {
		c.Endpoints = []string{server.Addr()}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelInfo}))
	}
	s := etcdstore.New(c)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// admin returns a client of servers that ends with the test.
func admin(t testing.TB, endpoints ...string) *clientv3.Client {
	return adminAs(t, "", "", endpoints...)
}

func adminAs(t testing.TB, user, password string, endpoints ...string) *clientv3.Client {
	client, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop(), Username: user, Password: password})
	must(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func TestContract(t *testing.T) {
	t.Parallel()
	contract(t, server.Addr())
}

func TestContractOnThreeMembers(t *testing.T) {
	t.Parallel()
	contract(t, etcdtest.StartCluster(t).Addrs()...)
}

func contract(t *testing.T, endpoints ...string) {
	client := admin(t, endpoints...)
	n := 0
	prefix := func() string { return fmt.Sprintf("%s/%d", prefixOf(t), n) }
	storetest.Run(t, storetest.Harness{
		Open: func(t *testing.T) store.Store {
			n++
			return open(t, etcdstore.Config{Endpoints: endpoints, Prefix: prefix()})
		},
		Wipe: func(t *testing.T) {
			_, err := client.Delete(t.Context(), prefix()+"/", clientv3.WithPrefix())
			must(t, err)
		},
		Fill: func(t *testing.T, ids []string) {
			var puts []clientv3.Op
			for i, id := range ids {
				puts = append(puts, clientv3.OpPut(prefix()+"/singleton/g/inbox/"+id, "m"))
				if len(puts) == 100 || i == len(ids)-1 {
					_, err := client.Txn(t.Context()).Then(puts...).Commit()
					must(t, err)
					puts = nil
				}
			}
		},
	})
}
