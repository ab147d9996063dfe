package etcdstore_test

import (
	"context"
	"flag"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/histories"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/etcdstore"
	"github.com/go-singleton/singleton/store/etcdstore/internal/etcdtest"
)

var (
	first  = flag.Uint64("seed", 1, "the first seed of the histories")
	seeds  = flag.Uint64("seeds", 1, "how many seeds")
	length = flag.Duration("for", 10*time.Second, "how long the history of each seed is")
)

// TestFencedHistoriesAreLinearizable holds the store against the object of package histories (E3, S1), on three members
// of which one at a time is frozen, killed or cut off from the others.
func TestFencedHistoriesAreLinearizable(t *testing.T) {
	t.Parallel()
	histories.Judge(t, *first, *seeds, *length, func(t *testing.T) *histories.Backend {
		c := etcdtest.StartCluster(t)
		b := &histories.Backend{Addrs: c.Addrs(), Lag: time.Hour, Slow: true}
		for _, s := range c.Servers {
			b.Faults = append(b.Faults,
				histories.Fault{Begin: histories.Quietly(s.Stop), End: histories.Quietly(s.Cont)},
				histories.Fault{Begin: histories.Quietly(s.Kill), End: s.Restart},
				histories.Fault{
					Begin: histories.Quietly(func() { c.Cut(s, true) }), End: histories.Quietly(func() { c.Cut(s, false) }),
				})
		}
		n := 0
		b.Open = func(t *testing.T, addrs []string, _ time.Duration) (store.Store, func(context.Context, string) error) {
			if n++; n%3 > 0 { // one that knows all members gets almost always an answer
				addrs = addrs[n%3:][:1]
			}
			return open(t, etcdstore.Config{Endpoints: addrs}), nil
		}
		return b
	}, 2*time.Second)
}
