package zkstore

import (
	"context"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/store"
)

// How the hub tries again.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// hub shares one connection among all watchers of a store, beside that of the calls. Its goroutine runs while there is a
// watcher. A connection that breaks is replaced, with a ZooKeeper session of its own.
type hub struct {
	store   *Store
	ctx     context.Context // ends with the store
	cancel  context.CancelFunc
	changed chan struct{} // there is something to do
	running sync.WaitGroup

	mu      sync.Mutex
	points  map[string]*point // by path
	alive   bool              // the goroutine runs
	stopped bool
}

// point is a znode that is watched.
type point struct {
	topic    store.Topic
	watchers []*watcher
	stands   bool           // the servers watch it, on the present connection
	fired    []zk.EventType // what they have said since the last look
	zxid     int64          // of the inbox: the last that was put there
}

type watcher struct{ hint func() }

func newHub(s *Store) *hub {
	h := &hub{store: s, changed: make(chan struct{}, 1), points: map[string]*point{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Watch implements store.Leases.
func (s *Store) Watch(ctx context.Context, name string, t store.Topic, hint func()) error {
	if err := store.CheckWatch(name, t); err != nil {
		return err
	}
	if s.problem != nil {
		return s.problem
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w, path := &watcher{hint: hint}, s.watchPath(name, t)
	stands, err := s.hub.add(path, t, w)
	if err != nil {
		return err
	}
	if stands {
		hint()
	}
	context.AfterFunc(ctx, func() { s.hub.remove(path, w) })
	return nil
}

// add tells whether the watch stands already.
func (h *hub) add(path string, t store.Topic, w *watcher) (stands bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false, errClosed
	}
	p := h.points[path]
	if p == nil {
		p = &point{topic: t}
		h.points[path] = p
		h.wake()
	}
	p.watchers = append(p.watchers, w)
	if !h.alive {
		h.alive = true
		h.running.Go(h.run)
	}
	return p.stands, nil
}

func (h *hub) remove(path string, w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.points[path]
	if p == nil {
		return
	}
	p.watchers = slices.DeleteFunc(p.watchers, func(other *watcher) bool { return other == w })
	if len(p.watchers) == 0 {
		delete(h.points, path)
		h.wake()
	}
}

func (h *hub) wake() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

// stop ends the goroutine and waits for it.
func (h *hub) stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.cancel()
	h.running.Wait()
}

// run keeps a connection that watches what is wanted, until nothing is.
func (h *hub) run() {
	backoff := minBackoff
	for {
		if h.serve() {
			backoff = minBackoff
		}
		if h.finished() {
			return
		}
		select {
		case <-h.ctx.Done():
		case <-time.After(backoff/2 + rand.N(backoff)):
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// finished ends the hub's goroutine when nobody watches: Watch starts another.
func (h *hub) finished() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, p := range h.points {
		p.stands = false
	}
	if len(h.points) == 0 || h.ctx.Err() != nil {
		h.alive = false
	}
	return !h.alive
}

// serve makes a connection and keeps it until it breaks or is not needed; it tells whether it has been of use.
func (h *hub) serve() (served bool) {
	l, err := newLink(h.store.cfg, true, h.heard)
	if err != nil {
		h.report(err)
		return false
	}
	defer l.close(false)
	for h.ctx.Err() == nil {
		paths := h.wanted()
		if paths == nil {
			return served
		}
		for _, path := range paths {
			if err := h.look(l, path); err != nil {
				h.report(err)
				return served
			}
			served = true
		}
		select {
		case <-h.changed:
		case <-l.ctx.Done(): // it has broken
			return served
		case <-h.ctx.Done():
		}
	}
	return served
}

// wanted returns the paths to look at, nil when nothing is watched any more.
func (h *hub) wanted() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.points) == 0 {
		return nil
	}
	paths := []string{}
	for _, path := range slices.Sorted(maps.Keys(h.points)) {
		if p := h.points[path]; !p.stands || len(p.fired) > 0 {
			paths = append(paths, path)
		}
	}
	return paths
}

// heard notes what a watch says. The client calls it.
func (h *hub) heard(e zk.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.points[e.Path]; p != nil && e.Type != zk.EventNotWatching {
		p.fired = append(p.fired, e.Type)
		h.wake()
	}
}

// look watches path (again) and calls the hints when there may be news.
func (h *hub) look(l *link, path string) error {
	h.mu.Lock()
	p := h.points[path]
	var fired []zk.EventType
	stood := false
	if p != nil {
		fired, p.fired, stood = p.fired, nil, p.stands
	}
	h.mu.Unlock()
	if p == nil {
		return nil
	}
	stat, err := call(h.ctx, l, func(c *zk.Conn) (*zk.Stat, error) {
		there, stat, _, err := c.ExistsW(path)
		if !there {
			stat = nil
		}
		return stat, err
	})
	if err != nil {
		return err
	}
	h.mu.Lock()
	news := !stood
	if p.topic == store.LeaseFree {
		news = news || stat == nil || slices.Contains(fired, zk.EventNodeDeleted)
	} else if stat != nil {
		news = news || stat.Version > 0 && stat.Mzxid != p.zxid
		p.zxid = stat.Mzxid
	}
	p.stands = true
	watchers := slices.Clone(p.watchers)
	h.mu.Unlock()
	for _, w := range watchers {
		if news {
			w.hint()
		}
	}
	return nil
}

// report logs how a connection ended. That is no more than a detail: hints are a convenience, and come again.
func (h *hub) report(err error) {
	if h.ctx.Err() == nil {
		h.store.log.Debug("the connection that hints come over has broken; it is replaced", slog.Any("error", err))
	}
}
