//go:build linux

package main

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redlock"
)

// TestCopyLeadsWithoutOneServerAndStops runs a copy until it leads, freezes one of the servers, and stops the copy as an
// orchestrator does.
func TestCopyLeadsWithoutOneServerAndStops(t *testing.T) {
	nodes := redistest.StartNodes(t, 3, redistest.AppendOnly(), redistest.Args("--requirepass", "secret"))
	t.Setenv("REDIS_NODES", strings.Join(nodes.Addrs(), ","))
	t.Setenv("REDIS_PASSWORD", "secret")
	done := make(chan struct{})
	go func() {
		main()
		close(done)
	}()
	var clients []*redis.Client
	for _, n := range nodes.All {
		clients = append(clients, n.Client(func(o *redis.Options) { o.Password = "secret" }))
	}
	st, err := redlock.New(clients, redlock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	leader := func() error {
		_, err := st.Leader(t.Context(), "billing")
		return err
	}
	for patience := time.After(time.Minute); leader() != nil; {
		select {
		case <-done:
			t.Fatal("it has ended")
		case <-patience:
			t.Fatal("it does not lead")
		case <-time.After(10 * time.Millisecond):
		}
	}
	nodes.All[0].Stop()
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-done
	if err := leader(); !errors.Is(err, store.ErrNoLeader) {
		t.Errorf("it has not released the lease: %v", err)
	}
}
