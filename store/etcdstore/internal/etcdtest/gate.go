//go:build unix

package etcdtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// gate is the way that the other members of a cluster take to one of them. All of them take the same, because a member
// has one address; who comes is told by the kernel.
type gate struct {
	cluster  *Cluster
	to       *Server
	listener net.Listener
	wg       sync.WaitGroup

	mu     sync.Mutex
	off    map[*Server]bool // those that are cut off
	links  map[*gateLink]bool
	closed bool
}

// gateLink is a connection of a member and its continuation.
type gateLink struct {
	from         *Server
	near, far    net.Conn
	lost, closed bool // guarded by gate.mu; what has lost bytes carries nothing any more
}

func newGate(c *Cluster, to *Server) (*gate, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("etcdtest: %w", err)
	}
	g := &gate{cluster: c, to: to, listener: l, off: map[*Server]bool{}, links: map[*gateLink]bool{}}
	g.wg.Go(g.accept)
	return g, nil
}

func (g *gate) addr() string { return g.listener.Addr().String() }

func (g *gate) accept() {
	for {
		near, err := g.listener.Accept()
		if err != nil {
			return
		}
		g.wg.Go(func() { g.serve(near) })
	}
}

func (g *gate) serve(near net.Conn) {
	far, err := net.Dial("tcp", g.to.peers.Addr())
	if err != nil {
		_ = near.Close()
		return
	}
	l := &gateLink{from: g.owner(near.RemoteAddr().String()), near: near, far: far}
	g.mu.Lock()
	g.links[l] = true
	if g.closed {
		g.end(l)
	}
	g.mu.Unlock()
	var back sync.WaitGroup
	back.Go(func() { g.pump(l, far, near) })
	g.pump(l, near, far)
	back.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.links, l)
}

// pump forwards until one of the two ends.
func (g *gate) pump(l *gateLink, from, to net.Conn) {
	piece := make([]byte, 32<<10)
	for {
		n, err := from.Read(piece)
		if n > 0 && !g.loses(l) {
			if _, wrong := to.Write(piece[:n]); wrong != nil {
				err = wrong
			}
		}
		if err != nil {
			g.mu.Lock()
			g.end(l)
			g.mu.Unlock()
			return
		}
	}
}

func (g *gate) loses(l *gateLink) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.off[g.to] || g.off[l.from] {
		l.lost = true
	}
	return l.lost
}

// end closes both sides; mu is held.
func (g *gate) end(l *gateLink) {
	if !l.closed {
		l.closed = true
		_, _ = l.near.Close(), l.far.Close()
	}
}

func (g *gate) cut(s *Server, on bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.off[s] = on
	for l := range g.links {
		if !on && l.lost {
			g.end(l)
		}
	}
}

func (g *gate) close() {
	_ = g.listener.Close()
	g.mu.Lock()
	g.closed = true
	for l := range g.links {
		g.end(l)
	}
	g.mu.Unlock()
	g.wg.Wait()
}

// owner returns the member whose process has the socket with the address addr, nil when it has gone already.
func (g *gate) owner(addr string) *Server {
	var a, b, c, d, port int
	if _, err := fmt.Sscanf(addr, "%d.%d.%d.%d:%d", &a, &b, &c, &d, &port); err != nil {
		return nil
	}
	local := fmt.Sprintf("%02X%02X%02X%02X:%04X", d, c, b, a, port)
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return nil
	}
	socket := ""
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); len(f) > 9 && f[1] == local && f[9] != "0" {
			socket = "socket:[" + f[9] + "]"
		}
	}
	for _, s := range g.cluster.Servers {
		files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", s.Pid()))
		if err != nil {
			return nil
		}
		for _, f := range files {
			if to, err := os.Readlink(f); err == nil && to == socket {
				return s
			}
		}
	}
	return nil
}
