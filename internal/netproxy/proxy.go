package netproxy

import (
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// Proxy is a network between clients and one server that can be broken in either direction. Its methods, and those of
// its flows, are safe for concurrent use.
type Proxy struct {
	Requests *Flow // what clients send
	Replies  *Flow // what the server answers

	target   string
	listener net.Listener
	accepted atomic.Int64
	done     chan struct{}
	wg       sync.WaitGroup

	mu    sync.Mutex
	links map[*link]bool // nil once closed
}

// link is one connection of a client and its continuation to the server.
type link struct{ client, server *net.TCPConn }

// New listens on a loopback address of its own and forwards to target, the address of a server.
func New(target string) (*Proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("netproxy: %w", err)
	}
	p := &Proxy{target: target, listener: l, done: make(chan struct{}), links: map[*link]bool{}}
	p.Requests, p.Replies = newFlow(p), newFlow(p)
	p.wg.Go(p.accept)
	return p, nil
}

// Addr returns the address that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Accepted returns how many connections clients have made so far.
func (p *Proxy) Accepted() int { return int(p.accepted.Load()) }

// Open returns how many connections are open.
func (p *Proxy) Open() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Cut ends all open connections at once; clients see a reset. New ones are accepted.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Close cuts all connections, ends the proxy, and waits for its goroutines.
func (p *Proxy) Close() {
	p.mu.Lock()
	if p.links == nil {
		p.mu.Unlock()
		return
	}
	close(p.done)
	_ = p.listener.Close()
	for l := range p.links {
		l.reset()
	}
	p.links = nil
	p.mu.Unlock()
	p.wg.Wait()
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		p.wg.Go(func() { p.serve(c.(*net.TCPConn)) })
	}
}

func (p *Proxy) serve(client *net.TCPConn) {
	s, err := net.Dial("tcp", p.target)
	if err != nil {
		(&link{client: client, server: client}).reset()
		return
	}
	l := &link{client: client, server: s.(*net.TCPConn)}
	if !p.add(l) {
		return
	}
	defer p.remove(l)
	var replies sync.WaitGroup
	replies.Go(func() { p.Replies.pump(l, l.server, l.client) })
	p.Requests.pump(l, l.client, l.server)
	replies.Wait()
}

func (p *Proxy) add(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.links == nil {
		l.reset()
		return false
	}
	p.links[l] = true
	return true
}

func (p *Proxy) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
	_, _ = l.client.Close(), l.server.Close()
}

// reset ends both sides with a reset instead of a polite close.
func (l *link) reset() {
	for _, c := range []*net.TCPConn{l.client, l.server} {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
}
