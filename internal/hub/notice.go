package hub

import "slices"

// Notice is what a watcher is told.
type Notice struct {
	Kind  Kind
	Event string // of News: what it is about; "" where the store does not say
}

// Kind is what a notice says.
type Kind uint8

// The kinds of a notice. Stands and Falls alternate, beginning with Stands.
const (
	Stands Kind = iota + 1 // the subscription stands: news will come
	News
	Falls // it does not any more
)

// watcher is whoever watches a point. Notices for it are put down in order, under the hub's lock, and told outside of it,
// by one goroutine at a time: whoever finds that nobody does.
type watcher struct {
	listen func(Notice)

	due     []Notice
	telling bool
	gone    bool // it watches no more
}

// notify puts a notice down for all watchers, and returns them.
func (p *Point) notify(n Notice) []*watcher {
	for _, w := range p.watchers {
		w.due = append(w.due, n)
	}
	return slices.Clone(p.watchers)
}

// tell tells watchers what is put down for them.
func (h *Hub) tell(watchers ...*watcher) {
	for _, w := range watchers {
		for {
			n, ok := h.next(w)
			if !ok {
				break
			}
			w.listen(n)
			h.mu.Lock()
			w.telling = false
			h.mu.Unlock()
		}
	}
}

// next takes the next notice for a watcher, unless somebody tells it one.
func (h *Hub) next(w *watcher) (n Notice, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.telling || w.gone || len(w.due) == 0 {
		return n, false
	}
	n, w.due = w.due[0], w.due[1:]
	w.telling = true
	return n, true
}
