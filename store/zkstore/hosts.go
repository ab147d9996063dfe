package zkstore

import (
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// hosts are the servers in the order in which they are tried, round and round. It implements zk.HostProvider: that of
// the client looks names up once and for all, and waits a second before it asks its only server again.
type hosts struct {
	mu      sync.Mutex
	servers []string
	tried   int // since the last that answered
	ended   bool
}

func newHosts(servers []string) *hosts {
	h := &hosts{servers: slices.Clone(servers)}
	rand.Shuffle(len(h.servers), func(i, j int) { h.servers[i], h.servers[j] = h.servers[j], h.servers[i] })
	return h
}

// Init implements zk.HostProvider.
func (h *hosts) Init([]string) error { return nil }

// Len implements zk.HostProvider.
func (h *hosts) Len() int { return len(h.servers) }

// Next implements zk.HostProvider. What it says besides makes the client look whether it has been closed.
func (h *hosts) Next() (server string, ended bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	server = h.servers[0]
	h.servers = append(h.servers[1:], server)
	h.tried++
	return server, h.ended
}

// Connected implements zk.HostProvider.
func (h *hosts) Connected() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.tried = 0
}

// pause returns how long to wait before the present server is dialed: not at all the first time round.
func (h *hosts) pause() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	round := (h.tried - 1) / len(h.servers)
	if round <= 0 {
		return 0
	}
	pause := min(25*time.Millisecond<<min(round, 10), time.Second)
	return pause/2 + rand.N(pause/2)
}

// end makes the client try no more.
func (h *hosts) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
}
