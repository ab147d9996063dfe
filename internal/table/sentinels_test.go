//go:build unix

package table

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// kept is how the servers of several keep their data: as Redis does by default when it keeps an append-only file.
var kept = []string{"--appendonly", "yes", "--appendfsync", "everysec"}

// refusing makes a primary refuse writes when no replica has been heard from for so many seconds.
var refusing = []string{"--min-replicas-to-write", "1", "--min-replicas-max-lag", "2"}

// behindSentinels returns a kind of three servers and three Sentinels.
func behindSentinels(name, title string, opts redisstore.Options, args ...string) Kind {
	return Kind{
		Name: name, Title: title,
		Start: func(t testing.TB) Servers {
			s := redistest.StartSentinels(t, redistest.Args(append(kept, args...)...))
			return Servers{Addrs: s.Addrs(), It: topology(sentinels{s})}
		},
		Open: func(addrs []string, link *Link, _ time.Duration) (store.Store, error) {
			return redisstore.NewFailover(&redis.FailoverOptions{
				MasterName: redistest.PrimaryName, SentinelAddrs: addrs, Dialer: link.Dial,
			}, &opts), nil
		},
		Faults: []Fault{primaryKilled, primaryFrozen, primaryBack, forgetful(waiting(opts)), primaryEmptied},
	}
}

func sentinelKinds() []Kind {
	return []Kind{
		behindSentinels("sentinels", "Sentinels", redisstore.Options{}),
		behindSentinels("sentinels-ack", "Sentinels, `MinReplicas: 1`", redisstore.Options{MinReplicas: 1}),
		behindSentinels("sentinels-refusing", "Sentinels, `MinReplicas: 1` and `min-replicas-to-write 1`",
			redisstore.Options{MinReplicas: 1}, refusing...),
	}
}

type sentinels struct{ *redistest.Sentinels }

func (s sentinels) primary(sc *Scene) (p *redistest.Server) {
	sc.Await("a primary", func() bool { p = s.Primary(sc.Context()); return p != nil })
	return p
}

func (s sentinels) replicas(_ *Scene, p *redistest.Server) (all []*redistest.Server) {
	for _, one := range s.Servers {
		if one != p {
			all = append(all, one)
		}
	}
	return all
}

func (s sentinels) whole(sc *Scene) {
	sc.Await("all replicas at the primary", func() bool { return connected(sc, s.primary(sc)) == len(s.Servers)-1 })
}
