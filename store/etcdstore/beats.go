package etcdstore

import (
	"context"
	"errors"
	"sync"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/client/v3"
)

// beat is one request to keep an etcd lease alive.
type beat struct {
	id     clientv3.LeaseID
	answer chan struct{} // closed when seconds and err are there
	ttl    int64         // seconds from the request on; 0 when there is no such lease
	err    error
}

// keepAlive extends an etcd lease to its whole duration, and returns that in seconds, 0 where there is no such lease. All
// leases of a link share one stream: the client would open one for each request, and check the password each time.
func (l *link) keepAlive(ctx context.Context, id clientv3.LeaseID) (ttl int64, err error) {
	return ask(ctx, l, func(ctx context.Context) (int64, error) {
		l.mu.Lock()
		if !l.beating {
			l.beating = true
			l.work.Go(l.keep)
		}
		l.mu.Unlock()
		b := &beat{id: id, answer: make(chan struct{})}
		select {
		case l.beats <- b:
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-l.ctx.Done():
			return 0, l.ctx.Err()
		}
		select {
		case <-b.answer:
			return b.ttl, b.err
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
}

// keep sends what keepAlive wants, over a stream that is opened anew when it has broken.
func (l *link) keep() {
	var s *beatStream
	for {
		select {
		case b := <-l.beats:
			if s == nil || s.broken() {
				stream, err := etcdserverpb.NewLeaseClient(l.client.ActiveConnection()).LeaseKeepAlive(clientv3.WithRequireLeader(l.ctx))
				if err != nil {
					b.err = err
					close(b.answer)
					continue
				}
				s = &beatStream{stream: stream}
				l.work.Go(s.receive)
			}
			s.send(b)
		case <-l.ctx.Done():
			return
		}
	}
}

// beatStream is a stream of requests, which the servers answer in their order.
type beatStream struct {
	stream etcdserverpb.Lease_LeaseKeepAliveClient

	mu      sync.Mutex
	waiting []*beat // without an answer, also of calls that have been given up
	failure error   // why it has broken; nil while it has not
}

func (s *beatStream) broken() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure != nil
}

func (s *beatStream) send(b *beat) {
	s.mu.Lock()
	if s.failure != nil {
		b.err = s.failure
		close(b.answer)
		s.mu.Unlock()
		return
	}
	s.waiting = append(s.waiting, b)
	s.mu.Unlock()
	_ = s.stream.Send(&etcdserverpb.LeaseKeepAliveRequest{ID: int64(b.id)}) // receive gets the reason of a failure
}

func (s *beatStream) receive() {
	for {
		answer, err := s.stream.Recv()
		s.mu.Lock()
		if err == nil && (len(s.waiting) == 0 || s.waiting[0].id != clientv3.LeaseID(answer.ID)) {
			err = errors.New("an answer about another etcd lease than the one asked for")
		}
		if err != nil {
			s.failure = err
			for _, b := range s.waiting {
				b.err = err
				close(b.answer)
			}
			s.waiting = nil
			s.mu.Unlock()
			return
		}
		b := s.waiting[0]
		s.waiting = s.waiting[1:]
		b.ttl = answer.TTL
		close(b.answer)
		s.mu.Unlock()
	}
}
