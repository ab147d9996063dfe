package hub_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/store"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ether is what a hub of a test listens to. It is used in a synctest bubble.
type ether struct {
	*hub.Hub
	breaks chan bool   // breaks the connection
	deaf   atomic.Bool // its connections are of no use and break at once
	open   atomic.Int32

	mu    sync.Mutex
	asked []string    // what was subscribed to (+) and given up (-), a connection (!) first
	begun []time.Time // when connections were made
}

func listen() *ether {
	e := &ether{breaks: make(chan bool)}
	e.Hub = hub.New(e.serve)
	return e
}

func (e *ether) serve(ctx context.Context) bool {
	e.ask("!")
	e.open.Add(1)
	defer e.open.Add(-1)
	if e.deaf.Load() {
		return false
	}
	have := map[string]*hub.Point{}
	for {
		came, went := e.Difference(have)
		for _, p := range went {
			e.ask("-" + p.Name)
		}
		for _, p := range came {
			e.ask("+" + p.Name)
			e.Stands(p.Name)
		}
		if len(have) == 0 {
			return true
		}
		select {
		case <-e.Changed():
		case <-e.breaks:
			return true
		case <-ctx.Done():
			return true
		}
	}
}

func (e *ether) ask(what string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.asked = append(e.asked, what)
	if what == "!" {
		e.begun = append(e.begun, time.Now())
	}
}

// expect compares what was asked since the last call.
func (e *ether) expect(t *testing.T, want string) {
	t.Helper()
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	if got := strings.Join(e.asked, " "); got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
	e.asked = nil
}

// watcher counts hints.
type watcher struct {
	hints atomic.Int32
	leave context.CancelFunc
}

func (e *ether) watch(t *testing.T, name string) *watcher {
	t.Helper()
	w := &watcher{}
	ctx, cancel := context.WithCancel(t.Context())
	w.leave = cancel
	if !e.Watch(ctx, name, "group", store.LeaseFree, func() { w.hints.Add(1) }) {
		t.Fatal("the hub is closed")
	}
	synctest.Wait()
	return w
}

// expect compares the hints since the last call.
func (w *watcher) expect(t *testing.T, want int32) {
	t.Helper()
	synctest.Wait()
	if got := w.hints.Swap(0); got != want {
		t.Errorf("%d hints, want %d", got, want)
	}
}

// bubble runs a test of a hub that is closed in the end.
func bubble(t *testing.T, test func(*testing.T, *ether)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := listen()
		defer e.Close()
		test(t, e)
	})
}

// connections returns when they were made.
func (e *ether) connections() []time.Time {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.begun)
}
