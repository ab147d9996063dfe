//go:build unix

package main

import (
	"context"
	"flag"
	"strings"
	"testing"
	"time"

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

func startCluster(t *testing.T) soak.Servers {
	all := etcdtest.StartCluster(t)
	st := etcdstore.New(etcdstore.Config{Endpoints: all.Addrs()})
	t.Cleanup(func() { _ = st.Close() })
	return soak.Servers{
		URL: "etcd://" + strings.Join(all.Addrs(), ","), Store: st,
		Leader: func(context.Context) soak.Server { return all.Leader() }, Away: 4 * time.Second,
	}
}
