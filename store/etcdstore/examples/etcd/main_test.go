//go:build unix

package main

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

// TestCopyLeadsAndStops runs a copy until it leads, and stops it as an orchestrator does.
func TestCopyLeadsAndStops(t *testing.T) {
	server := etcdtest.Start(t)
	t.Setenv("ETCD", server.Addr())
	done := make(chan struct{})
	go func() {
		main()
		close(done)
	}()
	st := etcdstore.New(etcdstore.Config{Endpoints: []string{server.Addr()}, Prefix: "/billing"})
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
	if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	<-done
	if err := leader(); !errors.Is(err, store.ErrNoLeader) {
		t.Errorf("it has not released the lease: %v", err)
	}
}
