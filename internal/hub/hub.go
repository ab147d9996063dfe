package hub

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-singleton/singleton/store"
)

// How long until the connection is made again.
const (
	minPause = 50 * time.Millisecond
	maxPause = 2 * time.Second
)

// Hub is what is watched in one store. Its methods are safe for concurrent use, but Difference, which the function that
// New was given calls.
type Hub struct {
	serve   func(context.Context) (heard bool)
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	changed chan struct{}
	running sync.WaitGroup

	mu     sync.Mutex
	points map[string]*Point // by name
	moved  map[string]bool   // names that have come or gone since the last Difference
	alive  bool              // the goroutine runs
	closed bool
}

// Point is something that is watched: the channel, znode or key for a topic of a group. One that nobody watches any more
// never comes again: who watches it then watches another.
type Point struct {
	Name  string // in the store
	Group string
	Topic store.Topic

	watchers []*watcher // the hub's, as is the next
	stands   bool       // over the present connection
}

// New returns a hub without a watcher. serve makes a connection, keeps it subscribed to the points, and tells the hub what
// it hears; it returns when the connection has broken, when nothing is watched or when its context has ended, and says
// whether the connection was of any use: then the next one is made soon.
func New(serve func(context.Context) (heard bool)) *Hub {
	h := &Hub{serve: serve, changed: make(chan struct{}, 1), points: map[string]*Point{}, moved: map[string]bool{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Watch has hint called for the point of that name until ctx ends, as store.Leases wants: when the subscription stands,
// here if it does already, and for what is heard. It answers false when the hub has been closed.
func (h *Hub) Watch(ctx context.Context, name, group string, t store.Topic, hint func()) bool {
	return h.Listen(ctx, name, group, t, func(n Notice) {
		if n.Kind != Falls {
			hint()
		}
	})
}

// Listen is Watch with all that there is to say: listen gets one notice at a time, in order. It must not block.
func (h *Hub) Listen(ctx context.Context, name, group string, t store.Topic, listen func(Notice)) bool {
	w := &watcher{listen: listen}
	if !h.add(Point{Name: name, Group: group, Topic: t}, w) {
		return false
	}
	h.tell(w)
	context.AfterFunc(ctx, func() { h.remove(name, w) })
	return true
}

func (h *Hub) add(wanted Point, w *watcher) (open bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	p := h.points[wanted.Name]
	if p == nil {
		p = &wanted
		h.points[p.Name] = p
		h.move(p.Name)
	}
	p.watchers = append(p.watchers, w)
	if p.stands {
		w.due = append(w.due, Notice{Kind: Stands})
	}
	if !h.alive {
		h.alive = true
		h.running.Go(h.run)
	}
	return true
}

func (h *Hub) remove(name string, w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.points[name]
	if p == nil {
		return
	}
	w.due, w.gone = nil, true
	p.watchers = slices.DeleteFunc(p.watchers, func(other *watcher) bool { return other == w })
	if len(p.watchers) == 0 {
		delete(h.points, name)
		h.move(name)
	}
}

func (h *Hub) move(name string) {
	h.moved[name] = true
	h.Wake()
}

// Changed gets a value when points have come or gone, and after Wake.
func (h *Hub) Changed() <-chan struct{} { return h.changed }

// Wake has whoever waits for Changed look again.
func (h *Hub) Wake() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// Difference brings have up to date, which begins empty with each connection and holds by name what was subscribed to over
// it. It returns what came and what went, by name. A point that has gone and come again meanwhile has come: its new
// watchers want to hear that it stands.
func (h *Hub) Difference(have map[string]*Point) (came, went []*Point) {
	h.mu.Lock()
	defer h.mu.Unlock()
	names := slices.Sorted(maps.Keys(h.moved))
	if len(have) == 0 {
		names = slices.Sorted(maps.Keys(h.points))
	}
	clear(h.moved)
	for _, name := range names {
		now, before := h.points[name], have[name]
		switch {
		case now == before:
		case now != nil:
			came = append(came, now)
			have[name] = now
		default:
			went = append(went, before)
			delete(have, name)
		}
	}
	return came, went
}

// First returns the point whose name comes first, nil when nothing is watched.
func (h *Hub) First() *Point {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.points)) {
		return h.points[name]
	}
	return nil
}

// Stands tells those who watch a point that its subscription stands. Where it stood already, it has fallen meanwhile.
func (h *Hub) Stands(name string) {
	h.mu.Lock()
	p := h.points[name]
	var told []*watcher
	if p != nil {
		if p.stands {
			p.notify(Notice{Kind: Falls})
		}
		p.stands = true
		told = p.notify(Notice{Kind: Stands})
	}
	h.mu.Unlock()
	h.tell(told...)
}

// News tells those who watch a point what was heard of it; "" is that there is something.
func (h *Hub) News(name, event string) {
	h.mu.Lock()
	var told []*watcher
	if p := h.points[name]; p != nil {
		told = p.notify(Notice{Kind: News, Event: event})
	}
	h.mu.Unlock()
	h.tell(told...)
}

// Close ends the goroutine and waits for it: nothing hints any more.
func (h *Hub) Close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.cancel()
	h.running.Wait()
}

// run keeps a connection until nothing is watched.
func (h *Hub) run() {
	pause := minPause
	for {
		heard := h.serve(h.ctx)
		h.fell()
		if h.finished() {
			return
		}
		if heard {
			pause = minPause
		}
		select {
		case <-h.ctx.Done():
		case <-time.After(pause/2 + rand.N(pause)):
		}
		pause = min(2*pause, maxPause)
	}
}

// fell tells those who watch what stood that it does not any more.
func (h *Hub) fell() {
	h.mu.Lock()
	var told []*watcher
	for _, name := range slices.Sorted(maps.Keys(h.points)) {
		if p := h.points[name]; p.stands {
			p.stands = false
			told = append(told, p.notify(Notice{Kind: Falls})...)
		}
	}
	h.mu.Unlock()
	h.tell(told...)
}

// finished ends the goroutine when nobody watches: Watch starts another.
func (h *Hub) finished() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.points) == 0 || h.ctx.Err() != nil {
		h.alive = false
	}
	return !h.alive
}
