package zkstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const (
	longPatience  = 3 * time.Second // with a server that does not answer; a sixth of the session, where that is shorter
	leastPatience = 200 * time.Millisecond
	outstanding   = 64 // calls at once
)

var errClosing = errors.New("the connection has been given up")

// session is a ZooKeeper session, as the last handshake granted it.
type session struct {
	id      int64
	timeout time.Duration
}

// longest returns the longest lease that a renewal may be trusted for. What a server has acknowledged reaches the
// session's clock with its next ping, or not at all when it dies before; the client's ping before that, at most a third
// of the session ago, has reached it.
func (s session) longest() time.Duration { return (s.timeout * 2 / 3).Truncate(time.Millisecond) }

// link is a connection to the ensemble: one client, which reconnects by itself. Its methods are safe for concurrent use.
type link struct {
	cfg      Config
	conn     *zk.Conn
	events   <-chan zk.Event // closed when the client has ended
	hosts    *hosts
	patience time.Duration
	once     bool            // it does not reconnect
	fired    func(zk.Event)  // gets what watches say; nil for nobody
	ctx      context.Context // ends when it is to connect no more
	cancel   context.CancelFunc
	slots    chan struct{}
	calls    sync.WaitGroup

	mu      sync.Mutex
	granted session
	up      bool      // there is a session on a connection
	down    time.Time // since when there is none
	known   bool      // the servers know who we are
	changed chan struct{}
	idle    bool  // the client is to connect no more, and has seen it
	failure error // of the last attempt to connect
	wire    *wire
	warned  bool
}

// newLink starts a client. c is complete.
func newLink(c Config, once bool, fired func(zk.Event)) (*link, error) {
	l := &link{
		cfg: c, hosts: newHosts(c.Servers), once: once, fired: fired,
		patience: max(min(longPatience, c.SessionTimeout/6), leastPatience),
		slots:    make(chan struct{}, outstanding), changed: make(chan struct{}),
		known: c.User == "", down: time.Now(),
	}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	begun := make(chan struct{}) // the client calls back before Connect has returned
	defer close(begun)
	conn, events, err := zk.Connect(c.Servers, c.SessionTimeout,
		zk.WithHostProvider(l.hosts), zk.WithDialer(func(network, address string, _ time.Duration) (net.Conn, error) {
			<-begun
			return l.dial(network, address)
		}),
		zk.WithEventCallback(l.event), zk.WithLogger(clientLog{c.Logger}))
	if err != nil {
		l.cancel()
		return nil, fmt.Errorf("connect: %w", err)
	}
	l.conn, l.events = conn, events
	if !l.known {
		l.calls.Go(l.introduce)
	}
	return l, nil
}

// introduce tells the servers who we are; the client does so again on each later connection.
func (l *link) introduce() {
	for {
		err := l.conn.AddAuth("digest", []byte(l.cfg.User+":"+l.cfg.Password))
		l.mu.Lock()
		if err == nil {
			l.known = true
			l.broadcast()
		} else {
			l.failure = err
		}
		changed, done := l.changed, l.known
		l.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-l.ctx.Done():
			return
		}
	}
}

func (l *link) dial(network, address string) (net.Conn, error) {
	select {
	case <-time.After(l.hosts.pause()):
	case <-l.ctx.Done():
		return nil, errClosing
	}
	ctx, cancel := context.WithTimeout(l.ctx, min(time.Second, 2*l.patience))
	defer cancel()
	var c net.Conn
	var err error
	if l.cfg.TLS != nil {
		c, err = (&tls.Dialer{Config: l.cfg.TLS}).DialContext(ctx, network, address)
	} else {
		c, err = (&net.Dialer{}).DialContext(ctx, network, address)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.ctx.Err() != nil {
		_ = c.Close()
		err = errClosing
	}
	if err != nil {
		l.failure = err
		return nil, err
	}
	l.wire = &wire{Conn: c, patience: l.patience, idle: max(l.cfg.SessionTimeout, time.Second), shaken: l.shaken}
	return l.wire, nil
}

// shaken notes the session that a server has granted; none is one that it does not know.
func (l *link) shaken(id int64, timeout time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.granted = session{id: id, timeout: timeout}
	if warn := id != 0 && timeout < l.cfg.SessionTimeout; warn && !l.warned {
		l.warned = true
		l.cfg.Logger.Warn("the ZooKeeper servers allow shorter sessions only, and leases are shorter with them; raise their maxSessionTimeout or ask for less",
			"asked", l.cfg.SessionTimeout, "granted", timeout)
	}
}

// event is called by the client, and must not block it.
func (l *link) event(e zk.Event) {
	if e.Type != zk.EventSession {
		if l.fired != nil {
			l.fired(e)
		}
		return
	}
	l.mu.Lock()
	if up := e.State == zk.StateHasSession; up != l.up {
		l.up, l.down = up, time.Now()
	}
	if e.State == zk.StateDisconnected && l.once {
		l.end()
	}
	ended := l.ctx.Err() != nil
	l.idle = ended && e.State == zk.StateConnecting
	l.broadcast()
	l.mu.Unlock()
	if ended && e.State == zk.StateDisconnected {
		time.Sleep(time.Millisecond) // see close
	}
}

func (l *link) broadcast() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// end makes the client connect no more.
func (l *link) end() {
	l.cancel()
	l.hosts.end()
}

// session returns what the last handshake granted.
func (l *link) session() session {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.granted
}

// stale tells whether the session must be over: for longer than it lasts there has been no connection. The client does not
// think so, and servers that have lost their data refuse it for ever, because it has seen what they do not know.
func (l *link) stale() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.up && l.granted.id != 0 && time.Since(l.down) > max(l.granted.timeout, l.cfg.SessionTimeout)
}

// ready waits for a connection with a session.
func (l *link) ready(ctx context.Context) error {
	for {
		l.mu.Lock()
		up, changed, failure := l.up && l.known, l.changed, l.failure
		l.mu.Unlock()
		switch {
		case l.ctx.Err() != nil:
			return errClosing
		case ctx.Err() != nil:
			return ctx.Err()
		case up:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if failure != nil {
				return fmt.Errorf("no ZooKeeper server has answered in time, the last trouble was %w: %w", failure, ctx.Err())
			}
			return fmt.Errorf("no ZooKeeper server has answered in time: %w", ctx.Err())
		}
	}
}

// abandoned is the error of a call whose context has ended; the client goes on with it.
type abandoned struct {
	error
	done <-chan struct{} // closed when the client has finished
}

// Unwrap returns the context's error.
func (a *abandoned) Unwrap() error { return a.error }

// start has do run, which close waits for; not when it may wait already.
func (l *link) start(do func()) (begun bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		return false
	}
	l.calls.Go(do)
	return true
}

// call makes one call of the client.
func call[T any](ctx context.Context, l *link, do func(*zk.Conn) (T, error)) (value T, err error) {
	if err := l.ready(ctx); err != nil {
		return value, err
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return value, ctx.Err()
	}
	type answer struct {
		value T
		err   error
	}
	answers, done := make(chan answer, 1), make(chan struct{})
	begun := l.start(func() {
		defer close(done)
		defer func() { <-l.slots }()
		v, err := do(l.conn)
		answers <- answer{v, err}
	})
	if !begun {
		<-l.slots
		return value, errClosing
	}
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return value, &abandoned{ctx.Err(), done}
	}
}

// close ends the client and waits for it. With lapse, or without a connection, the session goes on at the servers until
// its timeout, and with it what lives on it; else it ends at once.
//
// The client's Close sends a last request and waits for its answer for a second. Without a connection it is answered at
// once when it comes while the client waits to connect, and a little before it notices that it is closed.
func (l *link) close(lapse bool) {
	l.end()
	l.mu.Lock()
	if lapse {
		l.hangUp()
	}
	for (lapse || !l.up) && !l.idle {
		l.hangUp()
		changed := l.changed
		l.mu.Unlock()
		<-changed
		l.mu.Lock()
	}
	l.mu.Unlock()
	l.conn.Close()
	l.mu.Lock()
	l.hangUp()
	l.broadcast()
	l.mu.Unlock()
	for range l.events {
		continue
	}
	l.calls.Wait()
}

func (l *link) hangUp() {
	if l.wire != nil {
		_ = l.wire.Close()
	}
}
