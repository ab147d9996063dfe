//go:build unix

package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// Cluster is several servers that decide by majority.
type Cluster struct {
	Servers []*Server

	gates []*gate // before the members, for the others
	args  []string
}

// NewCluster starts n servers, with arguments beside the usual ones, and waits until all of them serve; Close ends them.
func NewCluster(n int, args ...string) (*Cluster, error) {
	c := &Cluster{args: args}
	if err := c.start(n); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
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
		s.args = append(s.member(fmt.Sprintf("m%d", i), url, strings.Join(all, ",")), c.args...)
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

// Replace has a new member without data take the place of s, as an operator has one do when a disk is lost: a member that is
// known and has forgotten all is refused.
func (c *Cluster) Replace(ctx context.Context, s *Server) error {
	s.Kill()
	if err := os.RemoveAll(s.data()); err != nil {
		return fmt.Errorf("etcdtest: %w", err)
	}
	i := slices.Index(c.Servers, s)
	others := slices.Delete(c.Addrs(), i, i+1)
	client, err := clientv3.New(clientv3.Config{Endpoints: others, Logger: zap.NewNop()})
	if err != nil {
		return fmt.Errorf("etcdtest: %w", err)
	}
	defer func() { _ = client.Close() }()
	list, err := client.MemberList(ctx)
	if err != nil {
		return fmt.Errorf("etcdtest: %w", err)
	}
	for _, m := range list.Members {
		if m.Name == fmt.Sprintf("m%d", i) {
			err = accepted(ctx, func() error { _, err := client.MemberRemove(ctx, m.ID); return err })
		}
	}
	if err == nil {
		err = accepted(ctx, func() error { _, err := client.MemberAdd(ctx, []string{"http://" + c.gates[i].addr()}); return err })
	}
	if err != nil {
		return fmt.Errorf("etcdtest: %w", err)
	}
	s.args = append(s.args, "--initial-cluster-state", "existing")
	return s.Restart()
}

// accepted asks for a change of the members until it is made: none is, for some seconds after one has come back.
func accepted(ctx context.Context, change func() error) error {
	for {
		err := change()
		if !errors.Is(err, rpctypes.ErrUnhealthy) {
			return err
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
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
