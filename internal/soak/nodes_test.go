package soak_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/soak"
	"github.com/go-singleton/singleton/store/redlock"
)

// minority is two of five independent nodes, which break together: the faults of a server are theirs.
type minority []*redistest.Node

func (m minority) each(do func(*redistest.Node) error) error {
	var errs []error
	for _, n := range m {
		errs = append(errs, do(n))
	}
	return errors.Join(errs...)
}

func (m minority) Stop()               { _ = m.each(quietly((*redistest.Node).Stop)) }
func (m minority) Cont()               { _ = m.each(quietly((*redistest.Node).Cont)) }
func (m minority) Kill()               { _ = m.each(quietly((*redistest.Node).Kill)) }
func (m minority) Restart() error      { return m.each((*redistest.Node).Restart) }
func (m minority) RestartEmpty() error { return m.each((*redistest.Node).RestartEmpty) }

func quietly(do func(*redistest.Node)) func(*redistest.Node) error {
	return func(n *redistest.Node) error {
		do(n)
		return nil
	}
}

// startRedlock starts five nodes; each fault is one of another two. Those that look go past the networks that break.
func startRedlock(t testing.TB) soak.Servers {
	nodes := redistest.StartNodes(t, 5, kept...)
	if err := nodes.Trusted(t.Context()); err != nil {
		t.Fatal(err)
	}
	var clients []*redis.Client
	for _, n := range nodes.All {
		clients = append(clients, n.Client())
	}
	st, err := redlock.New(clients, redlock.Config{})
	if err != nil {
		t.Fatal(err)
	}
	turn := 0
	return soak.Servers{
		URL: "redlock://" + strings.Join(nodes.Addrs(), ","), Store: closed(t, st),
		Leader: func(context.Context) soak.Server {
			some := minority{nodes.All[turn%5], nodes.All[(turn+1)%5]}
			turn += 2
			return some
		},
		Away: 4 * time.Second,
	}
}

// trouble is what befalls a node, and how it ends.
type trouble struct {
	name       string
	begin, end func(*redistest.Node) error
}

var (
	nothing  = quietly(func(*redistest.Node) {})
	reset    = quietly(func(n *redistest.Node) { n.Clock.Reset() })
	killed   = trouble{"killed", quietly((*redistest.Node).Kill), (*redistest.Node).Restart}
	frozen   = trouble{"frozen", quietly((*redistest.Node).Stop), quietly((*redistest.Node).Cont)}
	cut      = trouble{"cut off", quietly((*redistest.Node).Cut), quietly((*redistest.Node).Heal)}
	emptied  = trouble{"emptied", (*redistest.Node).RestartEmpty, nothing}
	cutShort = trouble{"restarted without the last 4 KiB", func(n *redistest.Node) error { return n.RestartTruncated(4 << 10) }, nothing}
	ahead    = trouble{"an hour ahead", quietly(func(n *redistest.Node) { n.Clock.Jump(time.Hour) }), reset}
	behind   = trouble{"an hour behind", quietly(func(n *redistest.Node) { n.Clock.Jump(-time.Hour) }), reset}
)

// mixed are faults of which one befalls one node and the other another. The first few are what a short run sees.
var mixed = []soak.Fault{
	both(cutShort, cut), both(frozen, emptied), both(ahead, killed), both(behind, emptied), both(cut, ahead),
	both(emptied, emptied), both(cut, cut), both(cutShort, cutShort), both(ahead, ahead), both(behind, behind),
}

// both makes a fault of what befalls two nodes.
func both(one, other trouble) soak.Fault {
	var hit minority
	return soak.Fault{
		Name: "one node " + one.name + ", one " + other.name,
		Begin: func(s soak.Servers) error {
			hit = s.Leader(context.Background()).(minority)
			return errors.Join(one.begin(hit[0]), other.begin(hit[1]))
		},
		End: func(soak.Servers) error { return errors.Join(one.end(hit[0]), other.end(hit[1])) },
	}
}

// own are the faults that only some stores have.
var own = map[string][]soak.Fault{"redlock": mixed}
