package redlock

import (
	"errors"
	"fmt"
	"log/slog"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/store"
)

// minNodes is how many servers make a majority that outlives one of them.
const minNodes = 3

// maxNodes is more than anybody runs; each call goes to all of them.
const maxNodes = 15

// Config tunes a Store; the zero value is the documented defaults.
type Config struct {
	Prefix string       // of every key and channel: a name (store.CheckName); "singleton"
	Logger *slog.Logger // nil is silent
}

// New returns a store on the servers that clients are made for: 3 to 15, an odd number, each a primary of its own that
// replicates from no other. Each brings its address, credentials and TLS; none is changed or closed. It does no I/O. The
// error lists all that is wrong with the arguments.
func New(clients []*redis.Client, cfg Config) (*Store, error) {
	var problems []error
	if n := len(clients); n < minNodes || n > maxNodes {
		problems = append(problems, fmt.Errorf("there are %d servers: give %d to %d, an odd number", n, minNodes, maxNodes))
	}
	first := map[string]int{}
	for i, c := range clients {
		if c == nil {
			problems = append(problems, fmt.Errorf("client %d is nil: make it with redis.NewClient", i+1))
			continue
		}
		addr := c.Options().Addr
		switch before, twice := first[addr]; {
		case addr == failoverAddr:
			problems = append(problems, fmt.Errorf("client %d follows Sentinels: give the client of one server, because a failover forgets", i+1))
		case twice:
			problems = append(problems, fmt.Errorf("clients %d and %d are both of %s: give each server once", before+1, i+1, addr))
		default:
			first[addr] = i
		}
	}
	if cfg.Prefix == "" {
		cfg.Prefix = "singleton"
	}
	if err := store.CheckName("prefix", cfg.Prefix); err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return nil, store.Permanent("set them right", fmt.Errorf("redlock: %w", errors.Join(problems...)))
	}
	nodes := make([]node, len(clients))
	for i, c := range clients {
		nodes[i] = newRedisNode(c.Options(), cfg)
	}
	s := fromNodes(nodes, cfg)
	if len(nodes)%2 == 0 {
		s.log.Warn("an even number of servers bears no more of them being away than one fewer; use an odd number", slog.Int("servers", len(nodes)))
	}
	return s, nil
}

// failoverAddr is what redis.NewFailoverClient calls the address of its client.
const failoverAddr = "FailoverClient"
