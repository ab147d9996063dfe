//go:build unix

package main

import (
	"context"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/rivals"
	"github.com/go-singleton/singleton/internal/soak"
	"github.com/go-singleton/singleton/store/etcdstore"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

var (
	length = flag.Duration("for", 15*time.Second, "length of each scenario")
	each   = flag.Bool("each", false, "each kind of fault, not only some in turn")
)

// TestSoakOnEtcd runs three replicas on three servers.
func TestSoakOnEtcd(t *testing.T) {
	t.Parallel()
	binary := program(t)
	if *each {
		soak.Run(t, binary, *length, startCluster)
	}
	t.Run("in turn", func(t *testing.T) {
		t.Parallel()
		soak.RunInTurn(t, binary, *length, startCluster)
	})
}

func startCluster(t testing.TB) soak.Servers {
	// A busy machine holds up more than the 200 ms after which the tests' servers elect another leader: etcd's own default.
	all := etcdtest.StartCluster(t, "--heartbeat-interval", "100", "--election-timeout", "1000")
	st := etcdstore.New(etcdstore.Config{Endpoints: all.Addrs()})
	t.Cleanup(func() { _ = st.Close() })
	return soak.Servers{
		URL: "etcd://" + strings.Join(all.Addrs(), ","), Store: st,
		Leader: func(context.Context) soak.Server { return member{all.Leader(), all} }, Away: 5 * time.Second,
		Requests: func() (n float64) {
			for _, s := range all.Servers {
				n += s.Metric("grpc_server_msg_received_total")
			}
			return n
		},
	}
}

// member is a server that is replaced when it has lost its data.
type member struct {
	*etcdtest.Server
	cluster *etcdtest.Cluster
}

// RestartEmpty implements soak.Server.
func (m member) RestartEmpty() error {
	ctx, cancel := context.WithTimeout(context.Background(), rivals.Patience)
	defer cancel()
	return m.cluster.Replace(ctx, m.Server)
}

// BenchmarkCost measures etcd as the benchmark of package soak does the other stores.
func BenchmarkCost(b *testing.B) { soak.Cost(b, program(b), startCluster) }
