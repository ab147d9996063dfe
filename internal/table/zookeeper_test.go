//go:build unix

package table

import (
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/zktest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/zkstore"
)

func zookeeperKinds() []Kind {
	open := func(addrs []string, link *Link, lease time.Duration) (store.Store, error) {
		servers, err := link.Addrs(addrs)
		if err != nil {
			return nil, err
		}
		return zkstore.New(zkstore.Config{Servers: servers, SessionTimeout: lease * 3 / 2}), nil
	}
	return []Kind{
		{Name: "zookeeper", Title: "one ZooKeeper", Open: open,
			Start: func(t testing.TB) Servers {
				s := zktest.Start(t)
				return Servers{Addrs: []string{s.Addr()}, It: s}
			},
			Faults: []Fault{serverKilled, serverFrozen, serverEmptied}},
		{Name: "zookeeper-3", Title: "three ZooKeepers", Open: open,
			Start: func(t testing.TB) Servers {
				e := zktest.StartEnsemble(t)
				return Servers{Addrs: e.Addrs(), It: e}
			},
			Faults: []Fault{memberKilled, memberFrozen, memberCut, majorityKilled}},
	}
}

// The faults of ZooKeeper.
var (
	serverKilled = On("ZooKeeper is killed and restarted", func(s *Scene, server *zktest.Server) {
		server.Kill()
		s.Must(server.Restart())
	})
	serverFrozen = On("ZooKeeper is frozen past the lease, and goes on", func(s *Scene, server *zktest.Server) {
		server.Stop()
		s.Rest(Lease * 3 / 2)
		server.Cont()
	})
	serverEmptied = On("ZooKeeper restarts empty", func(s *Scene, server *zktest.Server) {
		s.Must(server.RestartEmpty())
	}).ThatForgets()

	memberKilled = On("the ensemble's leader is killed", func(s *Scene, e *zktest.Ensemble) {
		old := e.Leader()
		old.Kill()
		s.Rest(Lease)
		s.Must(old.Restart())
	})
	memberFrozen = On("the ensemble's leader is frozen past the lease, and goes on", func(s *Scene, e *zktest.Ensemble) {
		old := e.Leader()
		old.Stop()
		s.Rest(Lease * 3 / 2)
		old.Cont()
	})
	memberCut = On("the ensemble's leader is cut off from the others", func(s *Scene, e *zktest.Ensemble) {
		old := e.Leader()
		e.Cut(old, true)
		s.Rest(Lease * 3 / 2)
		e.Cut(old, false)
	})
	majorityKilled = On("two of three members are killed and restarted", func(s *Scene, e *zktest.Ensemble) {
		e.Servers[0].Kill()
		e.Servers[1].Kill()
		s.Rest(Lease * 3 / 2)
		s.Must(e.Servers[0].Launch())
		s.Must(e.Servers[1].Launch())
		s.Must(e.Servers[0].Wait())
		s.Must(e.Servers[1].Wait())
	})
)
