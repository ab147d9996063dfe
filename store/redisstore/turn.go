package redisstore

import (
	"context"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-singleton/singleton/internal/herd"
	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/store"
)

// taken is what the channel of a lease carries, with the token, when somebody of a herd has got it; else it is how many
// replicas there are.
const taken = "taken "

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
	token, got := strings.CutPrefix(n.Event, taken)
	switch {
	case got:
		w.store.crowded(w.group).granted(token)
		return
	case n.Kind == hub.Falls:
		return
	case n.Kind == hub.News:
		replicas, _ := strconv.Atoi(n.Event) // an older release does not say: 0
		w.store.count(w.group, replicas)
	}
	wait := herd.Delay(w.store.crowded(w.group).size(), rand.Uint64)
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

// crowd is what is known of a group that is a herd; nil is one that is none.
type crowd struct {
	replicas atomic.Int64
	token    atomic.Uint64 // of the last grant that was heard of
}

// count notes how many replicas a group has.
func (s *Store) count(group string, replicas int) *crowd {
	s.mu.Lock()
	defer s.mu.Unlock()
	if replicas <= herd.Small {
		delete(s.herds, group)
		return nil
	}
	c := s.herds[group]
	if c == nil {
		c = &crowd{}
		s.herds[group] = c
	}
	c.replicas.Store(int64(replicas))
	return c
}

// crowded returns what is known of a group.
func (s *Store) crowded(group string) *crowd {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.herds[group]
}

// size returns how many replicas there were lately.
func (c *crowd) size() int {
	if c == nil {
		return 0
	}
	return int(c.replicas.Load())
}

// granted notes that a lease with this token has been granted.
func (c *crowd) granted(token string) {
	if n, err := strconv.ParseUint(token, 10, 64); c != nil && err == nil && n <= store.MaxToken {
		c.token.Store(n)
	}
}

// after returns what reports whether a lease of a later token has been granted.
func (c *crowd) after(token uint64) func() bool {
	if c == nil {
		return nil
	}
	return func() bool { return c.token.Load() > token }
}
