package etcdstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
)

// How long is waited for an endpoint.
const (
	patience  = 2 * time.Second  // for one answer
	pingEvery = 10 * time.Second // the least that grpc allows
	pingLimit = 2 * time.Second
)

// link is a connection to one endpoint. That of all calls goes to one endpoint until it does not serve: a client that
// spreads its requests over all endpoints would send each third one to a member that hangs.
type link struct {
	endpoint string
	client   *clientv3.Client
	ready    chan struct{} // closed when it has been opened, or not
	failure  error         // why not; nil when it has

	ctx    context.Context // ends when it is closed
	cancel context.CancelFunc

	mu      sync.Mutex
	held    int // calls under way
	retired bool
	idle    chan struct{} // closed when it is retired and no call is under way
	heard   time.Time     // when something was answered last
}

// newLink opens a connection in the background, which ends it when it is retired.
func newLink(s *Store, endpoint string) *link {
	l := &link{endpoint: endpoint, ready: make(chan struct{}), idle: make(chan struct{})}
	l.ctx, l.cancel = context.WithCancel(s.ctx)
	s.background.Go(func() {
		l.client, l.failure = dial(l.ctx, s.cfg, endpoint)
		close(l.ready)
		select {
		case <-l.idle:
		case <-s.ctx.Done():
		}
		l.cancel()
		if l.client != nil {
			_ = l.client.Close()
		}
	})
	return l
}

// dial makes a client of one endpoint. It waits for the endpoint only where a user has to be known.
func dial(ctx context.Context, c Config, endpoint string) (*clientv3.Client, error) {
	return clientv3.New(clientv3.Config{
		Endpoints: []string{endpoint}, Context: ctx, TLS: c.TLS, Username: c.User, Password: c.Password, Logger: clientLog(c.Logger),
		DialTimeout: patience, DialKeepAliveTime: pingEvery, DialKeepAliveTimeout: pingLimit, PermitWithoutStream: false,
		MaxUnaryRetries: 2, // one more, with a new token of the user
		DialOptions: []grpc.DialOption{
			grpc.WithConnectParams(grpc.ConnectParams{
				Backoff:           backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
				MinConnectTimeout: patience,
			}),
			grpc.WithChainUnaryInterceptor(failFast),
			grpc.WithChainStreamInterceptor(failFastStream),
		},
	})
}

// failFast has a request fail that cannot be sent, with the reason, where the client would wait for the call's end.
func failFast(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	return invoke(ctx, method, req, reply, cc, append(opts, grpc.WaitForReady(false))...)
}

func failFastStream(ctx context.Context, d *grpc.StreamDesc, cc *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	return open(ctx, d, cc, method, append(opts, grpc.WaitForReady(false))...)
}

// opened waits until the connection may be used.
func (l *link) opened(ctx context.Context) error {
	select {
	case <-l.ready:
		return l.failure
	case <-ctx.Done():
		return fmt.Errorf("%s has not answered in time: %w", l.endpoint, ctx.Err())
	}
}

// failed tells whether the connection could not be opened.
func (l *link) failed() bool {
	select {
	case <-l.ready:
		return l.failure != nil
	default:
		return false
	}
}

func (l *link) hold() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held++
}

func (l *link) release() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held--
	l.end()
}

// retire closes the connection when the calls that are under way have ended.
func (l *link) retire() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.retired = true
	l.end()
}

func (l *link) end() {
	if l.retired && l.held == 0 {
		close(l.idle)
		l.held = -1 // once
	}
}

// answers tells whether the endpoint has answered others since a request was sent that it left unanswered, and not long ago.
func (l *link) answers(u *unanswered) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.heard.After(u.sent) && time.Since(l.heard) < patience/2
}

// unanswered is the error of a request that got no answer in time.
type unanswered struct {
	error
	sent time.Time
}

// Unwrap returns the error without when it was sent.
func (u *unanswered) Unwrap() error { return u.error }

// ask makes one request, and waits for its answer no longer than for an endpoint that serves.
func ask[T any](ctx context.Context, l *link, do func(ctx context.Context) (T, error)) (T, error) {
	sent := time.Now()
	limited, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	answer, err := do(limited)
	switch {
	case err == nil:
		l.mu.Lock()
		l.heard = time.Now()
		l.mu.Unlock()
	case limited.Err() == nil:
	case ctx.Err() == nil: // the client's error may be its own
		err = &unanswered{fmt.Errorf("%s has not answered in %v: %w", l.endpoint, patience, context.DeadlineExceeded), sent}
	default:
		err = &unanswered{err, sent}
	}
	return answer, err
}

// txn makes one transaction.
func (l *link) txn(ctx context.Context, guards []clientv3.Cmp, then, otherwise []clientv3.Op) (*clientv3.TxnResponse, error) {
	return ask(ctx, l, func(ctx context.Context) (*clientv3.TxnResponse, error) {
		return l.client.Txn(ctx).If(guards...).Then(then...).Else(otherwise...).Commit()
	})
}

// change makes a transaction that changes something, and errAgain of one whose guards do not hold any more.
func (l *link) change(ctx context.Context, guards []clientv3.Cmp, then ...clientv3.Op) error {
	answer, err := l.txn(ctx, guards, then, nil)
	if err == nil && !answer.Succeeded {
		err = errAgain
	}
	return err
}

// grant starts an etcd lease of that many seconds; the servers may give more.
func (l *link) grant(ctx context.Context, seconds int64) (id clientv3.LeaseID, granted int64, err error) {
	answer, err := ask(ctx, l, func(ctx context.Context) (*clientv3.LeaseGrantResponse, error) { return l.client.Grant(ctx, seconds) })
	if err != nil {
		return 0, 0, err
	}
	return answer.ID, answer.TTL, nil
}

// keepAlive extends an etcd lease to its whole duration, and returns that in seconds. One that has ended is errAgain.
func (l *link) keepAlive(ctx context.Context, id clientv3.LeaseID) (int64, error) {
	answer, err := ask(ctx, l, func(ctx context.Context) (*clientv3.LeaseKeepAliveResponse, error) {
		return l.client.KeepAliveOnce(clientv3.WithRequireLeader(ctx), id)
	})
	switch {
	case errors.Is(err, rpctypes.ErrLeaseNotFound):
		return 0, errAgain
	case err != nil:
		return 0, err
	}
	return answer.TTL, nil
}

// left returns how many whole seconds are left of an etcd lease at least, and not all of one more; negative when it is
// gone.
func (l *link) left(ctx context.Context, id clientv3.LeaseID) (int64, error) {
	answer, err := ask(ctx, l, func(ctx context.Context) (*clientv3.LeaseTimeToLiveResponse, error) {
		return l.client.TimeToLive(ctx, id)
	})
	if err != nil {
		return 0, err
	}
	return answer.TTL, nil
}
