//go:build unix

package table_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/table"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

func TestMain(m *testing.M) {
	table.Obey(kinds...)
	goleak.VerifyTestMain(m)
}

func TestTable(t *testing.T) {
	t.Parallel()
	table.Run(t, kinds...)
}

var kinds = []table.Kind{
	{Name: "etcd", Title: "one etcd", Open: open,
		Start: func(t testing.TB) table.Servers {
			s := etcdtest.Start(t)
			return table.Servers{Addrs: []string{s.Addr()}, It: s}
		},
		Faults: []table.Fault{serverKilled, serverFrozen, serverEmptied}},
	{Name: "etcd-3", Title: "three etcds", Open: open,
		Start: func(t testing.TB) table.Servers {
			// A busy machine holds up more than the tests' 200 ms, after which another leader is elected: etcd's own default.
			c := etcdtest.StartCluster(t, "--heartbeat-interval", "100", "--election-timeout", "1000")
			return table.Servers{Addrs: c.Addrs(), It: c}
		},
		Faults: []table.Fault{memberKilled, memberFrozen, memberCut, majorityKilled}},
}

func open(addrs []string, link *table.Link, _ time.Duration) (store.Store, error) {
	endpoints, err := link.Addrs(addrs)
	if err != nil {
		return nil, err
	}
	return etcdstore.New(etcdstore.Config{Endpoints: endpoints}), nil
}

// The faults of etcd.
var (
	serverKilled = table.On("etcd is killed and restarted", func(s *table.Scene, server *etcdtest.Server) {
		server.Kill()
		s.Must(server.Restart())
	})
	serverFrozen = table.On("etcd is frozen past the lease, and goes on", func(s *table.Scene, server *etcdtest.Server) {
		server.Stop()
		s.Rest(table.Lease * 3 / 2)
		server.Cont()
	})
	serverEmptied = table.On("etcd restarts empty", func(s *table.Scene, server *etcdtest.Server) {
		s.Must(server.RestartEmpty())
	}).ThatForgets()

	memberKilled = table.On("the servers' leader is killed", func(s *table.Scene, c *etcdtest.Cluster) {
		old := c.Leader()
		old.Kill()
		s.Rest(table.Lease)
		s.Must(old.Restart())
	})
	memberFrozen = table.On("the servers' leader is frozen past the lease, and goes on", func(s *table.Scene, c *etcdtest.Cluster) {
		old := c.Leader()
		old.Stop()
		s.Rest(table.Lease * 3 / 2)
		old.Cont()
	})
	memberCut = table.On("the servers' leader is cut off from the others", func(s *table.Scene, c *etcdtest.Cluster) {
		old := c.Leader()
		c.Cut(old, true)
		s.Rest(table.Lease * 3 / 2)
		c.Cut(old, false)
	})
	majorityKilled = table.On("two of three members are killed and restarted", func(s *table.Scene, c *etcdtest.Cluster) {
		c.Servers[0].Kill()
		c.Servers[1].Kill()
		s.Rest(table.Lease * 3 / 2)
		s.Must(c.Servers[0].Launch())
		s.Must(c.Servers[1].Launch())
		s.Must(c.Servers[0].Wait())
		s.Must(c.Servers[1].Wait())
	})
)
