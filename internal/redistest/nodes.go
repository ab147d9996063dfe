//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/go-singleton/singleton/internal/clockjump"
	"github.com/go-singleton/singleton/internal/netproxy"
)

// Node is one of several servers that know nothing of each other, with a network before it.
type Node struct {
	*Server
	Proxy *netproxy.Proxy
	Clock *clockjump.Clock // the server's wall clock
}

// Nodes are independent servers, as Redlock wants them. Because each has a clock of its own, there are none but on Linux.
type Nodes struct {
	All []*Node

	dir string // of the clocks
}

// NewNodes starts n servers of the same configuration; Close ends them.
func NewNodes(n int, cfg Config) (_ *Nodes, err error) {
	all := &Nodes{}
	if all.dir, err = os.MkdirTemp("", "redistest-"); err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	clocks, cfgs := make([]*clockjump.Clock, n), make([]Config, n)
	for i := range n {
		cfgs[i] = cfg
		if clocks[i], err = clockjump.New(all.dir); err != nil {
			return nil, errors.Join(err, os.RemoveAll(all.dir))
		}
		cfgs[i].Clock = clocks[i]
	}
	servers, err := newAll(cfgs)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(all.dir))
	}
	for i, s := range servers {
		all.All = append(all.All, &Node{Server: s, Clock: clocks[i]})
	}
	for _, node := range all.All {
		if node.Proxy, err = netproxy.New(node.Addr()); err != nil {
			return nil, errors.Join(err, all.Close())
		}
	}
	return all, nil
}

// Addrs returns the addresses that clients reach the nodes at, through their networks.
func (n *Nodes) Addrs() (list []string) {
	for _, node := range n.All {
		list = append(list, node.Proxy.Addr())
	}
	return list
}

// Cut takes the node off the network, without a word to anybody: connections stand, and carry nothing.
func (n *Node) Cut() {
	n.Proxy.Requests.Drop()
	n.Proxy.Replies.Drop()
}

// Heal connects the node again. Connections that have lost something carry nothing any more, as after any cut.
func (n *Node) Heal() {
	n.Proxy.Requests.Pass()
	n.Proxy.Replies.Pass()
}

// Trusted has all nodes sync each write, until they are restarted as they were configured. A store need not suspect them then
// of having lost something just before the test began.
func (n *Nodes) Trusted(ctx context.Context) error {
	for _, node := range n.All {
		if err := node.ask().ConfigSet(ctx, "appendfsync", "always").Err(); err != nil {
			return fmt.Errorf("redistest: %w", err)
		}
	}
	return nil
}

// Close ends all processes and networks.
func (n *Nodes) Close() error {
	var errs []error
	for _, node := range n.All {
		if node.Proxy != nil {
			node.Proxy.Close()
		}
		errs = append(errs, node.Server.Close())
		errs = append(errs, node.Clock.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(n.dir))...)
}
