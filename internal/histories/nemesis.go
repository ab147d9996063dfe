package histories

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/netproxy"
)

// nemesis breaks what a client needs, one fault after another, until ctx ends; then all is well again.
type nemesis struct {
	random *rand.Rand
	pace   time.Duration
}

func newNemesis(seed, of uint64, pace time.Duration) *nemesis {
	return &nemesis{random: rand.New(rand.NewPCG(seed, 1000+of)), pace: pace}
}

// between returns a duration of that many hundredths of the pace, mostly a lease.
func (n *nemesis) between(from, to int64) time.Duration {
	return n.pace * time.Duration(from+n.random.Int64N(to-from)) / 100
}

func (n *nemesis) haunt(ctx context.Context, c *client) {
	for _, p := range c.proxies {
		defer p.Requests.Pass()
		defer p.Replies.Pass()
	}
	for pause(ctx, n.between(20, 150)) {
		some := slices.Clone(c.proxies) // the client's way to one server, or to several
		n.random.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
		some = some[:1+n.random.IntN(len(some))]
		replies := n.random.IntN(2) == 0
		each := func(do func(*netproxy.Proxy, *netproxy.Flow)) {
			for _, p := range some {
				if replies {
					do(p, p.Replies)
				} else {
					do(p, p.Requests)
				}
			}
		}
		switch n.random.IntN(10) {
		case 0:
			each(func(_ *netproxy.Proxy, f *netproxy.Flow) { f.Drop() })
		case 1:
			each(func(_ *netproxy.Proxy, f *netproxy.Flow) { f.Delay(n.between(1, 30)) })
		case 2, 3: // its bytes come after those of later connections, and of others
			each(func(_ *netproxy.Proxy, f *netproxy.Flow) { f.Hold() })
		case 4:
			each(func(_ *netproxy.Proxy, f *netproxy.Flow) { f.CutAfter(n.random.IntN(200)) })
		case 5:
			each(func(_ *netproxy.Proxy, f *netproxy.Flow) { f.Reset() })
		case 6:
			each(func(p *netproxy.Proxy, _ *netproxy.Flow) { p.Cut() })
		default:
			c.stand(n.between(50, 250) * (c.ttl / n.pace))
		}
		pause(ctx, n.between(10, 180))
		each(func(_ *netproxy.Proxy, f *netproxy.Flow) { f.Pass() })
	}
}

// damage breaks servers now and then, mostly for less than a lease.
func (n *nemesis) damage(ctx context.Context, t *testing.T, b *Backend) {
	for pause(ctx, n.between(100, 600)) {
		f := b.Faults[n.random.IntN(len(b.Faults))]
		if err := f.Begin(); err != nil {
			t.Error(err)
		}
		pause(ctx, n.between(5, 130))
		if err := f.End(); err != nil {
			t.Error(err)
		}
	}
}
