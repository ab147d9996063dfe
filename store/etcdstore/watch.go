package etcdstore

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"

	"github.com/go-singleton/singleton/store"
)

// How the hub tries again.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// hub shares one stream of watches among all watchers of a store, on a connection beside that of the calls. Its
// goroutine runs while there is a watcher. A stream that breaks is replaced by one to the next endpoint.
type hub struct {
	store   *Store
	ctx     context.Context // ends with the store
	cancel  context.CancelFunc
	changed chan struct{} // there is something to do
	running sync.WaitGroup

	mu      sync.Mutex
	points  map[place]*point
	watches map[int64]place // what is watched on the present stream, or has been asked for
	asked   []int64         // the watches that have not been answered, in order
	last    int64           // ID of a watch
	alive   bool            // the goroutine runs
	stopped bool
}

// place is what is watched.
type place struct {
	group string
	topic store.Topic
}

// point is a place that somebody watches.
type point struct {
	watchers []*watcher
	id       int64 // of the watch on the present stream; 0 when none has been asked for
	stands   bool
	pause    time.Time // no watch is asked for before; zero for at once
}

type watcher struct{ hint func() }

func newHub(s *Store) *hub {
	h := &hub{store: s, changed: make(chan struct{}, 1), points: map[place]*point{}, watches: map[int64]place{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Watch implements store.Leases.
func (s *Store) Watch(ctx context.Context, group string, t store.Topic, hint func()) error {
	if err := store.CheckWatch(group, t); err != nil {
		return err
	}
	if s.problem != nil {
		return s.problem
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	w, at := &watcher{hint: hint}, place{group, t}
	stands, err := s.hub.add(at, w)
	if err != nil {
		return err
	}
	if stands {
		hint()
	}
	context.AfterFunc(ctx, func() { s.hub.remove(at, w) })
	return nil
}

// add tells whether the watch stands already.
func (h *hub) add(at place, w *watcher) (stands bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false, errClosed
	}
	p := h.points[at]
	if p == nil {
		p = &point{}
		h.points[at] = p
		h.wake()
	}
	p.watchers = append(p.watchers, w)
	if !h.alive {
		h.alive = true
		h.running.Go(h.run)
	}
	return p.stands, nil
}

func (h *hub) remove(at place, w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.points[at]
	if p == nil {
		return
	}
	p.watchers = slices.DeleteFunc(p.watchers, func(other *watcher) bool { return other == w })
	if len(p.watchers) == 0 {
		delete(h.points, at)
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

// run keeps a stream that watches what is wanted, until nothing is.
func (h *hub) run() {
	wait := minBackoff
	n := len(h.store.cfg.Endpoints)
	for next := rand.IntN(n); ; next = (next + 1) % n {
		if h.serve(h.store.cfg.Endpoints[next]) {
			wait = minBackoff
		}
		if h.finished() {
			return
		}
		select {
		case <-h.ctx.Done():
		case <-time.After(wait/2 + rand.N(wait)):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// finished forgets what the last stream has watched, and ends the hub's goroutine when nobody watches: Watch starts
// another.
func (h *hub) finished() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.watches)
	h.asked = nil
	for _, p := range h.points {
		p.id, p.stands = 0, false
	}
	if len(h.points) == 0 || h.ctx.Err() != nil {
		h.alive = false
	}
	return !h.alive
}

// serve opens a stream to an endpoint and keeps it until it breaks or is not needed; it tells whether it has been of use.
func (h *hub) serve(endpoint string) (served bool) {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	client, err := dial(ctx, h.store.cfg, endpoint)
	if err != nil {
		h.report(endpoint, err)
		return false
	}
	defer func() { _ = client.Close() }()
	stream, err := etcdserverpb.NewWatchClient(client.ActiveConnection()).Watch(clientv3.WithRequireLeader(ctx))
	if err != nil {
		h.report(endpoint, err)
		return false
	}
	broken := make(chan error, 1)
	h.running.Go(func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				broken <- err
				return
			}
			served = true
			h.heard(answer)
		}
	})
	for {
		requests, pause, wanted := h.wanted()
		for _, r := range requests {
			if stream.Send(r) != nil {
				break // Recv tells why
			}
		}
		if !wanted {
			cancel()
			<-broken
			return served
		}
		timer := time.NewTimer(pause)
		select {
		case <-h.changed:
		case <-timer.C:
		case err := <-broken:
			timer.Stop()
			h.report(endpoint, err)
			return served
		}
		timer.Stop()
	}
}

// wanted returns what to ask for on the present stream, when to look again, and whether anything is watched at all.
func (h *hub) wanted() (requests []*etcdserverpb.WatchRequest, pause time.Duration, any bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	pause = time.Hour
	now := time.Now()
	for _, id := range slices.Sorted(maps.Keys(h.watches)) {
		if p := h.points[h.watches[id]]; p == nil || p.id != id {
			delete(h.watches, id)
			requests = append(requests, &etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CancelRequest{
				CancelRequest: &etcdserverpb.WatchCancelRequest{WatchId: id}}})
		}
	}
	for at, p := range h.points {
		switch {
		case p.id != 0:
		case p.pause.After(now):
			pause = min(pause, p.pause.Sub(now))
		default:
			h.last++
			p.id = h.last
			h.watches[p.id] = at
			h.asked = append(h.asked, p.id)
			requests = append(requests, h.store.watchRequest(p.id, at))
		}
	}
	return requests, pause, len(h.points) > 0
}

// watchRequest asks to be told from now on.
func (s *Store) watchRequest(id int64, at place) *etcdserverpb.WatchRequest {
	key, end := s.watchRange(at.group, at.topic)
	r := &etcdserverpb.WatchCreateRequest{Key: []byte(key), WatchId: id}
	if at.topic == store.LeaseFree {
		r.Filters = []etcdserverpb.WatchCreateRequest_FilterType{etcdserverpb.WatchCreateRequest_NOPUT}
	} else {
		r.RangeEnd = []byte(end)
		r.Filters = []etcdserverpb.WatchCreateRequest_FilterType{etcdserverpb.WatchCreateRequest_NODELETE}
	}
	return &etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: r}}
}

// heard calls the hints that an answer is about. A watch that the servers have ended, because it has fallen behind what
// they have compacted or because it is not allowed, is asked for again, from then on.
func (h *hub) heard(answer *etcdserverpb.WatchResponse) {
	h.mu.Lock()
	id := answer.WatchId
	if answer.Created && len(h.asked) > 0 { // a watch that is refused is told without its ID
		id, h.asked = h.asked[0], h.asked[1:]
	}
	at, ours := h.watches[id]
	p := h.points[at]
	if !ours || p == nil || p.id != id {
		h.mu.Unlock()
		return
	}
	var watchers []*watcher
	var refused error
	if answer.Canceled {
		delete(h.watches, id)
		p.id, p.stands = 0, false
		if answer.CompactRevision == 0 {
			refused = errors.New(answer.CancelReason)
			p.pause = time.Now().Add(maxBackoff)
		}
		h.wake()
	} else if answer.Created || len(answer.Events) > 0 {
		p.stands, p.pause = true, time.Time{}
		watchers = slices.Clone(p.watchers)
	}
	h.mu.Unlock()
	if refused != nil {
		h.store.log.Debug("the etcd servers have ended a watch; it is asked for again", slog.String("group", at.group), slog.Any("error", refused))
	}
	for _, w := range watchers {
		w.hint()
	}
}

// report logs how a stream ended. That is no more than a detail: hints are a convenience, and come again.
func (h *hub) report(endpoint string, err error) {
	if h.ctx.Err() == nil {
		h.store.log.Debug("the stream that hints come over has broken; it is replaced", slog.String("endpoint", endpoint), slog.Any("error", err))
	}
}
