//go:build unix

package table

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/redisstore"
)

// topology is several Redis servers, of which one takes the calls.
type topology interface {
	primary(*Scene) *redistest.Server                                 // waits for it
	replicas(s *Scene, primary *redistest.Server) []*redistest.Server // of a primary
	whole(*Scene)                                                     // waits until all have found together again
}

// The faults of several servers.
var (
	primaryKilled = On("the primary is killed", func(s *Scene, all topology) {
		old := all.primary(s)
		old.Kill()
		replaced(s, all, old)
		s.Must(old.Restart())
		all.whole(s)
	}).ThatForgets() // with what was under way to the replicas

	primaryFrozen = On("the primary is frozen, replaced, and comes back as one for seconds", func(s *Scene, all topology) {
		old := all.primary(s)
		old.Stop()
		replaced(s, all, old)
		old.Cont()
		all.whole(s)
	}).ThatForgets()

	// primaryBack shuts the leader up with the primary: neither hears of what goes on elsewhere.
	primaryBack = On("the primary is frozen, replaced, and comes back, and the leader reaches only that one", func(s *Scene, all topology) {
		leader, old := s.Leader(), all.primary(s)
		leader.Reach(old.Addr())
		old.Stop()
		replaced(s, all, old)
		old.Cont()
		all.whole(s)
		leader.Reach(everything)
	}).ThatForgets()

	primaryEmptied = On("the primary restarts empty before anybody notices", func(s *Scene, all topology) {
		old := all.primary(s)
		old.Kill()
		s.Must(old.RestartEmpty())
		all.whole(s)
	}).ThatForgets()
)

// forgetful lets nothing more reach the replicas, and the leader die. Who leads then, which is waited for, and what it claims,
// is known to the primary alone. Then that dies, too.
func forgetful(wait time.Duration) Fault {
	return On(asynchronous, func(s *Scene, all topology) {
		old := all.primary(s)
		others := all.replicas(s, old)
		for _, r := range others { // what their sockets hold would reach them still
			r.Stop()
		}
		s.Must(old.Client().Do(s.Context(), "CLIENT", "KILL", "TYPE", "replica").Err())
		leader, died := s.Leader(), now()
		leader.kill()
		if s.AwaitFor(wait, func() bool { return s.begun(died) }) {
			before := s.ran()
			s.AwaitFor(10*time.Second, func() bool { return s.ran() >= before+2 })
		}
		s.Still(func() {
			old.Kill()
			for _, r := range others {
				r.Cont()
			}
			s.Remains(remains(s, others))
		})
		replaced(s, all, old)
		s.launch(leader.name)
		s.Must(old.Restart())
		all.whole(s)
	}).ThatForgets()
}

// waiting is how long a forgetful fault waits for a leader: with acknowledgement none comes.
func waiting(opts redisstore.Options) time.Duration {
	if opts.MinReplicas > 0 {
		return Lease + 4*time.Second
	}
	return patience
}

const asynchronous = "the primary is killed with a lease and claims that no replica has received"

// replaced waits until another server is the primary.
func replaced(s *Scene, all topology, old *redistest.Server) {
	s.Await("another primary", func() bool { return all.primary(s) != old })
}

// remains returns the highest token and the job's last tick that one of the servers knows.
func remains(s *Scene, servers []*redistest.Server) (token uint64, last time.Time) {
	for _, one := range servers {
		client := one.Client(func(o *redis.Options) {
			o.OnConnect = func(ctx context.Context, c *redis.Conn) error {
				_ = c.ReadOnly(ctx).Err() // a server that is in no cluster answers without
				return nil
			}
		})
		st := redisstore.New(client, nil)
		inspect, err := scheduler.NewInspector(st, group, "table")
		s.Must(err)
		status, err := inspect.Status(s.Context())
		s.Must(err)
		for _, j := range status.Jobs {
			if j.Name == job && j.Watermark.After(last) {
				last = j.Watermark
			}
		}
		given, err := client.HGet(s.Context(), "singleton:{"+group+"}:fence", "token").Uint64()
		s.Must(err)
		token = max(token, given)
		s.Must(st.Close())
		s.Must(client.Close())
	}
	return token, last
}

// connected returns how many replicas a server has; one that cannot be asked has none.
func connected(s *Scene, one *redistest.Server) int {
	client := one.Client()
	defer func() { _ = client.Close() }()
	role, err := client.Do(s.Context(), "ROLE").Slice()
	if err != nil || len(role) < 3 || role[0] != "master" {
		return 0
	}
	list, _ := role[2].([]any)
	return len(list)
}
