package etcdstore

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/store"
)

// refusedPause is how long until a watch is asked for again that the servers do not allow.
const refusedPause = 2 * time.Second

// outdated are the reasons for which the servers refuse a watch on a stream whose token has ended.
var outdated = []string{
	rpctypes.ErrGRPCInvalidAuthToken.Error(), rpctypes.ErrGRPCAuthOldRevision.Error(), rpctypes.ErrGRPCUserEmpty.Error(),
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
	if !s.hub.Watch(ctx, s.watchKey(group, t), group, t, hint) {
		return errClosed
	}
	return nil
}

// watchKey is the key that a topic is about, or what all those begin with.
func (s *Store) watchKey(group string, t store.Topic) string {
	if t == store.LeaseFree {
		return s.leaseKey(group)
	}
	return s.bucketPrefix(group, store.InboxBucket)
}

// ear is a stream of watches, on a connection beside that of the calls. One that breaks is replaced by one to the next
// endpoint.
type ear struct {
	store *Store
	have  map[string]*hub.Point // what is wanted, by name

	mu      sync.Mutex
	watches map[string]int64     // by name: the last that was asked for
	names   map[int64]string     // the other way round
	last    int64                // ID of a watch
	asked   []int64              // the watches that have not been answered, in order
	ended   map[string]time.Time // by name: what the servers watch no more, and when to ask again
}

// hear opens a stream and keeps it until it breaks or is not needed; it tells whether it has been of use.
func (s *Store) hear(ctx context.Context) (heard bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	endpoint := s.cfg.Endpoints[s.listening%len(s.cfg.Endpoints)]
	s.listening++
	report := func(err error) {
		if ctx.Err() == nil {
			s.log.Debug("the stream that hints come over has broken; it is replaced", slog.String("endpoint", endpoint), slog.Any("error", err))
		}
	}
	client, err := dial(ctx, s.cfg, endpoint)
	if err != nil {
		report(err)
		return false
	}
	defer func() { _ = client.Close() }()
	stream, err := etcdserverpb.NewWatchClient(client.ActiveConnection()).Watch(clientv3.WithRequireLeader(ctx))
	if err != nil {
		report(err)
		return false
	}
	e := &ear{
		store: s, have: map[string]*hub.Point{}, watches: map[string]int64{}, names: map[int64]string{}, ended: map[string]time.Time{},
	}
	broken := make(chan error, 1)
	var receiving sync.WaitGroup
	receiving.Go(func() {
		for {
			answer, err := stream.Recv()
			if err != nil {
				broken <- err
				return
			}
			if err := e.hear(answer); err != nil {
				broken <- err
				return
			}
			heard = true
		}
	})
	defer receiving.Wait()
	defer cancel()
	for {
		came, went := s.hub.Difference(e.have)
		if len(e.have) == 0 {
			return heard
		}
		requests, pause := e.requests(came, went)
		for _, r := range requests {
			if stream.Send(r) != nil {
				break // receiving tells why
			}
		}
		timer := time.NewTimer(pause)
		select {
		case <-s.hub.Changed():
		case <-timer.C:
		case err := <-broken:
			timer.Stop()
			report(err)
			return heard
		}
		timer.Stop()
	}
}

// requests returns what to ask for, and when to look again.
func (e *ear) requests(came, went []*hub.Point) (requests []*etcdserverpb.WatchRequest, pause time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, p := range went {
		requests = append(requests, e.forget(p.Name)...)
	}
	pause = time.Hour
	now := time.Now()
	for _, name := range slices.Sorted(maps.Keys(e.ended)) {
		switch at := e.ended[name]; {
		case e.have[name] == nil:
			delete(e.ended, name)
		case at.After(now):
			pause = min(pause, at.Sub(now))
		default:
			came = append(came, e.have[name])
		}
	}
	for _, p := range came {
		requests = append(requests, e.forget(p.Name)...)
		e.last++
		e.watches[p.Name], e.names[e.last] = e.last, p.Name
		e.asked = append(e.asked, e.last)
		delete(e.ended, p.Name)
		requests = append(requests, watchRequest(e.last, p))
	}
	return requests, pause
}

// forget gives a watch up, if there is one.
func (e *ear) forget(name string) []*etcdserverpb.WatchRequest {
	id, found := e.watches[name]
	if !found {
		return nil
	}
	delete(e.watches, name)
	delete(e.names, id)
	return []*etcdserverpb.WatchRequest{{RequestUnion: &etcdserverpb.WatchRequest_CancelRequest{
		CancelRequest: &etcdserverpb.WatchCancelRequest{WatchId: id}}}}
}

// watchRequest asks to be told from now on: who watches looks for himself when the watch stands.
func watchRequest(id int64, p *hub.Point) *etcdserverpb.WatchRequest {
	r := &etcdserverpb.WatchCreateRequest{Key: []byte(p.Name), WatchId: id}
	if p.Topic == store.LeaseFree {
		r.Filters = []etcdserverpb.WatchCreateRequest_FilterType{etcdserverpb.WatchCreateRequest_NOPUT}
	} else {
		r.RangeEnd = []byte(clientv3.GetPrefixRangeEnd(p.Name))
		r.Filters = []etcdserverpb.WatchCreateRequest_FilterType{etcdserverpb.WatchCreateRequest_NODELETE}
	}
	return &etcdserverpb.WatchRequest{RequestUnion: &etcdserverpb.WatchRequest_CreateRequest{CreateRequest: r}}
}

// hear hands on what an answer is about. A watch that the servers have ended, because it has fallen behind what they have
// compacted or because it is not allowed, is asked for again, from then on. The error is that of a stream that can have no
// more watches: it has one token of the user, which ends.
func (e *ear) hear(answer *etcdserverpb.WatchResponse) error {
	if answer.Canceled && e.store.cfg.User != "" && slices.Contains(outdated, answer.CancelReason) {
		return errors.New(answer.CancelReason)
	}
	e.mu.Lock()
	id := answer.WatchId
	if answer.Created && len(e.asked) > 0 { // a watch that is refused is told without its ID
		id, e.asked = e.asked[0], e.asked[1:]
	}
	name, ours := e.names[id]
	if ours && answer.Canceled {
		delete(e.watches, name)
		delete(e.names, id)
		e.ended[name] = time.Now()
		if answer.CompactRevision == 0 {
			e.ended[name] = time.Now().Add(refusedPause)
		}
	}
	e.mu.Unlock()
	switch {
	case !ours:
	case answer.Canceled:
		e.store.log.Debug("the etcd servers have ended a watch; it is asked for again", slog.String("key", name),
			slog.Int64("compacted", answer.CompactRevision), slog.Any("error", errors.New(answer.CancelReason)))
		e.store.hub.Wake()
	case answer.Created:
		e.store.hub.Stands(name)
	case len(answer.Events) > 0:
		e.store.hub.News(name, "")
	}
	return nil
}
