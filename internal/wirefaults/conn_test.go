package wirefaults

import (
	"bytes"
	"net"
	"sync"
)

// conn carries the bytes of one connection. Requests that were sent still arrive after the client has closed its end, as
// those do that wait in a socket.
type conn struct {
	link         *link
	near, server net.Conn // the other ends of what the client has and of what the server has
	subscription bool
	requests     *direction
	replies      *direction

	mu     sync.Mutex
	atOnce bool // it is shaking hands for a subscription: nothing takes time
	next   fate // what becomes of the next reply
}

// carry carries bytes between near and server until both directions have ended.
func (l *link) carry(near, server net.Conn, subscription bool) {
	c := &conn{link: l, near: near, server: server, subscription: subscription, atOnce: subscription}
	c.requests, c.replies = newDirection(c, "request", near, server), newDirection(c, "reply", server, near)
	c.requests.draw, c.requests.arrives = c.ask, c.asked
	c.replies.draw, c.replies.arrives = c.answer, func(fate) {}
	l.mu.Lock()
	l.conns = append(l.conns, c)
	l.mu.Unlock()
	l.running.Go(c.requests.take)
	l.running.Go(c.requests.hand)
	l.running.Go(c.replies.take)
	l.running.Go(func() {
		c.replies.hand()
		l.forget(c)
	})
}

// ask draws the fate of a request. A handshake that must not take time has none; a subscription's ends with its first
// channels.
func (c *conn) ask(data []byte) fate {
	c.mu.Lock()
	c.atOnce = c.atOnce && !bytes.Contains(data, []byte("subscribe"))
	shakes := c.atOnce
	c.mu.Unlock()
	if shakes {
		return fate{}
	}
	return c.link.draw()
}

// asked notes that a request arrives: its reply shares its fate.
func (c *conn) asked(f fate) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = f
}

// answer returns the fate of a reply; what follows without a request is only as late.
func (c *conn) answer([]byte) fate {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.next
	c.next.kind = ""
	return f
}

// swallow has replies vanish from now on, and requests, too, where deaf is set.
func (c *conn) swallow(deaf bool) {
	c.replies.lost.Store(true)
	if deaf {
		c.requests.lost.Store(true)
	}
}

func (c *conn) silent() bool { return c.replies.lost.Load() }

// reset ends both ends at once; what is on its way is lost.
func (c *conn) reset() {
	_ = c.near.Close()
	_ = c.server.Close()
}
