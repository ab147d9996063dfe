package redlock

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/store"
)

const (
	newsPatience = 50 * time.Millisecond // for more nodes to tell the same news
	newsKept     = 32                    // that may come from more nodes yet
)

// Watch implements store.Leases. A hint comes when the subscription stands at a majority, and when a majority has told the
// same news, or soon after one node has: who tries earlier finds the lease still held at the others.
func (s *Store) Watch(ctx context.Context, group string, t store.Topic, hint func()) error {
	if err := store.CheckWatch(group, t); err != nil {
		return err
	}
	limited, end, err := s.begin(ctx)
	if err != nil {
		return err
	}
	defer end()
	return s.hub.watch(limited, ctx, watched{group, t}, hint)
}

// watched is what somebody watches.
type watched struct {
	group string
	topic store.Topic
}

// hints are the books of who watches what.
type hints struct {
	store *Store

	mu     sync.Mutex
	places map[watched]*place
	closed bool
}

// place is something that is watched.
type place struct {
	what     watched
	cancel   context.CancelFunc
	watchers []*watcher
	stands   map[*link]bool
	news     []*news // the last few, the oldest first
}

type watcher struct{ hint func() }

// news is what one or more nodes have told.
type news struct {
	event string
	by    []*link
	told  bool
	timer *time.Timer
}

func (h *hints) init(s *Store) { h.store, h.places = s, map[watched]*place{} }

func (h *hints) watch(limited, ctx context.Context, what watched, hint func()) error {
	w := &watcher{hint: hint}
	h.mu.Lock()
	p, first := h.places[what], false
	if p == nil {
		first = true
		p = &place{what: what, stands: map[*link]bool{}}
		h.places[what] = p
	}
	p.watchers = append(p.watchers, w)
	stands := len(p.stands) >= h.store.quorum
	h.mu.Unlock()
	context.AfterFunc(ctx, func() { h.remove(p, w) })
	if stands {
		hint()
	}
	if !first {
		return nil
	}
	return h.subscribe(limited, p)
}

// subscribe has all nodes report to a place.
func (h *hints) subscribe(ctx context.Context, p *place) error {
	watching, cancel := context.WithCancel(context.WithoutCancel(ctx)) // for as long as anybody watches
	h.mu.Lock()
	p.cancel = cancel
	gone := h.closed || h.places[p.what] != p
	h.mu.Unlock()
	if gone {
		cancel()
		return nil
	}
	failed := count{s: h.store}
	for _, l := range h.store.links {
		err := l.node.watch(watching, p.what.group, p.what.topic, func(n hub.Notice) { h.hear(p, l, n) })
		if err != nil {
			failed.fail(l, l.named(err))
		}
	}
	if err := failed.short(ctx, "watch"); failed.blocked() {
		h.drop(p)
		return err
	}
	return nil
}

func (h *hints) remove(p *place, w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p.watchers = slices.DeleteFunc(p.watchers, func(other *watcher) bool { return other == w })
	if len(p.watchers) == 0 {
		h.end(p)
	}
}

// drop ends a place.
func (h *hints) drop(p *place) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.end(p)
}

// end ends a place; who watches there next makes another. The lock is held.
func (h *hints) end(p *place) {
	if h.places[p.what] == p {
		delete(h.places, p.what)
	}
	if p.cancel != nil {
		p.cancel()
	}
	p.watchers = nil
	for _, n := range p.news {
		n.timer.Stop()
	}
}

func (h *hints) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	for _, p := range h.places {
		h.end(p)
	}
}

// hear takes a report of a node.
func (h *hints) hear(p *place, l *link, n hub.Notice) {
	h.mu.Lock()
	call := false
	switch n.Kind {
	case hub.Stands:
		before := len(p.stands)
		p.stands[l] = true
		call = before < h.store.quorum && len(p.stands) >= h.store.quorum
	case hub.Falls:
		delete(p.stands, l)
	case hub.News:
		call = h.learn(p, l, n.Event)
	}
	h.mu.Unlock()
	if call {
		h.call(p)
	}
}

// learn tells whether enough nodes have told some news.
func (h *hints) learn(p *place, l *link, event string) bool {
	if event == "" {
		return true
	}
	i := slices.IndexFunc(p.news, func(n *news) bool { return n.event == event })
	if i < 0 {
		n := &news{event: event}
		n.timer = time.AfterFunc(newsPatience, func() { h.late(p, n) })
		if p.news = append(p.news, n); len(p.news) > newsKept {
			p.news = p.news[1:]
		}
		i = len(p.news) - 1
	}
	n := p.news[i]
	if !slices.Contains(n.by, l) {
		n.by = append(n.by, l)
	}
	if n.told || len(n.by) < min(h.store.quorum, max(1, len(p.stands))) {
		return false
	}
	n.told = true
	n.timer.Stop()
	return true
}

// late tells news that too few nodes have told.
func (h *hints) late(p *place, n *news) {
	h.mu.Lock()
	call := !n.told
	n.told = true
	h.mu.Unlock()
	if call {
		h.call(p)
	}
}

func (h *hints) call(p *place) {
	h.mu.Lock()
	watchers := slices.Clone(p.watchers)
	h.mu.Unlock()
	for _, w := range watchers {
		w.hint()
	}
}
