package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/store"
)

// The shared subscription.
const (
	silence    = 5 * time.Second // a PING each time; replaced when nothing has come since the last
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// hub shares one connection among all watchers of a store. Its goroutine runs while there is one.
type hub struct {
	store   *Store
	ctx     context.Context // ends with the store
	cancel  context.CancelFunc
	changed chan struct{} // something about channels has changed
	silence time.Duration
	running sync.WaitGroup

	mu       sync.Mutex
	channels map[string]*channel
	alive    bool // the goroutine runs
	stopped  bool
}

type channel struct {
	group    string
	stands   bool // the server has confirmed the subscription, on the present connection
	watchers []*watcher
}

type watcher struct{ hint func() }

func newHub(s *Store) *hub {
	h := &hub{store: s, changed: make(chan struct{}, 1), silence: silence, channels: map[string]*channel{}}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// Watch implements store.Leases.
func (s *Store) Watch(ctx context.Context, group string, t store.Topic, hint func()) error {
	if err := store.CheckWatch(group, t); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	servers, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer s.calls.Done()
	w, name := &watcher{hint: hint}, s.channel(group, t)
	if s.hub.add(name, group, w, servers) {
		hint()
	}
	context.AfterFunc(ctx, func() { s.hub.remove(name, w) })
	return nil
}

// add tells whether the subscription stands already.
func (h *hub) add(name, group string, w *watcher, servers servers) (stands bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return false
	}
	c := h.channels[name]
	if c == nil {
		c = &channel{group: group}
		h.channels[name] = c
		h.wake()
	}
	c.watchers = append(c.watchers, w)
	if !h.alive {
		h.alive = true
		h.running.Go(func() { h.run(servers) })
	}
	return c.stands
}

func (h *hub) remove(name string, w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := h.channels[name]
	if c == nil {
		return
	}
	c.watchers = slices.DeleteFunc(c.watchers, func(other *watcher) bool { return other == w })
	if len(c.watchers) == 0 {
		delete(h.channels, name)
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

// run keeps a connection subscribed to what is watched, until nothing is.
func (h *hub) run(servers servers) {
	backoff := minBackoff
	for {
		heard := h.serve(servers)
		if h.finished() {
			return
		}
		if heard {
			backoff = minBackoff
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
	if len(h.channels) == 0 || h.ctx.Err() != nil {
		h.alive = false
	}
	return !h.alive
}

// serve makes a connection and keeps it until it breaks, falls silent, or is not needed; it tells whether anything was
// heard over it.
func (h *hub) serve(servers servers) bool {
	ctx, cancel := context.WithCancel(h.ctx)
	defer cancel()
	// What is published in a cluster comes to all of its nodes: any would do.
	group := h.group()
	client, err := servers.primary(ctx, group)
	if err != nil {
		h.report(err)
		return false
	}
	sub := client.Subscribe(ctx) // to nothing yet: no I/O
	var last atomic.Int64        // number of things heard
	broken := make(chan error, 1)
	var reader sync.WaitGroup
	defer func() {
		cancel()
		_ = sub.Close()
		reader.Wait()
		h.fell()
	}()

	failed := func(err error) bool {
		servers.heard(group, client, err)
		h.report(err)
		return last.Load() > 0
	}
	subscribed := map[string]*channel{}
	alarm := time.NewTimer(h.silence) // no ticker: after a pause of this process two ticks would come at once
	defer alarm.Stop()
	reading, asked, before := false, false, int64(0)
	for {
		if now, err := servers.primary(ctx, group); err == nil && now != client {
			return true // another server takes the calls
		}
		more, less := h.difference(subscribed)
		if len(more) > 0 {
			if err := sub.Subscribe(ctx, more...); err != nil {
				return failed(err)
			}
			if !reading {
				reading = true
				reader.Go(func() { broken <- h.receive(ctx, sub, &last) })
			}
		}
		if len(less) > 0 {
			if err := sub.Unsubscribe(ctx, less...); err != nil {
				return failed(err)
			}
		}
		if len(subscribed) == 0 {
			return last.Load() > 0
		}
		select {
		case <-h.changed:
		case <-ctx.Done():
			return true
		case err := <-broken:
			return failed(err)
		case <-alarm.C:
			now := last.Load()
			if asked && now == before {
				servers.heard(group, client, errSilent)
				h.store.log.WarnContext(ctx, "the connection that hints come over has died silently; it is replaced")
				return true
			}
			if err := sub.Ping(ctx); err != nil {
				return failed(err)
			}
			asked, before = true, now
			alarm.Reset(h.silence)
		}
	}
}

var errSilent = errors.New("no sign of life")

// group returns one that is watched.
func (h *hub) group() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.channels)) {
		return h.channels[name].group
	}
	return ""
}

// receive hands on what comes until the connection breaks.
func (h *hub) receive(ctx context.Context, sub *redis.PubSub, heard *atomic.Int64) error {
	for {
		got, err := sub.Receive(ctx)
		if err != nil {
			return err
		}
		heard.Add(1)
		switch m := got.(type) {
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				h.store.spell("watch", "")
				h.call(m.Channel, true)
			}
		case *redis.Message:
			h.call(m.Channel, false)
		}
	}
}

// call calls the hints of a channel; one that nobody watches, or that is not one of ours, has none.
func (h *hub) call(name string, stands bool) {
	h.mu.Lock()
	var watchers []*watcher
	if c := h.channels[name]; c != nil {
		c.stands = c.stands || stands
		watchers = slices.Clone(c.watchers)
	}
	h.mu.Unlock()
	for _, w := range watchers {
		w.hint()
	}
}

// fell notes that no subscription stands.
func (h *hub) fell() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, c := range h.channels {
		c.stands = false
	}
}

// difference updates subscribed to what is watched, and returns what came and what went, in order. A channel that went
// and came again meanwhile has come: its new watchers want to hear that it stands.
func (h *hub) difference(subscribed map[string]*channel) (more, less []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(h.channels)) {
		if c := h.channels[name]; subscribed[name] != c {
			more = append(more, name)
			subscribed[name] = c
		}
	}
	for _, name := range slices.Sorted(maps.Keys(subscribed)) {
		if h.channels[name] == nil {
			less = append(less, name)
			delete(subscribed, name)
		}
	}
	return more, less
}

// report logs what no reconnecting will heal; hints are a convenience, so that it is no more than a warning.
func (h *hub) report(err error) {
	if what, remedy := classify(err.Error()); what == permanent && h.store.spell("watch", remedy) {
		h.store.log.Warn("no hints come: followers wait for the end of a lease, messages for the next look",
			slog.Any("error", wrap("watch", err)), slog.String("remedy", remedy))
	}
}
