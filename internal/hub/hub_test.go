package hub_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/store"
)

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
