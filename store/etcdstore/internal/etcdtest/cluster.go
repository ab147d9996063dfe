//go:build unix

package etcdtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-singleton/singleton/internal/process"
)

// Cluster is several servers that decide by majority.
type Cluster struct {
	Servers []*Server

	gates []*gate // before the members, for the others
}

// NewCluster starts n servers and waits until all of them serve; Close ends them.
func NewCluster(n int) (*Cluster, error) {
	for range 20 {
		c := &Cluster{}
		err := c.start(n)
		if err == nil {
			return c, nil
		}
		err = errors.Join(err, c.Close())
		if !errors.Is(err, process.ErrEnded) { // somebody has taken a port
			return nil, err
		}
	}
	return nil, errors.New("etcdtest: no free port was found")
}

func (c *Cluster) start(n int) error {
	var all []string
	for i := range n {
		s, err := newServer()
		if err != nil {
			return err
		}
		c.Servers = append(c.Servers, s)
		g, err := newGate(c, s)
		if err != nil {
			return err
		}
		c.gates = append(c.gates, g)
		all = append(all, fmt.Sprintf("m%d=http://%s", i, g.addr()))
	}
	for i, s := range c.Servers {
		_, url, _ := strings.Cut(all[i], "=")
		s.args = s.member(fmt.Sprintf("m%d", i), url, strings.Join(all, ","))
		if err := s.Launch(); err != nil {
			return err
		}
	}
	for _, s := range c.Servers {
		if err := s.Wait(); err != nil {
			return err
		}
	}
	return nil
}

// Addrs returns the hosts and ports for clients.
func (c *Cluster) Addrs() []string {
	var addrs []string
	for _, s := range c.Servers {
		addrs = append(addrs, s.Addr())
	}
	return addrs
}

// Leader returns the member that leads the others, waiting for one that serves.
func (c *Cluster) Leader() *Server {
	for {
		for _, s := range c.Servers {
			if s.Leads() && s.Serves() {
				return s
			}
		}
		time.Sleep(20 * time.Millisecond) // an election has no event to wait for
	}
}

// Follower returns a member that serves and does not lead, waiting for one.
func (c *Cluster) Follower() *Server {
	for leader := c.Leader(); ; {
		for _, s := range c.Servers {
			if s != leader && s.Serves() {
				return s
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// Cut cuts s off from the other members, silently, until it is called with false. Its clients still reach it.
func (c *Cluster) Cut(s *Server, on bool) {
	for _, g := range c.gates {
		g.cut(s, on)
	}
}

// Close ends all servers.
func (c *Cluster) Close() error {
	var errs []error
	for _, s := range c.Servers {
		errs = append(errs, s.Close())
	}
	for _, g := range c.gates {
		g.close()
	}
	return errors.Join(errs...)
}
