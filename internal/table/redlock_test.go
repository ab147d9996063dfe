//go:build unix

package table

import (
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redlock"
)

// onNodes returns a kind of n independent servers.
func onNodes(n int, name, title string, config []string, faults ...Fault) Kind {
	return Kind{
		Name: name, Title: title, Faults: faults,
		Start: func(t testing.TB) Servers {
			nodes := redistest.StartNodes(t, n, redistest.Args(config...))
			if err := nodes.Trusted(t.Context()); err != nil {
				t.Fatal(err)
			}
			return Servers{Addrs: nodes.Addrs(), It: nodes}
		},
		Open: func(addrs []string, link *Link, _ time.Duration) (store.Store, error) {
			var all clients
			for _, a := range addrs {
				all = append(all, redis.NewClient(&redis.Options{Addr: a, Dialer: link.Dial}))
			}
			st, err := redlock.New(all, redlock.Config{})
			return owned{st, all}, err
		},
	}
}

// clients are closed together.
type clients []*redis.Client

func (c clients) Close() (err error) {
	for _, one := range c {
		err = errors.Join(err, one.Close())
	}
	return err
}

func redlockKinds() []Kind {
	return []Kind{
		onNodes(3, "redlock-3", "Redlock, three nodes, `appendfsync everysec`", kept,
			nodes("one node is killed and restarted", is(killedNode)),
			nodes("one node is frozen past the lease, and goes on", is(frozenNode)),
			nodes("one node is cut off past the lease", is(cutNode)),
			nodes("one node restarts empty", is(emptiedNode)),
			nodes("one node is killed, and its append-only file loses its last 2 KiB", is(truncatedNode)),
			nodes("the clock of one node jumps an hour ahead, and back", is(aheadNode)),
			nodes("the clock of one node jumps an hour back, and ahead", is(behindNode)),
			nodes("two of three nodes are killed and restarted, and an operator lets their records count", is(killedNode), is(killedNode), accepted),
			nodes("two of three nodes restart empty, and an operator accepts the loss", is(emptiedNode), is(emptiedNode), accepted).ThatForgets(),
		),
		onNodes(3, "redlock-3-always", "Redlock, three nodes, `appendfsync always`", []string{"--appendonly", "yes", "--appendfsync", "always"},
			nodes("one node is killed and restarted", is(killedNode)),
			nodes("one node restarts empty", is(emptiedNode)),
			nodes("two of three nodes are killed and restarted", is(killedNode), is(killedNode)),
		),
		onNodes(5, "redlock-5", "Redlock, five nodes, `appendfsync everysec`", kept,
			nodes("two nodes are killed and restarted", is(killedNode), is(killedNode)),
			nodes("two nodes are frozen past the lease, and go on", is(frozenNode), is(frozenNode)),
			nodes("two nodes restart empty", is(emptiedNode), is(emptiedNode)),
			nodes("two nodes restart empty, and the leader is killed", is(emptiedNode), is(emptiedNode), leaderless),
			nodes("one node restarts empty, one is cut off", is(emptiedNode), is(cutNode)),
			nodes("one node loses 2 KiB, the clock of one jumps an hour ahead", is(truncatedNode), is(aheadNode)),
			nodes("the clocks of three nodes jump an hour ahead, and back", is(aheadNode), is(aheadNode), is(aheadNode)).ThatForgets(),
		),
	}
}

// harm is what befalls a node, until it is mended.
type harm struct {
	begin func(*redistest.Node)
	end   func(*redistest.Node) error
}

var (
	killedNode    = harm{(*redistest.Node).Kill, (*redistest.Node).Restart}
	frozenNode    = harm{(*redistest.Node).Stop, gently((*redistest.Node).Cont)}
	cutNode       = harm{(*redistest.Node).Cut, gently((*redistest.Node).Heal)}
	emptiedNode   = harm{(*redistest.Node).Kill, (*redistest.Node).RestartEmpty}
	truncatedNode = harm{(*redistest.Node).Kill, func(n *redistest.Node) error { return n.RestartTruncated(2 << 10) }}
	aheadNode     = harm{func(n *redistest.Node) { n.Clock.Jump(time.Hour) }, gently(func(n *redistest.Node) { n.Clock.Reset() })}
	behindNode    = harm{func(n *redistest.Node) { n.Clock.Jump(-time.Hour) }, gently(func(n *redistest.Node) { n.Clock.Reset() })}
)

func gently(do func(*redistest.Node)) func(*redistest.Node) error {
	return func(n *redistest.Node) error {
		do(n)
		return nil
	}
}

// part is something that belongs to a fault of nodes.
type part struct {
	harm  *harm        // of one node
	while func(*Scene) // in the middle, when it is going on
	after func(*Scene) // when all is mended
}

func is(h harm) part { return part{harm: &h} }

// leaderless kills the leader and starts it again when another leads.
var leaderless = part{while: func(s *Scene) {
	r, struck := s.Leader(), now()
	r.kill()
	s.awaitTerm(struck)
	s.launch(r.name)
}}

// accepted does what an operator may do when too few nodes are sure of their records.
var accepted = part{after: func(s *Scene) {
	s.Await("the operator's word counts", func() bool { return s.store.(owned).Store.(*redlock.Store).Trust(s.Context(), group) == nil })
}}

// nodes makes a fault: what harms a node befalls another one in each stroke, for longer than a lease.
func nodes(name string, parts ...part) Fault {
	turn := 0
	return On(name, func(s *Scene, all *redistest.Nodes) {
		struck := map[*redistest.Node]harm{}
		for _, p := range parts {
			if p.harm != nil {
				n := all.All[turn%len(all.All)]
				turn++
				p.harm.begin(n)
				struck[n] = *p.harm
			}
		}
		s.Rest(Lease * 3 / 2)
		for _, p := range parts {
			if p.while != nil {
				p.while(s)
			}
		}
		for _, n := range all.All {
			if h, ok := struck[n]; ok {
				s.Must(h.end(n))
			}
		}
		for _, p := range parts {
			if p.after != nil {
				p.after(s)
			}
		}
	})
}
