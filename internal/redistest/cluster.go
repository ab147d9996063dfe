//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	shards = 3
	slots  = 16384
)

// Cluster is a Redis Cluster of three primaries and a replica of each. A node that has not answered for two seconds
// is replaced by its replica about a second later.
type Cluster struct {
	Nodes []*Server // three primaries, then the replica of each, at the start

	cfg Config
}

// NewCluster starts the nodes and waits until all think the cluster whole. The configuration is that of each node.
func NewCluster(cfg Config) (*Cluster, error) {
	c := &Cluster{cfg: cfg}
	if err := c.start(); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *Cluster) start() (err error) {
	c.cfg.cluster = true
	c.cfg.Args = append([]string{
		"--cluster-node-timeout", "2000", "--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no",
	}, c.cfg.Args...)
	if c.Nodes, err = newAll([]Config{c.cfg, c.cfg, c.cfg, c.cfg, c.cfg, c.cfg}); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), formLimit)
	defer cancel()
	ids := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		if ids[i], err = c.ID(ctx, n); err != nil {
			return err
		}
		orders := [][]any{{"CLUSTER", "SET-CONFIG-EPOCH", i + 1}}
		if i < shards {
			orders = append(orders, []any{"CLUSTER", "ADDSLOTSRANGE", i * slots / shards, (i+1)*slots/shards - 1})
		}
		orders = append(orders, c.meet(c.Nodes[0]))
		for _, o := range orders {
			if err := n.ask().Do(ctx, o...).Err(); err != nil {
				return fmt.Errorf("redistest: %v: %w", o, err)
			}
		}
	}
	if err := c.know(len(c.Nodes)); err != nil {
		return err
	}
	for i, n := range c.Nodes[shards:] {
		if err := n.ask().ClusterReplicate(ctx, ids[i]).Err(); err != nil {
			return fmt.Errorf("redistest: %w", err)
		}
	}
	return c.Formed()
}

// meet is the order by which a node gets to know another.
func (c *Cluster) meet(n *Server) []any {
	return []any{"CLUSTER", "MEET", "127.0.0.1", n.port, n.port + 1}
}

// know waits until each node knows count.
func (c *Cluster) know(count int) error {
	met := time.Now()
	return formed("nodes of a cluster", func(ctx context.Context) (string, error) {
		again := time.Since(met) > 3*time.Second // on a busy machine a node forgets whom it did not reach in time
		if again {
			met = time.Now()
		}
		missing := ""
		for _, n := range c.Nodes {
			text, err := n.ask().ClusterInfo(ctx).Result()
			if err != nil {
				return text, err
			}
			if strings.Contains(text, fmt.Sprintf("cluster_known_nodes:%d\r", count)) {
				continue
			}
			missing = text
			if again {
				if err := n.ask().Do(ctx, c.meet(c.Nodes[0])...).Err(); err != nil {
					return text, err
				}
			}
		}
		return missing, nil
	})
}

// Formed waits until all nodes think the cluster whole and its replicas have all data.
func (c *Cluster) Formed() error {
	return formed("nodes of a cluster", func(ctx context.Context) (string, error) {
		var replicas []*Server
		for _, n := range c.Nodes {
			text, err := n.ask().ClusterInfo(ctx).Result()
			if err != nil || !strings.Contains(text, "cluster_state:ok") {
				return text, err
			}
			text, err = n.ask().Info(ctx, "replication").Result()
			if err != nil {
				return "", err
			}
			if strings.Contains(text, "role:slave") {
				replicas = append(replicas, n)
			}
		}
		if len(replicas) < shards {
			return "replicas", nil
		}
		return replicated(ctx, replicas)
	})
}

// Grow adds a primary without slots.
func (c *Cluster) Grow(ctx context.Context) (*Server, error) {
	n, err := New(c.cfg)
	if err != nil {
		return nil, err
	}
	c.Nodes = append(c.Nodes, n)
	if err := n.ask().Do(ctx, c.meet(c.Nodes[0])...).Err(); err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	if err := c.know(len(c.Nodes)); err != nil {
		return nil, err
	}
	return n, c.Formed()
}

// Addrs returns the addresses of the nodes.
func (c *Cluster) Addrs() []string { return addrs(c.Nodes) }

// Options returns those of a client of the cluster.
func (c *Cluster) Options() *redis.ClusterOptions {
	return &redis.ClusterOptions{Addrs: c.Addrs(), TLSConfig: c.cfg.TLS.Client()}
}

// ID returns what a node is called in the cluster.
func (c *Cluster) ID(ctx context.Context, n *Server) (string, error) {
	id, err := n.ask().Do(ctx, "CLUSTER", "MYID").Text()
	if err != nil {
		return "", fmt.Errorf("redistest: %w", err)
	}
	return id, nil
}

// Owner returns the node that holds a key, as the given node sees it; nil when nobody does.
func (c *Cluster) Owner(ctx context.Context, asked *Server, key string) (*Server, error) {
	slot, err := asked.ask().ClusterKeySlot(ctx, key).Result()
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	ranges, err := asked.ask().ClusterSlots(ctx).Result() //nolint:staticcheck // Redis 6.2 does not have CLUSTER SHARDS
	if err != nil {
		return nil, fmt.Errorf("redistest: %w", err)
	}
	for _, r := range ranges {
		if int(slot) < r.Start || int(slot) > r.End || len(r.Nodes) == 0 {
			continue
		}
		for _, n := range c.Nodes {
			if _, port, _ := net.SplitHostPort(r.Nodes[0].Addr); port == fmt.Sprint(n.port) {
				return n, nil
			}
		}
	}
	return nil, nil
}

// Replica returns the node that was, at the start, the replica of another.
func (c *Cluster) Replica(n *Server) *Server {
	for i, other := range c.Nodes[:shards] {
		if other == n {
			return c.Nodes[i+shards]
		}
	}
	return nil
}

// Close ends all processes.
func (c *Cluster) Close() error { return closeAll(c.Nodes) }
