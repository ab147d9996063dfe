//go:build unix

package table

import (
	"context"
	"net"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/go-singleton/singleton/internal/netproxy"
)

// Link is the way of a replica to the servers, which can be cut. Its methods are safe for concurrent use.
type Link struct {
	mu    sync.Mutex
	ways  map[string]*netproxy.Proxy // by the address that they lead to
	reach string                     // everything, nothing, or the one address that can be reached
}

// What a link reaches.
const (
	everything = ""
	nothing    = "nothing"
)

// Dial connects to an address by way of the link: the Dialer of a client.
func (l *Link) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	way, err := l.addr(addr)
	if err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, network, way)
}

// Addrs returns addresses that lead to others: for a client without a Dialer, whose servers name each other nowhere.
func (l *Link) Addrs(targets []string) ([]string, error) {
	var ways []string
	for _, target := range targets {
		way, err := l.addr(target)
		if err != nil {
			return nil, err
		}
		ways = append(ways, way)
	}
	return ways, nil
}

func (l *Link) addr(target string) (string, error) {
	if l == nil {
		return target, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.ways[target]
	if p == nil {
		var err error
		if p, err = netproxy.New(target); err != nil {
			return "", err
		}
		if l.ways == nil {
			l.ways = map[string]*netproxy.Proxy{}
		}
		l.ways[target] = p
		l.apply(target, p)
	}
	return p.Addr(), nil
}

// apply makes a way what the link is.
func (l *Link) apply(target string, p *netproxy.Proxy) {
	if l.reach == everything || l.reach == target {
		p.Requests.Pass()
		p.Replies.Pass()
		return
	}
	p.Requests.Drop()
	p.Replies.Drop()
}

func (l *Link) set(reach string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if reach == l.reach {
		return
	}
	l.reach = reach
	for target, p := range l.ways {
		l.apply(target, p)
		if reach == everything {
			p.Cut() // what has lost bytes carries nothing any more
		}
	}
}

// follow makes the link what a file says, until the process ends. One that is not there says everything.
func (l *Link) follow(file string) {
	for range time.Tick(5 * time.Millisecond) {
		text, _ := os.ReadFile(file)
		l.set(strings.TrimSpace(string(text)))
	}
}
