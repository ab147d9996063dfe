package memstore

import (
	"context"
	"slices"

	"github.com/go-singleton/singleton/store"
)

type watcher struct {
	ctx   context.Context // only asked whether it has ended
	group string
	topic store.Topic
	hint  func()
}

// Watch implements store.Leases. The first call of hint comes before Watch returns.
func (s *Store) Watch(ctx context.Context, name string, t store.Topic, hint func()) error {
	if err := store.CheckWatch(name, t); err != nil {
		return err
	}
	if err := s.watch(ctx, name, t, hint); err != nil {
		return err
	}
	hint()
	return nil
}

func (s *Store) watch(ctx context.Context, name string, t store.Topic, hint func()) error {
	_, _, err := s.enter(ctx, name)
	defer s.mu.Unlock()
	if err != nil {
		return err
	}
	s.watchers = append(s.living(), watcher{ctx: ctx, group: name, topic: t, hint: hint})
	return nil
}

// hint calls the watchers of a group and topic, in the order of their Watch, outside the lock.
func (s *Store) hint(name string, t store.Topic) {
	s.call(func(w watcher) bool { return w.group == name && w.topic == t })
}

func (s *Store) hintAll() { s.call(func(watcher) bool { return true }) }

func (s *Store) call(wanted func(watcher) bool) {
	s.mu.Lock()
	s.watchers = s.living()
	watchers := slices.Clone(s.watchers)
	s.mu.Unlock()
	for _, w := range watchers {
		if wanted(w) && w.ctx.Err() == nil {
			w.hint()
		}
	}
}

// living drops the watchers whose context has ended.
func (s *Store) living() []watcher {
	return slices.DeleteFunc(s.watchers, func(w watcher) bool { return w.ctx.Err() != nil })
}
