package redisstore

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redisclient"
	"github.com/go-singleton/singleton/store"
)

// defaultLease is what a Check is about that is not told a lease.
const defaultLease = 15 * time.Second

// standIn is the group whose keys are tried where Check is told none. No key of it stays.
const standIn = "doctor"

// Check looks at the server and tells, for each thing that leases and records depend on, how it is and what to do about
// it: its version and role, replicas, what it keeps on disk, evictions, its clock and how soon it answers, what its user may
// do, whether it takes writes and replicas receive them in time, and whether the keys of group hold what this package puts
// there. In a cluster that is the primary that has them; what is not well with the others is added, and, as behind Sentinels
// that tell of replicas, what the user may not do on one; where no node tells the user who owns the slots, that is the only finding. lease is what the latency is
// measured against; 0 is 15 s.
//
// It reads, and writes one key that nothing else uses, PREFIX:{GROUP}:probe, which it deletes again. With group "" it looks
// at no group's data. The findings are in the order in which a person should read them. An error says that the server does
// not answer, or lets nobody in: then there are no findings. Calls of other methods do not depend on it.
func (s *Store) Check(ctx context.Context, group string, lease time.Duration) ([]Finding, error) {
	keys := group
	if group == "" {
		keys = standIn
	}
	if err := store.CheckName("group", keys); err != nil {
		return nil, err
	}
	if lease == 0 {
		lease = defaultLease
	}
	findings, err := s.checkServers(ctx, keys, lease)
	if err != nil {
		if f, told := unmapped(err); told {
			return []Finding{f}, nil
		}
		return nil, err
	}
	tried, err := s.checkUser(ctx, keys)
	if err != nil {
		return nil, err
	}
	short := slices.ContainsFunc(findings, func(f Finding) bool { return f.Check == "replicas" && f.Level == LevelFail })
	findings = append(findings, tried...)
	if short { // it has been said
		findings = slices.DeleteFunc(findings, func(f Finding) bool { return f.Check == "acknowledgement" })
	}
	if group == "" {
		return findings, nil
	}
	data, err := s.checkData(ctx, group)
	if err != nil {
		return nil, err
	}
	return append(findings, data...), nil
}

// unmapped returns what there is to say when the nodes of a cluster do not tell the user who owns the slots.
func unmapped(err error) (Finding, bool) {
	if !strings.Contains(err.Error(), untold+": NOPERM") {
		return Finding{}, false
	}
	t := trial{commands: []string{"cluster|slots"}}
	return t.permissions(), true
}

// checkUser tries what the user may do and what a write meets. Each server has users of its own, and any of a cluster or
// behind Sentinels may be the primary one day: what is not well with the others is added.
func (s *Store) checkUser(ctx context.Context, group string) ([]Finding, error) {
	var others []redis.UniversalClient
	var more [][]any
	var replicas []*redis.Client
	defer func() {
		for _, c := range replicas {
			_ = c.Close()
		}
	}()
	probe := s.key(group, "probe")
	tried, err := ask(ctx, s, group, func(ctx context.Context, servers servers, c redis.UniversalClient) (trial, error) {
		switch known := servers.(type) {
		case *cluster:
			others, more = known.others(ctx, c), known.needs()
		case *sentinels:
			for _, r := range known.replicas(ctx) {
				others, replicas = append(others, r), append(replicas, r)
			}
		}
		t, err := try(ctx, c, s.replicas, s.prefix, probe, more)
		if err != nil {
			return t, err
		}
		return t, t.listen(ctx, c, []string{s.channel(group, store.LeaseFree), s.channel(group, store.InboxFilled)})
	})
	if err != nil {
		return nil, err
	}
	findings := []Finding{tried.permissions()}
	for _, c := range others {
		seen, err := s.call(ctx, s.slots, func(ctx context.Context, _ servers) (any, error) {
			return try(ctx, c, s.replicas.unwaited(), s.prefix, probe, more)
		})
		if err != nil {
			continue // a primary has been looked at; a replica that is gone is none
		}
		if f := seen.(trial).permissions(); f.Level != LevelOK && f != findings[0] {
			f.Found = c.(*redis.Client).Options().Addr + ": " + f.Found
			findings = append(findings, f)
		}
	}
	return slices.Concat(findings, []Finding{tried.writing()}, tried.acknowledgement(s.replicas)), nil
}

// ask calls fn with a client of the server that holds the keys of group.
func ask[T any](ctx context.Context, s *Store, group string, fn func(context.Context, servers, redis.UniversalClient) (T, error)) (T, error) {
	got, err := s.call(ctx, s.slots, func(ctx context.Context, servers servers) (any, error) {
		c, err := servers.primary(ctx, group)
		if err != nil {
			return nil, err
		}
		answer, err := fn(ctx, servers, c)
		servers.heard(group, c, err)
		return answer, err
	})
	answer, _ := got.(T)
	return answer, s.judge(ctx, "check", err)
}

// checkServers looks at the server that holds the keys of group, and adds what is not well with the other primaries of a
// cluster.
func (s *Store) checkServers(ctx context.Context, group string, lease time.Duration) ([]Finding, error) {
	got, err := s.call(ctx, s.slots, func(ctx context.Context, servers servers) (any, error) {
		first, err := servers.primary(ctx, group)
		if err != nil {
			return nil, err
		}
		all, err := servers.all(ctx)
		if err != nil {
			return nil, err
		}
		others := slices.DeleteFunc(all, func(c redis.UniversalClient) bool { return c == first })
		var sights []sight
		for _, c := range slices.Concat([]redis.UniversalClient{first}, others) {
			seen, err := look(ctx, c)
			if err != nil {
				servers.heard(group, c, err)
				return nil, err
			}
			sights = append(sights, seen)
		}
		return sights, nil
	})
	if err := s.judge(ctx, "check", err); err != nil {
		return nil, err
	}
	var findings []Finding
	for i, seen := range got.([]sight) {
		for _, f := range seen.findings(lease, s.replicas.count) {
			switch {
			case i == 0:
				findings = append(findings, f)
			case f.Level != LevelOK && !slices.Contains(findings, f):
				f.Found = seen.addr + ": " + f.Found
				findings = append(findings, f)
			}
		}
	}
	return findings, nil
}

// checkData looks for what others have put under the keys of a group.
func (s *Store) checkData(ctx context.Context, group string) ([]Finding, error) {
	f := Finding{Check: "data"}
	places := []struct{ key, want string }{
		{s.leaseKey(group), "string"}, {s.fenceKey(group), "hash"}, {s.sessionsKey(group), "zset"}, {s.infoKey(group), "hash"},
		{s.bucketKey(group, store.InboxBucket), "hash"},
	}
	types, err := ask(ctx, s, group, func(ctx context.Context, _ servers, c redis.UniversalClient) ([]string, error) {
		cmds, err := c.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, at := range places {
				p.Type(ctx, at.key)
			}
			return nil
		})
		if err != nil && !refused(err) {
			return nil, err
		}
		var types []string
		for _, cmd := range cmds {
			types = append(types, cmd.(*redis.StatusCmd).Val())
		}
		return types, nil
	})
	if err != nil {
		return nil, err
	}
	var findings []Finding
	for i, at := range places {
		if found := types[i]; found != "" && found != "none" && found != at.want {
			findings = append(findings, f.fail(at.key+" holds a "+found+" and should hold a "+at.want,
				"find out who writes there, then DEL "+at.key))
		}
	}
	if findings != nil {
		return findings, nil // the calls below would say it again
	}
	for _, read := range []func() error{
		func() error { _, err := s.Leader(ctx, group); return err },
		func() error { _, _, err := s.Position(ctx, group); return err },
		func() error { _, err := s.Replicas(ctx, group); return err },
		func() error { // anybody may post, and what cannot be read ends every leader
			for _, err := range s.Read(ctx, group, nil, store.InboxBucket) {
				if err != nil {
					return err
				}
			}
			return nil
		},
	} {
		err := read()
		switch {
		case err == nil, errors.Is(err, store.ErrNoLeader):
		case errors.Is(err, store.ErrPermanent), refused(err):
			findings = append(findings, f.fail(err.Error(), "")) // it says what to do
		default:
			return nil, err
		}
	}
	if findings == nil {
		findings = []Finding{f.ok("the keys of group " + group + " hold nothing foreign")}
	}
	return slices.CompactFunc(findings, func(a, b Finding) bool { return a == b }), nil
}

// refused tells whether the server has answered that it does not do this, for us or at all.
func refused(err error) bool { return redisclient.Refused(err) }
