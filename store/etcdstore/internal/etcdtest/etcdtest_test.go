//go:build unix

package etcdtest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// until waits for what comes by itself.
func until(t *testing.T, come func() bool) {
	t.Helper()
	for !come() {
		select {
		case <-time.After(20 * time.Millisecond):
		case <-t.Context().Done():
			t.Fatal("test ended")
		}
	}
}

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
	until(t, func() bool { return !old.Serves() && c.Leader() != old })
	t.Logf("another leads %v after the leader was cut off", time.Since(begin))
	c.Cut(old, false)
	until(t, func() bool { return old.Serves() && !old.Leads() })
	t.Logf("the old one follows %v after that", time.Since(begin))
	next := c.Leader()
	begin = time.Now()
	next.Kill()
	until(t, func() bool { return c.Leader() != next })
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
