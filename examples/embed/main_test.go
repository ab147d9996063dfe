//go:build unix

package main

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
)

// TestServiceLeadsAndStops runs the whole service until it leads, and stops it as an orchestrator does.
func TestServiceLeadsAndStops(t *testing.T) {
	server := redistest.Start(t)
	t.Setenv("REDIS_ADDR", server.Addr())
	t.Setenv("LISTEN", "127.0.0.1:0")
	done := make(chan struct{})
	go func() {
		main()
		close(done)
	}()
	client := server.Client()
	held := func() bool { return client.Exists(t.Context(), "singleton:{billing}:lease").Val() == 1 }
	for patience := time.After(time.Minute); !held(); {
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
	if held() {
		t.Error("it has not released the lease")
	}
}
