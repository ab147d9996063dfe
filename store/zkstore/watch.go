package zkstore

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"github.com/go-zookeeper/zk"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/store"
)

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
	if !s.hub.Watch(ctx, s.watchPath(name, t), name, t, hint) {
		return errClosed
	}
	return nil
}

// ear is a connection over which znodes are watched, beside that of the calls. One that breaks is replaced, with a
// ZooKeeper session of its own.
type ear struct {
	store *Store
	link  *link
	have  map[string]*hub.Point // what is wanted, by path
	zxids map[*hub.Point]int64  // of those that the servers watch: of an inbox, the last that was put there

	mu    sync.Mutex
	fired map[string][]zk.EventType // by path: what the servers have said since the last look
}

// hear makes a connection and keeps it until it breaks or is not needed; it tells whether it has been of use.
func (s *Store) hear(ctx context.Context) (heard bool) {
	e := &ear{store: s, have: map[string]*hub.Point{}, zxids: map[*hub.Point]int64{}, fired: map[string][]zk.EventType{}}
	l, err := newLink(s.cfg, true, e.note)
	if err != nil {
		e.report(ctx, err)
		return false
	}
	defer l.close(false)
	e.link = l
	for ctx.Err() == nil {
		came, went := s.hub.Difference(e.have)
		if len(e.have) == 0 {
			return heard
		}
		for _, p := range went {
			delete(e.zxids, p)
		}
		for _, path := range e.due(came) {
			if err := e.look(ctx, e.have[path]); err != nil {
				e.report(ctx, err)
				return heard
			}
			heard = true
		}
		select {
		case <-s.hub.Changed():
		case <-l.ctx.Done(): // it has broken
			return heard
		case <-ctx.Done():
		}
	}
	return heard
}

// note notes what a watch says. The client calls it.
func (e *ear) note(event zk.Event) {
	if event.Type == zk.EventNotWatching {
		return
	}
	e.mu.Lock()
	e.fired[event.Path] = append(e.fired[event.Path], event.Type)
	e.mu.Unlock()
	e.store.hub.Wake()
}

// due returns the paths to look at: what came, and what is wanted and has fired.
func (e *ear) due(came []*hub.Point) []string {
	paths := map[string]bool{}
	for _, p := range came {
		paths[p.Name] = true
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for path := range e.fired {
		if e.have[path] == nil {
			delete(e.fired, path)
			continue
		}
		paths[path] = true
	}
	return slices.Sorted(maps.Keys(paths))
}

// look watches a znode (again) and hints when there may be news.
func (e *ear) look(ctx context.Context, p *hub.Point) error {
	e.mu.Lock()
	fired := e.fired[p.Name]
	delete(e.fired, p.Name)
	e.mu.Unlock()
	stat, err := call(ctx, e.link, func(c *zk.Conn) (*zk.Stat, error) {
		there, stat, _, err := c.ExistsW(p.Name)
		if !there {
			stat = nil
		}
		return stat, err
	})
	if err != nil {
		return err
	}
	zxid, stood := e.zxids[p]
	news := p.Topic == store.LeaseFree && (stat == nil || slices.Contains(fired, zk.EventNodeDeleted))
	if p.Topic == store.InboxFilled && stat != nil {
		news = stat.Version > 0 && stat.Mzxid != zxid
		zxid = stat.Mzxid
	}
	e.zxids[p] = zxid
	switch {
	case !stood:
		e.store.hub.Stands(p.Name)
	case news:
		e.store.hub.News(p.Name, "")
	}
	return nil
}

// report logs how a connection ended. That is no more than a detail: hints are a convenience, and come again.
func (e *ear) report(ctx context.Context, err error) {
	if ctx.Err() == nil {
		e.store.log.Debug("the connection that hints come over has broken; it is replaced", slog.Any("error", err))
	}
}
