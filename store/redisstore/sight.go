package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	samples    = 10               // questions for the time
	sampling   = 2 * time.Second  // no further one after that
	clockLimit = 5 * time.Second  // how far the server's clock may be from ours
	clockReach = 30 * time.Second // a scheduler whose clock is further ahead claims nothing
	memoryFull = 90               // per cent
)

// sight is what a server tells of itself.
type sight struct {
	addr  string
	hello map[string]string // server, version, mode, role
	info  map[string]string // by field; nil when the user may not ask
	save  *string           // when snapshots are made; nil when the user may not ask

	replies  []time.Duration // how long answers took, shortest first
	ahead    time.Duration   // the server's clock less ours, by the quickest answer
	accuracy time.Duration   // of ahead
}

// look asks a server.
func look(ctx context.Context, c redis.UniversalClient) (sight, error) {
	var s sight
	if own, ok := c.(*redis.Client); ok {
		s.addr = own.Options().Addr
	}
	greeting, err := c.Do(ctx, "hello").Result() // needed for each connection: whoever is let in may send it
	if err != nil && !refused(err) {
		return s, err
	}
	s.hello = pairs(greeting)
	for begun := time.Now(); len(s.replies) < samples && time.Since(begun) < sampling; {
		sent := time.Now()
		server, err := c.Time(ctx).Result()
		if err != nil {
			if refused(err) && len(s.replies) == 0 {
				break
			}
			return s, err
		}
		took := time.Since(sent)
		if len(s.replies) == 0 || took < slices.Min(s.replies) {
			s.ahead, s.accuracy = server.Sub(sent.Add(took/2)), took/2
		}
		s.replies = append(s.replies, took)
	}
	slices.Sort(s.replies)
	text, err := c.Info(ctx).Result()
	switch {
	case err == nil:
		s.info = map[string]string{}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			s.info[name] = value
		}
	case !refused(err):
		return s, err
	}
	points, err := c.ConfigGet(ctx, "save").Result()
	if err != nil && !refused(err) {
		return s, err
	}
	if save, known := points["save"]; known {
		s.save = &save
	}
	return s, nil
}

// pairs returns the texts of a reply that is a map, or a list of keys and values as RESP2 has it.
func pairs(reply any) map[string]string {
	texts := map[string]string{}
	switch r := reply.(type) {
	case map[any]any:
		for k, v := range r {
			texts[fmt.Sprint(k)] = fmt.Sprint(v)
		}
	case []any:
		for i := 1; i < len(r); i += 2 {
			texts[fmt.Sprint(r[i-1])] = fmt.Sprint(r[i])
		}
	}
	return texts
}

// findings judges it, for leases of that length and a store that waits for so many replicas.
func (s sight) findings(lease time.Duration, waited int) []Finding {
	return []Finding{s.version(), s.role(), s.replicas(waited), s.persistence(), s.memory(), s.clock(), s.latency(lease)}
}

// number returns a field of INFO, 0 when there is none.
func (s sight) number(field string) int64 {
	n, _ := strconv.ParseInt(s.info[field], 10, 64)
	return n
}

// version tells whether the server is one that has all commands.
func (s sight) version() Finding {
	f := Finding{Check: "version"}
	name, version, least := "Redis", s.hello["version"], [2]int{6, 2}
	if version == "" {
		version = s.info["redis_version"]
	}
	if own := s.info["valkey_version"]; own != "" || s.hello["server"] == "valkey" {
		name, least = "Valkey", [2]int{7, 2}
		if own != "" {
			version = own
		}
	}
	var major, minor int
	if n, _ := fmt.Sscanf(version, "%d.%d", &major, &minor); n != 2 {
		return f.skip("HELLO")
	}
	found := name + " " + version
	if mode := s.hello["mode"]; mode != "" && mode != "standalone" {
		found += ", " + mode
	}
	if slices.Compare([]int{major, minor}, least[:]) < 0 {
		return f.fail(found+" is too old", "use Redis 6.2 or later, or Valkey 7.2 or later")
	}
	return f.ok(found)
}

// role tells whether the server is one that takes writes.
func (s sight) role() Finding {
	f := Finding{Check: "role"}
	role := s.hello["role"]
	if role == "" {
		role = s.info["role"]
	}
	switch role {
	case "":
		return f.skip("HELLO")
	case "slave", "replica":
		return f.fail("a replica, which takes no writes", "use the address of its primary")
	}
	return f.ok("a primary")
}

// replicas tells what a failover can forget; the store waits for so many of them.
func (s sight) replicas(waited int) Finding {
	f := Finding{Check: "replicas"}
	if s.info == nil {
		return f.skip("INFO")
	}
	n := s.number("connected_slaves")
	_, minimum := s.info["min_slaves_good_slaves"] // there only where one is set
	switch {
	case n < int64(waited):
		return f.fail(fmt.Sprintf("%d, and the store waits for %d, so that nothing is acquired or committed", n, waited),
			"bring the others back, or lower MinReplicas")
	case n > 0 && waited > 0:
		return f.ok(fmt.Sprintf("%d, and leases and claims count when %d have them", n, waited))
	case n > 0 && minimum:
		return f.ok(fmt.Sprintf("%d, and no writes are taken when too few keep up", n))
	case n > 0:
		return f.warn(fmt.Sprintf("%d, and writes do not wait for them: a failover can forget the last lease and the last claims", n),
			"narrow it with CONFIG SET min-replicas-to-write 1 and min-replicas-max-lag 2, or let the store wait for them (MinReplicas, in a URL min_replicas=1)")
	}
	return f.ok("none")
}

// persistence tells what a restart forgets.
func (s sight) persistence() Finding {
	f := Finding{Check: "persistence"}
	const remedy = "CONFIG SET appendonly yes, and the same in its configuration file"
	switch {
	case s.info["aof_enabled"] == "1":
		return f.ok("an append-only file")
	case s.info["aof_enabled"] == "":
		return f.skip("INFO")
	case s.save == nil:
		return f.skip("CONFIG GET")
	case *s.save == "":
		return f.warn("the server keeps nothing on disk, so that a restart loses leases and the records of runs", remedy)
	}
	return f.warn("snapshots only, so that a crash loses the leases and the records of runs since the last", remedy)
}

// memory tells what happens when the server's memory is full.
func (s sight) memory() Finding {
	f := Finding{Check: "memory"}
	policy, most := s.info["maxmemory_policy"], s.number("maxmemory")
	if policy == "" {
		return f.skip("INFO")
	}
	evicted := ""
	if n := s.number("evicted_keys"); n > 0 {
		evicted = fmt.Sprintf("; it has evicted %d since its start", n)
	}
	const remedy = "CONFIG SET maxmemory-policy noeviction, and the same in its configuration file"
	switch used := s.number("used_memory"); {
	case policy != "noeviction" && most == 0:
		return f.warn(fmt.Sprintf("the server would evict keys (maxmemory-policy %s) once a maxmemory is set, leases first%s", policy, evicted), remedy)
	case policy != "noeviction":
		return f.fail(fmt.Sprintf("the server evicts keys (maxmemory-policy %s), and leases are the first to go%s", policy, evicted), remedy)
	case most > 0 && used >= most/100*memoryFull:
		return f.warn(fmt.Sprintf("%d %% of maxmemory are in use; when all is, nothing can be recorded%s", used*100/most, evicted),
			"raise maxmemory or remove what fills it")
	}
	return f.ok("nothing is evicted (maxmemory-policy noeviction)" + evicted)
}

// clock tells how far the server's clock is from ours.
func (s sight) clock() Finding {
	f := Finding{Check: "clock"}
	if len(s.replies) == 0 {
		return f.skip("TIME")
	}
	off, known := s.ahead.Abs(), s.accuracy.Round(time.Millisecond)+time.Millisecond
	found := "the clocks of the server and of this machine agree"
	if off > known {
		way := "ahead of"
		if s.ahead < 0 {
			way = "behind"
		}
		found = fmt.Sprintf("the clock of the server is %v %s this machine's, to %v", off.Round(time.Millisecond), way, known)
	}
	const remedy = "keep both in time by NTP"
	switch {
	case off <= clockLimit+s.accuracy:
		return f.ok(found)
	case s.ahead < -clockReach-s.accuracy:
		return f.fail(found+", so that a leader here fires no job", remedy)
	}
	return f.warn(found, remedy)
}

// latency tells whether renewals come through in time: an attempt has four times what the slowest of the last replies
// took, and a fifth of the lease at most.
func (s sight) latency(lease time.Duration) Finding {
	f := Finding{Check: "latency"}
	if len(s.replies) == 0 {
		return f.skip("TIME")
	}
	median, slowest, attempt := s.replies[len(s.replies)/2], s.replies[len(s.replies)-1], lease/5
	found := fmt.Sprintf("the server answers in %v, at the slowest in %v; an attempt to renew a lease of %v may take %v",
		brief(median), brief(slowest), lease, attempt)
	remedy := fmt.Sprintf("use a lease of at least %v, or a server that is nearer or less busy", (20*slowest + time.Second).Truncate(time.Second))
	switch {
	case median >= attempt:
		return f.fail(found+", so that nobody can lead", remedy)
	case 4*slowest > attempt:
		return f.warn(found, remedy)
	}
	return f.ok(found)
}

// brief cuts a duration to the digits that mean something.
func brief(d time.Duration) time.Duration {
	for _, unit := range []time.Duration{time.Second, 100 * time.Millisecond, time.Millisecond, 100 * time.Microsecond} {
		if d >= 10*unit {
			return d.Round(unit)
		}
	}
	return d.Round(10 * time.Microsecond)
}
