//go:build unix

package etcdtest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/rivals"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAClusterLosesItsLeaderAndAMember(t *testing.T) {
	begin := time.Now()
	c := etcdtest.StartCluster(t)
	t.Logf("ready after %v", time.Since(begin))
	begin = time.Now()
	lost := c.Follower()
	if err := c.Replace(t.Context(), lost); err != nil {
		t.Fatal(err)
	}
	if !lost.Serves() {
		t.Error("the new member does not serve")
	}
	t.Logf("a member without data serves after %v", time.Since(begin))
	old := c.Leader()
	begin = time.Now()
	c.Cut(old, true)
	rivals.Until(t, "another leads", func() bool { return !old.Serves() && c.Leader() != old })
	t.Logf("another leads %v after the leader was cut off", time.Since(begin))
	c.Cut(old, false)
	rivals.Until(t, "the old leader follows", func() bool { return old.Serves() && !old.Leads() })
	t.Logf("the old one follows %v after that", time.Since(begin))
	next := c.Leader()
	begin = time.Now()
	next.Kill()
	rivals.Until(t, "another leads", func() bool { return c.Leader() != next })
	t.Logf("another leads %v after the leader was killed", time.Since(begin))
	if err := next.Restart(); err != nil {
		t.Fatal(err)
	}
	if next.Leads() {
		t.Error("the restarted member leads")
	}
	next.Stop()
	if next.Serves() {
		t.Error("a frozen server answers")
	}
	next.Cont()
}
