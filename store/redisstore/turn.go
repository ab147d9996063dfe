package redisstore

import (
	"context"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-singleton/singleton/internal/herd"
	"github.com/go-singleton/singleton/internal/hub"
)

// taken is what the channel of a lease carries when somebody of a herd has got it; else it is how many replicas there are.
const taken = "taken"

// turn hints one watcher of a lease when it is its turn: in a small group at once.
type turn struct {
	store *Store
	ctx   context.Context // of the watcher
	group string
	hint  func()
	timer *time.Timer // until the turn; nil when there was none yet
}

// listen is called with one notice at a time.
func (w *turn) listen(n hub.Notice) {
	if w.timer != nil {
		w.timer.Stop() // news are newer than what it waits for
	}
	switch {
	case n.Kind == hub.Falls || n.Event == taken:
		return
	case n.Kind == hub.News:
		replicas, _ := strconv.Atoi(n.Event) // an older release does not say: 0
		w.store.count(w.group, replicas)
	}
	wait := herd.Delay(w.store.counted(w.group), rand.Uint64)
	switch {
	case wait == 0:
		w.hint()
	case w.timer == nil:
		w.timer = time.AfterFunc(wait, w.come)
	default:
		w.timer.Reset(wait)
	}
}

// come is called when the turn has come.
func (w *turn) come() {
	if w.ctx.Err() == nil && w.store.open() {
		w.hint()
	}
}

// count notes how many replicas a group has, where they are a herd.
func (s *Store) count(group string, replicas int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if replicas > herd.Small {
		s.herds[group] = replicas
	} else {
		delete(s.herds, group)
	}
}

// counted returns how many replicas a group has had lately, 0 where they are no herd.
func (s *Store) counted(group string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.herds[group]
}
