package hub_test

import (
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/store"
)

func TestHintsComeToAllWhoWatchAPointWhileTheyDo(t *testing.T) {
	bubble(t, func(t *testing.T, e *ether) {
		one, two, other := e.watch(t, "a"), e.watch(t, "a"), e.watch(t, "b")
		for _, w := range []*watcher{one, two, other} {
			w.expect(t, 1) // it stands
		}
		e.News("a", "")
		e.News("nobody's", "")
		one.expect(t, 1)
		two.expect(t, 1)
		other.expect(t, 0)
		one.leave()
		synctest.Wait()
		e.News("a", "")
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

// listen returns what a watcher is told, in order.
func (e *ether) listen(t *testing.T, name string) func() string {
	var mu sync.Mutex
	var told []string
	e.Listen(t.Context(), name, "group", store.InboxFilled, func(n hub.Notice) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, [...]string{hub.Stands: "stands", hub.News: "news " + n.Event, hub.Falls: "falls"}[n.Kind])
	})
	return func() string {
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		defer func() { told = nil }()
		return strings.Join(told, ", ")
	}
}

func TestNoticesComeInOrderAndSubscriptionsStandAndFallInTurn(t *testing.T) {
	bubble(t, func(t *testing.T, e *ether) {
		first := e.listen(t, "a")
		expect := func(told func() string, want string) {
			t.Helper()
			if got := told(); got != want {
				t.Errorf("told %q, want %q", got, want)
			}
		}
		expect(first, "stands")
		e.News("a", "one")
		second := e.listen(t, "a")
		e.News("a", "two")
		expect(first, "news one, news two")
		expect(second, "stands, news two")
		e.Stands("a") // said again: something may have been missed
		expect(second, "falls, stands")
		e.breaks <- true
		synctest.Wait()
		late := e.listen(t, "a")
		expect(late, "")
		time.Sleep(time.Second)
		expect(first, "falls, stands, falls, stands")
		expect(second, "falls, stands")
		expect(late, "stands")
	})
}

func TestWhatIsSaidWhileAWatcherListensIsToldAfterwards(t *testing.T) {
	bubble(t, func(t *testing.T, e *ether) {
		hold, said := make(chan bool), make(chan string, 10)
		e.Listen(t.Context(), "a", "group", store.LeaseFree, func(n hub.Notice) {
			if n.Kind == hub.News {
				said <- n.Event
				<-hold
			}
		})
		synctest.Wait()
		go e.News("a", "one")
		synctest.Wait()
		e.News("a", "two") // does not wait, nor talk over the other
		e.News("a", "three")
		if n := len(said); n != 1 {
			t.Errorf("%d notices at once", n)
		}
		close(hold)
		synctest.Wait()
		for _, want := range []string{"one", "two", "three"} {
			if got := <-said; got != want {
				t.Errorf("told %q, want %q", got, want)
			}
		}
	})
}
