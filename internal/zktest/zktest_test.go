//go:build unix

package zktest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/rivals"
	"github.com/go-singleton/singleton/internal/zktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestAnEnsembleLosesItsLeaderAndAMember(t *testing.T) {
	begin := time.Now()
	e := zktest.StartEnsemble(t)
	t.Logf("ready after %v", time.Since(begin))
	old := e.Leader()
	begin = time.Now()
	e.Cut(old, true)
	rivals.Until(t, "another leads", func() bool { return old.Mode() == "" && e.Leader() != old })
	t.Logf("another leads %v after the leader was cut off", time.Since(begin))
	e.Cut(old, false)
	rivals.Until(t, "the old leader follows", func() bool { return old.Mode() == "follower" })
	t.Logf("the old one follows %v after that", time.Since(begin))
	next := e.Leader()
	begin = time.Now()
	next.Kill()
	rivals.Until(t, "another leads", func() bool { return e.Leader() != next })
	t.Logf("another leads %v after the leader was killed", time.Since(begin))
	if err := next.Restart(); err != nil {
		t.Fatal(err)
	}
	if mode := next.Mode(); mode != "follower" {
		t.Errorf("the restarted member is a %s", mode)
	}
	next.Stop()
	if mode := next.Mode(); mode != "" {
		t.Errorf("a frozen server answers that it is a %s", mode)
	}
	next.Cont()
	if restarted, err := e.Heal(); err != nil {
		t.Error(err)
	} else if restarted {
		t.Log("ZooKeeper wrote nothing any more")
	}
}
