package wirefaults

import (
	"bytes"
	"net"
	"slices"
	"sync"
	"time"
)

// conn carries the bytes of one connection. Requests that were sent still arrive after the client has closed its end, as
// those do that wait in a socket.
type conn struct {
	link         *link
	near, server net.Conn // the other ends of what the client has and of what the server has
	subscription bool
	requests     chan parcel
	replies      chan parcel

	mu     sync.Mutex
	atOnce bool // it is shaking hands for a subscription: nothing takes time
	deaf   bool // requests vanish
	mute   bool // replies vanish
	next   fate // what becomes of the next reply
}

// parcel is some bytes on their way.
type parcel struct {
	data []byte
	due  time.Time
	fate fate
}

// hear takes what the client sends.
func (c *conn) hear() {
	defer close(c.requests)
	buf := make([]byte, 16<<10)
	for {
		n, err := c.near.Read(buf)
		if err != nil {
			return
		}
		p := parcel{data: slices.Clone(buf[:n])}
		if !c.shakes(p.data) {
			p.fate = c.link.draw()
		}
		p.due = time.Now().Add(p.fate.request)
		c.requests <- p
	}
}

// shakes reports whether data belongs to a handshake that must not take time; a subscription's ends with its first
// channels.
func (c *conn) shakes(data []byte) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.atOnce = c.atOnce && !bytes.Contains(data, []byte("subscribe"))
	return c.atOnce
}

// request hands to the server what the client has sent.
func (c *conn) request() {
	defer func() { _ = c.server.Close() }()
	for p := range c.requests {
		if p.fate.request > 0 {
			c.link.wait(p.due)
		}
		switch p.fate.kind {
		case "request reset":
			c.reset()
		case "request torn":
			p.data = p.data[:len(p.data)/2]
		case "half-open", "mute":
			c.swallow(p.fate.kind == "half-open")
		}
		c.mu.Lock()
		deaf := c.deaf
		c.next = p.fate
		c.mu.Unlock()
		if deaf {
			continue
		}
		_, _ = c.server.Write(p.data) // fails when the connection has been reset
		if p.fate.kind == "request torn" {
			c.reset()
		}
	}
}

// answer takes what the server sends.
func (c *conn) answer() {
	defer close(c.replies)
	buf := make([]byte, 16<<10)
	for {
		n, err := c.server.Read(buf)
		if err != nil {
			return
		}
		c.mu.Lock()
		p := parcel{data: slices.Clone(buf[:n]), fate: c.next}
		c.next.kind = ""
		c.mu.Unlock()
		p.due = time.Now().Add(p.fate.reply)
		c.replies <- p
	}
}

// reply hands to the client what the server has sent.
func (c *conn) reply() {
	defer c.link.forget(c)
	defer func() { _ = c.near.Close() }()
	for p := range c.replies {
		if p.fate.reply > 0 {
			c.link.wait(p.due)
		}
		switch p.fate.kind {
		case "reply reset":
			c.reset()
		case "reply torn":
			p.data = p.data[:len(p.data)/2]
		}
		c.mu.Lock()
		mute := c.mute
		c.mu.Unlock()
		if mute {
			continue
		}
		_, _ = c.near.Write(p.data)
		if p.fate.kind == "reply torn" {
			c.reset()
		}
	}
}

// swallow has replies vanish from now on, and requests, too, where deaf is set.
func (c *conn) swallow(deaf bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deaf, c.mute = c.deaf || deaf, true
}

func (c *conn) silent() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mute
}

// reset ends both ends at once; what is on its way is lost.
func (c *conn) reset() {
	_ = c.near.Close()
	_ = c.server.Close()
}
