//go:build linux

package histories

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redlock"
)

// TestFencedHistoriesOfNodesAreLinearizable holds the store on a majority of independent servers against the same object,
// while two of five break. When their clocks jump, leases may end early; tokens and records must not notice.
func TestFencedHistoriesOfNodesAreLinearizable(t *testing.T) {
	for name, clocks := range map[string]bool{"sound clocks": false, "clocks that jump": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			Judge(t, *first, (*seeds+1)/2, *length, onNodes(clocks), 300*time.Millisecond)
		})
	}
}

// onNodes starts five independent nodes, two of which break at a time. With clocks, theirs jump, too.
func onNodes(clocks bool) func(*testing.T) *Backend {
	return func(t *testing.T) *Backend {
		nodes := redistest.StartNodes(t, 5, redistest.AppendOnly(), redistest.Args("--appendfsync", "everysec"))
		if err := nodes.Trusted(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := &Backend{Addrs: nodes.Addrs(), Lag: time.Hour, Dim: true, Early: clocks}
		type harm struct{ begin, end func(*redistest.Node) error }
		nothing := func(*redistest.Node) error { return nil }
		passing := []harm{
			{silently((*redistest.Node).Stop), silently((*redistest.Node).Cont)},
			{silently((*redistest.Node).Cut), silently((*redistest.Node).Heal)},
		}
		if clocks {
			reset := silently(func(n *redistest.Node) { n.Clock.Reset() })
			for _, by := range []time.Duration{time.Hour, -time.Hour, time.Second} {
				passing = append(passing, harm{silently(func(n *redistest.Node) { n.Clock.Jump(by) }), reset})
			}
		}
		lasting := []harm{
			{silently((*redistest.Node).Kill), (*redistest.Node).Restart},
			{(*redistest.Node).RestartEmpty, nothing},
			{func(n *redistest.Node) error { return n.RestartTruncated(1 << 10) }, nothing},
		}
		// What passes befalls any two. What makes a node forget befalls the last two alone: there may be no leader who tells
		// them again before the next fault, and nobody leads when a majority has forgotten.
		for i, one := range slices.Concat(passing, lasting) {
			for j, other := range slices.Concat(passing, lasting) {
				first, second := nodes.All[(i+j)%5], nodes.All[(i+j+1+i%4)%5]
				if i >= len(passing) || j >= len(passing) {
					first, second = nodes.All[3+(i+j)%2], nodes.All[3+(i+j+1)%2]
				}
				b.Faults = append(b.Faults, Fault{
					func() error { return errors.Join(one.begin(first), other.begin(second)) },
					func() error { return errors.Join(one.end(first), other.end(second)) },
				})
			}
		}
		b.Open = func(t *testing.T, addrs []string, _ time.Duration) (store.Store, func(context.Context, string) error) {
			var clients []*redis.Client
			for _, addr := range addrs {
				c := redis.NewClient(&redis.Options{Addr: addr})
				t.Cleanup(func() { _ = c.Close() })
				clients = append(clients, c)
			}
			s, err := redlock.New(clients, redlock.Config{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			return s, nil
		}
		return b
	}
}

func silently(do func(*redistest.Node)) func(*redistest.Node) error {
	return func(n *redistest.Node) error {
		do(n)
		return nil
	}
}
