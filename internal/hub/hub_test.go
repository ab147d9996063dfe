package hub_test

import (
	"context"
	"fmt"
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

func TestB12ThereIsOneConnectionWhileThereIsAWatcher(t *testing.T) {
	bubble(t, func(t *testing.T, e *ether) {
		e.expect(t, "")
		a, again, b := e.watch(t, "a"), e.watch(t, "a"), e.watch(t, "b")
		e.expect(t, "! +a +b")
		a.leave()
		e.expect(t, "")
		again.leave()
		e.expect(t, "-a")
		b.leave()
		e.expect(t, "-b")
		time.Sleep(time.Hour)
		if n := e.open.Load(); n != 0 {
			t.Errorf("%d connections for nobody", n)
		}
		e.watch(t, "c")
		e.expect(t, "! +c")
	})
}

func TestAPointKnowsWhatItIsOf(t *testing.T) {
	bubble(t, func(t *testing.T, e *ether) {
		e.Watch(t.Context(), "z", "h", store.InboxFilled, func() {})
		e.Watch(t.Context(), "n", "g", store.InboxFilled, func() {})
		if p := e.First(); p == nil || p.Name != "n" || p.Group != "g" || p.Topic != store.InboxFilled {
			t.Errorf("got %+v", p)
		}
	})
	if p := listen().First(); p != nil {
		t.Errorf("nothing is watched, got %+v", p)
	}
}

func TestHintsComeToAllWhoWatchAPointWhileTheyDo(t *testing.T) {
	bubble(t, func(t *testing.T, e *ether) {
		one, two, other := e.watch(t, "a"), e.watch(t, "a"), e.watch(t, "b")
		for _, w := range []*watcher{one, two, other} {
			w.expect(t, 1) // it stands
		}
		e.Hint("a")
		e.Hint("nobody's")
		one.expect(t, 1)
		two.expect(t, 1)
		other.expect(t, 0)
		one.leave()
		synctest.Wait()
		e.Hint("a")
		one.expect(t, 0)
		two.expect(t, 1)
	})
}

func TestAHintMayWatch(t *testing.T) {
	bubble(t, func(t *testing.T, e *ether) {
		var first sync.Once
		var second watcher
		e.Watch(t.Context(), "a", "group", store.LeaseFree, func() {
			first.Do(func() { e.Watch(t.Context(), "a", "group", store.LeaseFree, func() { second.hints.Add(1) }) })
		})
		second.expect(t, 1)
	})
}

func TestABrokenConnectionStandsAgainAndSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, e *ether) {
		a, b := e.watch(t, "a"), e.watch(t, "b")
		e.expect(t, "! +a +b")
		a.expect(t, 1)
		b.expect(t, 1)
		e.breaks <- true
		e.expect(t, "")
		late := e.watch(t, "a") // nothing stands
		late.expect(t, 0)
		time.Sleep(time.Second)
		e.expect(t, "! +a +b")
		for _, w := range []*watcher{a, b, late} {
			w.expect(t, 1)
		}
	})
}

func TestWhatGoesAndComesAgainBetweenTwoLooksIsSubscribedToAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := hub.New(func(ctx context.Context) bool { <-ctx.Done(); return false })
		defer h.Close()
		have := map[string]*hub.Point{}
		difference := func(want string) {
			t.Helper()
			synctest.Wait()
			came, went := h.Difference(have)
			var got []string
			for _, p := range came {
				got = append(got, "+"+p.Name)
			}
			for _, p := range went {
				got = append(got, "-"+p.Name)
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("the difference is %q, want %q", s, want)
			}
		}
		leave := func(name string) context.CancelFunc {
			ctx, cancel := context.WithCancel(t.Context())
			h.Watch(ctx, name, "group", store.LeaseFree, func() {})
			return cancel
		}
		keep, a, b := leave("keep"), leave("a"), leave("b")
		defer keep()
		difference("+a +b +keep")
		difference("")
		a()
		b()
		synctest.Wait()
		a = leave("a")
		difference("+a -b")
		a()
		synctest.Wait()
		c := leave("c")
		c()
		difference("-a") // c has come and gone
		have = map[string]*hub.Point{}
		difference("+keep") // another connection
	})
}

func TestAConnectionIsTriedAgainAtGrowingIntervals(t *testing.T) {
	bubble(t, func(t *testing.T, e *ether) {
		e.deaf.Store(true)
		e.watch(t, "a")
		time.Sleep(time.Minute)
		low := 25 * time.Millisecond
		begun := e.connections()
		for i, at := range begun[1:] {
			if pause := at.Sub(begun[i]); pause < low || pause >= 3*low {
				t.Errorf("pause %d took %v, want between %v and %v", i, pause, low, 3*low)
			}
			low = min(2*low, time.Second)
		}
		if n := len(begun); n < 20 {
			t.Errorf("%d attempts in a minute", n)
		}
		e.deaf.Store(false)
		time.Sleep(3 * time.Second)
		e.breaks <- true // it was of use: the next one comes soon
		broken := time.Now()
		time.Sleep(time.Second)
		begun = e.connections()
		if next := begun[len(begun)-1].Sub(broken); next < 0 || next >= 75*time.Millisecond {
			t.Errorf("the next connection was made after %v", next)
		}
	})
}

// connections returns when they were made.
func (e *ether) connections() []time.Time {
	synctest.Wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.begun)
}

func TestWakeHasTheConnectionLookAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var looks atomic.Int32
		var h *hub.Hub
		h = hub.New(func(ctx context.Context) bool {
			for {
				select {
				case <-h.Changed():
					looks.Add(1)
				case <-ctx.Done():
					return true
				}
			}
		})
		defer h.Close()
		h.Watch(t.Context(), "a", "group", store.LeaseFree, func() {})
		synctest.Wait()
		looks.Store(0)
		h.Wake()
		h.Wake()
		synctest.Wait()
		if n := looks.Load(); n < 1 || n > 2 {
			t.Errorf("it looked %d times", n)
		}
	})
}

func TestAClosedHubTakesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, watchers := range []int{0, 3} {
			e := listen()
			var all []*watcher
			for i := range watchers {
				all = append(all, e.watch(t, fmt.Sprint(i)))
			}
			e.Close()
			if e.open.Load() != 0 {
				t.Error("a connection is left")
			}
			if e.Watch(t.Context(), "a", "group", store.LeaseFree, func() { t.Error("hint") }) {
				t.Error("a closed hub was watched")
			}
			for _, w := range all {
				w.expect(t, 1)
			}
		}
	})
}
