package redisstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redisclient"
)

// slots is how many slots a cluster has.
const slots = 16384

// cluster sends each call to the node that owns the group's slot. It follows MOVED and ASK, which say that a request was
// not carried out, and repeats nothing that got no answer: go-redis's own client of a cluster does the one only with the
// other.
type cluster struct {
	options *redis.Options // of a client of any node
	seeds   []string
	given   func(context.Context) ([]redis.ClusterSlot, error) // who owns what, when the nodes do not know; usually nil
	changed func()                                             // called when slots have other owners
	asking  sync.WaitGroup

	mu     sync.Mutex
	nodes  map[string]*redis.Client
	owners []owner
	moved  map[int]string // by slot: what nodes have said since
	doubt  bool           // the owners may be others
	closed bool
}

// untold begins the error when no node has told who owns what.
const untold = "no node of the cluster says who owns the slots"

var errNoNode = errors.New("the client of the cluster has no address of a node")

// owner is a node and slots that it owns.
type owner struct {
	first, last int
	addr        string
}

func newCluster(from *redis.ClusterOptions, changed func()) *cluster {
	return &cluster{
		options: redisclient.Derive(shared(from)), seeds: from.Addrs, given: from.ClusterSlots, changed: changed,
		nodes: map[string]*redis.Client{}, moved: map[int]string{},
	}
}

func (c *cluster) primary(ctx context.Context, group string) (redis.UniversalClient, error) {
	clients, err := c.primaries(ctx, []string{group})
	if err != nil {
		return nil, err
	}
	return clients[0], nil
}

func (c *cluster) primaries(ctx context.Context, groups []string) ([]redis.UniversalClient, error) {
	c.mu.Lock()
	ask := c.doubt || len(c.owners) == 0
	c.doubt = false // others need not ask at the same time
	c.mu.Unlock()
	if ask {
		if err := c.refresh(ctx); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, redis.ErrClosed
	}
	var clients []redis.UniversalClient
	for _, group := range groups {
		addr := c.owner(slot(group))
		if addr == "" { // nobody owns the slot: let a node say so
			known := c.addrs()
			if len(known) == 0 {
				return nil, errNoNode
			}
			addr = known[0]
		}
		clients = append(clients, c.node(addr))
	}
	return clients, nil
}

// owner returns the address of a slot's owner, "" when there is none.
func (c *cluster) owner(slot int) string {
	if addr, ok := c.moved[slot]; ok {
		return addr
	}
	for _, o := range c.owners {
		if o.first <= slot && slot <= o.last {
			return o.addr
		}
	}
	return ""
}

func (c *cluster) node(addr string) *redis.Client {
	n := c.nodes[addr]
	if n == nil {
		o := *c.options
		o.Addr = addr
		n = redis.NewClient(&o)
		c.nodes[addr] = n
	}
	return n
}

// addrs returns all addresses that are known.
func (c *cluster) addrs() []string {
	known := slices.Clone(c.seeds)
	for _, o := range c.owners {
		known = append(known, o.addr)
	}
	for addr := range c.nodes {
		known = append(known, addr)
	}
	slices.Sort(known)
	return slices.Compact(known)
}

// refresh asks the nodes who owns what, three at a time. When none answers, what was known stays known.
func (c *cluster) refresh(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, half(ctx, askLimit))
	defer cancel()
	owners, err := c.learn(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return redis.ErrClosed
	}
	if err != nil {
		c.doubt = true
		if len(c.owners) == 0 {
			return err
		}
		return nil
	}
	if !slices.Equal(owners, c.owners) || len(c.moved) > 0 {
		defer c.changed()
	}
	// A node may have said where a slot has gone, and the one that was asked may not know it yet: what is under way there
	// must not be cut off.
	kept := slices.Concat(c.seeds, slices.Collect(maps.Values(c.moved)))
	for _, o := range owners {
		kept = append(kept, o.addr)
	}
	c.owners, c.moved = owners, map[int]string{}
	for addr, n := range c.nodes {
		if !slices.Contains(kept, addr) {
			delete(c.nodes, addr)
			c.asking.Go(func() { _ = n.Close() })
		}
	}
	return nil
}

// learn returns the first answer.
func (c *cluster) learn(ctx context.Context) ([]owner, error) {
	if c.given != nil {
		ranges, err := c.given(ctx)
		return c.read("", ranges), err
	}
	c.mu.Lock()
	known := c.addrs()
	c.mu.Unlock()
	if len(known) == 0 {
		return nil, errNoNode
	}
	rand.Shuffle(len(known), func(i, j int) { known[i], known[j] = known[j], known[i] })
	type answer struct {
		addr   string
		ranges []redis.ClusterSlot
		err    error
	}
	answers := make(chan answer, len(known))
	next := 0
	ask := func() {
		if next == len(known) {
			return
		}
		addr := known[next]
		next++
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.closed {
			answers <- answer{err: redis.ErrClosed}
			return
		}
		n := c.node(addr)
		c.asking.Go(func() {
			ranges, err := n.ClusterSlots(ctx).Result() //nolint:staticcheck // Redis 6.2 does not have CLUSTER SHARDS
			answers <- answer{addr, ranges, err}
		})
	}
	for range 3 {
		ask()
	}
	var failed error
	for range known {
		select {
		case a := <-answers:
			if a.err == nil && len(a.ranges) > 0 {
				return c.read(a.addr, a.ranges), nil
			}
			if a.err == nil {
				a.err = errors.New("CLUSTERDOWN: the node knows no owner of any slot")
			}
			if failed == nil || !refused(a.err) { // one that gave no answer may yet
				failed = a.err
			}
			ask()
		case <-ctx.Done():
			return nil, fmt.Errorf(untold+": %w", errors.Join(failed, ctx.Err()))
		}
	}
	return nil, fmt.Errorf(untold+": %w", failed)
}

// read returns the owners that the node at origin has told of.
func (c *cluster) read(origin string, ranges []redis.ClusterSlot) (owners []owner) {
	for _, r := range ranges {
		if len(r.Nodes) > 0 {
			owners = append(owners, owner{r.Start, r.End, reachable(r.Nodes[0].Addr, origin)})
		}
	}
	slices.SortFunc(owners, func(a, b owner) int { return a.first - b.first })
	return owners
}

// reachable completes an address as a node calls it: one that does not know its own name leaves it out, one that speaks
// TLS only may give no port, and one behind a forwarded port may call itself by its loopback address.
func reachable(addr, origin string) string {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	viaHost, viaPort, err := net.SplitHostPort(origin)
	if err != nil {
		return addr
	}
	ip, via := net.ParseIP(host), net.ParseIP(viaHost)
	if host == "" || host == "?" || ip.IsLoopback() && !via.IsLoopback() && viaHost != "localhost" {
		host = viaHost
	}
	if port == "0" {
		port = viaPort
	}
	return net.JoinHostPort(host, port)
}

func (c *cluster) heard(group string, client redis.UniversalClient, err error) (redis.UniversalClient, bool) {
	if err == nil {
		return nil, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, false
	}
	origin := ""
	if n, ok := client.(*redis.Client); ok {
		origin = n.Options().Addr
	}
	if addr, ok := redis.IsMovedError(err); ok {
		addr = reachable(addr, origin)
		c.moved[slot(group)] = addr
		c.doubt = true // more than one slot has moved, most likely
		c.changed()
		return c.node(addr), false
	}
	if addr, ok := redis.IsAskError(err); ok {
		return c.node(reachable(addr, origin)), true
	}
	c.doubt = c.doubt || elsewhere(err)
	return nil, false
}

func (c *cluster) all(ctx context.Context) ([]redis.UniversalClient, error) {
	if err := c.refresh(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, redis.ErrClosed
	}
	var primaries []string
	for _, o := range c.owners {
		primaries = append(primaries, o.addr)
	}
	slices.Sort(primaries)
	var clients []redis.UniversalClient
	for _, addr := range slices.Compact(primaries) {
		clients = append(clients, c.node(addr))
	}
	return clients, nil
}

// others returns a client of each node but one, replicas too where that one tells of them.
func (c *cluster) others(ctx context.Context, one redis.UniversalClient) (clients []redis.UniversalClient) {
	origin := ""
	var ranges []redis.ClusterSlot
	if n, ok := one.(*redis.Client); ok {
		origin = n.Options().Addr
		ranges, _ = n.ClusterSlots(ctx).Result() //nolint:staticcheck // Redis 6.2 does not have CLUSTER SHARDS
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.addrs()
	for _, r := range ranges {
		for _, n := range r.Nodes {
			known = append(known, reachable(n.Addr, origin))
		}
	}
	slices.Sort(known)
	for _, addr := range slices.Compact(known) {
		if addr != origin && !c.closed {
			clients = append(clients, c.node(addr))
		}
	}
	return clients
}

// needs returns the commands that its nodes are sent besides those that each server is.
func (c *cluster) needs() [][]any {
	if c.given != nil {
		return inCluster()[1:] // somebody else says who owns what
	}
	return inCluster()
}

func (c *cluster) close() error {
	c.mu.Lock()
	c.closed = true
	nodes := c.nodes
	c.nodes = map[string]*redis.Client{}
	c.mu.Unlock()
	var errs []error
	for _, n := range nodes {
		errs = append(errs, n.Close())
	}
	c.asking.Wait()
	return errors.Join(errs...)
}

// slot returns the slot of a group's keys: CRC-16 (XMODEM) of the group, which is their hash tag.
func slot(group string) int {
	var crc uint16
	for _, b := range []byte(group) {
		crc ^= uint16(b) << 8
		for range 8 {
			if carry := crc&0x8000 != 0; carry {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc) % slots
}
