package redisstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/clockjump"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store/redisstore"
)

// check returns the findings of a store about group g that are not well, and the names of all.
func check(t *testing.T, s *redisstore.Store) (bad []redisstore.Finding, names []string) {
	t.Helper()
	findings, err := s.Check(t.Context(), "g", 0)
	must(t, err)
	for _, f := range findings {
		names = append(names, f.Check)
		if f.Level != redisstore.LevelOK {
			bad = append(bad, f)
		}
	}
	return bad, slices.Compact(names)
}

// wantOne fails unless all is well but one thing.
func wantOne(t *testing.T, s *redisstore.Store, what string, level redisstore.Level, found, remedy string) {
	t.Helper()
	bad, _ := check(t, s)
	if len(bad) != 1 || bad[0].Check != what || bad[0].Level != level || !strings.Contains(bad[0].Found, found) || !strings.Contains(bad[0].Remedy, remedy) {
		t.Errorf("got %+v, want one finding, of %s, %s: %q, %q", bad, what, level, found, remedy)
	}
}

func TestCheckFindsNothingWhereAllIsWellAndLeavesAllAsItIs(t *testing.T) {
	client := redistest.Start(t, redistest.AppendOnly()).Client()
	s := open(t, client, nil)
	must(t, everything(t.Context(), s))
	l := lead(t, s, "a", "n3")
	keys := client.Keys(t.Context(), "*").Val()
	slices.Sort(keys)

	all := []string{"version", "role", "replicas", "persistence", "memory", "clock", "latency", "permissions", "writing", "data"}
	for name, s := range map[string]*redisstore.Store{
		"RESP3": s,
		"RESP2": open(t, redis.NewClient(&redis.Options{Addr: client.Options().Addr, Protocol: 2}), nil),
	} {
		if bad, names := check(t, s); len(bad) != 0 || !slices.Equal(names, all) {
			t.Errorf("%s: %+v of %v", name, bad, names)
		}
	}
	after := client.Keys(t.Context(), "*").Val()
	slices.Sort(after)
	if !slices.Equal(keys, after) {
		t.Errorf("keys %v, before %v", after, keys)
	}
	_, err := s.Renew(t.Context(), l)
	must(t, err)
}

func TestCheckNamesWhatEndangersLeases(t *testing.T) {
	server := redistest.Start(t, redistest.AppendOnly())
	client, s := server.Client(), open(t, server.Client(), nil)
	for _, c := range []struct {
		name          string
		breaks, mends []any
		check         string
		level         redisstore.Level
		found, remedy string
	}{
		{"eviction to come", []any{"CONFIG", "SET", "maxmemory-policy", "volatile-lru"}, []any{"CONFIG", "SET", "maxmemory-policy", "noeviction"},
			"memory", redisstore.LevelWarn, "volatile-lru", "CONFIG SET maxmemory-policy noeviction"},
		{"eviction", []any{"CONFIG", "SET", "maxmemory-policy", "volatile-lru", "maxmemory", "100mb"}, []any{"CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", 0},
			"memory", redisstore.LevelFail, "leases are the first to go", "CONFIG SET maxmemory-policy noeviction"},
		{"snapshots only", []any{"CONFIG", "SET", "appendonly", "no", "save", "3600 1"}, []any{"CONFIG", "SET", "appendonly", "yes", "save", ""},
			"persistence", redisstore.LevelWarn, "snapshots only", "CONFIG SET appendonly yes"},
		{"nothing on disk", []any{"CONFIG", "SET", "appendonly", "no"}, []any{"CONFIG", "SET", "appendonly", "yes"},
			"persistence", redisstore.LevelWarn, "nothing on disk", "CONFIG SET appendonly yes"},
		{"too few replicas", []any{"CONFIG", "SET", "min-replicas-to-write", 1}, []any{"CONFIG", "SET", "min-replicas-to-write", 0},
			"writing", redisstore.LevelFail, "NOREPLICAS", "min-replicas-to-write"},
		{"a foreign lease", []any{"RPUSH", "singleton:{g}:lease", "x"}, []any{"DEL", "singleton:{g}:lease"},
			"data", redisstore.LevelFail, "singleton:{g}:lease holds a list and should hold a string", "DEL singleton:{g}:lease"},
		{"foreign sessions", []any{"SET", "singleton:{g}:sessions", "x"}, []any{"DEL", "singleton:{g}:sessions"},
			"data", redisstore.LevelFail, "singleton:{g}:sessions holds a string", "DEL singleton:{g}:sessions"},
		{"another's lock", []any{"SET", "singleton:{g}:lease", "locked", "PX", 60000}, []any{"DEL", "singleton:{g}:lease"},
			"data", redisstore.LevelFail, "singleton:{g}:lease", ""},
		{"a position of no number", []any{"HSET", "singleton:{g}:fence", "committed", "x"}, []any{"DEL", "singleton:{g}:fence"},
			"data", redisstore.LevelFail, "DEL singleton:{g}:fence", ""},
		{"a session of no name", []any{"ZADD", "singleton:{g}:sessions", "inf", "a b"}, []any{"DEL", "singleton:{g}:sessions"},
			"data", redisstore.LevelFail, "singleton:{g}:sessions", ""},
		{"a message of no name", []any{"HSET", "singleton:{g}:inbox", "a b", "x"}, []any{"DEL", "singleton:{g}:inbox"},
			"data", redisstore.LevelFail, "singleton:{g}:inbox holds an entry that is not ours", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			do(t, client, c.breaks...)
			wantOne(t, s, c.check, c.level, c.found, c.remedy)
			do(t, client, c.mends...)
		})
	}
	if bad, _ := check(t, s); len(bad) != 0 {
		t.Errorf("all is mended: %+v", bad)
	}
	server.Kill()
	if _, err := s.Check(t.Context(), "g", 0); err == nil {
		t.Error("no server, no error")
	}
}

func TestCheckTellsAPrimaryFromItsReplica(t *testing.T) {
	primary := redistest.Start(t, redistest.AppendOnly(), redistest.Args("--repl-diskless-sync-delay", "0"))
	_, port, _ := strings.Cut(primary.Addr(), ":")
	replica := redistest.Start(t, redistest.AppendOnly(), redistest.Args("--replicaof", "127.0.0.1", port))
	client := primary.Client()
	until(t, func() bool {
		return strings.Contains(client.Info(t.Context(), "replication").Val(), "state=online")
	})
	wantOne(t, open(t, client, nil), "replicas", redisstore.LevelWarn, "1, and writes do not wait", "min-replicas-to-write 1")
	do(t, client, "CONFIG", "SET", "min-replicas-to-write", 1)
	if bad, _ := check(t, open(t, client, nil)); len(bad) != 0 {
		t.Errorf("with min-replicas-to-write: %+v", bad)
	}
	do(t, client, "CONFIG", "SET", "min-replicas-to-write", 0)
	replicated(t, primary, 1) // it may be busy with its first copy still
	if bad, _ := check(t, open(t, client, &redisstore.Options{MinReplicas: 1})); len(bad) != 0 {
		t.Errorf("with MinReplicas: %+v", bad)
	}
	wantOne(t, open(t, client, &redisstore.Options{MinReplicas: 2}), "replicas", redisstore.LevelFail, "waits for 2", "lower MinReplicas")
	do(t, client, "ACL", "SETUSER", "hurried", "on", ">pw", "~*", "&*", "+@all", "-wait")
	hurried := primary.Client(func(o *redis.Options) { o.Username, o.Password = "hurried", "pw" })
	wantOne(t, open(t, hurried, &redisstore.Options{MinReplicas: 1}), "permissions", redisstore.LevelFail, "wait", "+wait")
	bad, _ := check(t, open(t, replica.Client(), nil))
	if len(bad) != 2 || bad[0].Check != "role" || bad[1].Check != "writing" || bad[1].Remedy != "use the address of the primary" {
		t.Errorf("the replica: %+v", bad)
	}
}

func TestCheckLooksAtAllPrimariesOfACluster(t *testing.T) {
	nodes := cluster.get(t)
	client := redis.NewClusterClient(nodes.Options())
	defer client.Close()
	s := open(t, client, nil)
	owner, err := nodes.Owner(t.Context(), nodes.Nodes[0], "{g}")
	must(t, err)
	const policy = "maxmemory-policy"
	var other *redistest.Server
	for i := 0; other == nil; i++ { // somebody owns the other slots
		node, err := nodes.Owner(t.Context(), nodes.Nodes[0], fmt.Sprint(i))
		must(t, err)
		if node != owner {
			other = node
		}
	}
	for _, c := range []struct {
		client *redis.Client
		prefix string
	}{{owner.Client(), "the server"}, {other.Client(), other.Addr() + ": the server"}} {
		do(t, c.client, "CONFIG", "SET", policy, "volatile-lru")
		bad, _ := check(t, s)
		do(t, c.client, "CONFIG", "SET", policy, "noeviction")
		i := slices.IndexFunc(bad, func(f redisstore.Finding) bool { return f.Check == "memory" })
		if i < 0 || !strings.HasPrefix(bad[i].Found, c.prefix+" would evict") {
			t.Errorf("got %+v, want that %s would evict", bad, c.prefix)
		}
		for _, f := range bad { // each primary has a replica, and nothing is kept on disk
			if !slices.Contains([]string{"memory", "replicas", "persistence"}, f.Check) {
				t.Errorf("got %+v", f)
			}
		}
	}
}

func TestCheckAsksSentinelsForThePrimary(t *testing.T) {
	s := redisstore.NewFailover(sentinels.get(t).Options(), nil)
	defer s.Close()
	bad, _ := check(t, s)
	if len(bad) != 2 || bad[0].Check != "replicas" || bad[1].Check != "persistence" {
		t.Errorf("got %+v", bad)
	}
}

// TestSEC2CheckTriesEachServerBehindSentinels takes a command, and then all, away from a user on a replica alone.
func TestSEC2CheckTriesEachServerBehindSentinels(t *testing.T) {
	group := sentinels.get(t)
	options := group.Options()
	options.Username, options.Password = "few", "pw"
	primary := group.Primary(t.Context())
	i := slices.IndexFunc(group.Servers, func(s *redistest.Server) bool { return s != primary })
	replica := group.Servers[i]
	for _, c := range []struct {
		change        func()
		found, remedy string
	}{
		{func() {}, "", ""},
		{
			func() { do(t, replica.Client(), "ACL", "SETUSER", "few", "-evalsha") },
			replica.Addr() + ": the user may not run evalsha", "ACL SETUSER its-name +evalsha",
		},
		{
			func() { do(t, replica.Client(), "ACL", "DELUSER", "few") },
			replica.Addr() + ": the server does not let the user in: WRONGPASS", "ACL SETUSER its-name as on the primary",
		},
	} {
		grant(t, rules(t, "acl-check"), group.Servers...)
		c.change()
		s := redisstore.NewFailover(options, &redisstore.Options{Prefix: "acl-check"})
		findings, err := s.Check(t.Context(), "g", 0)
		must(t, err)
		must(t, s.Close())
		var wrong []redisstore.Finding
		for _, f := range findings {
			if f.Level == redisstore.LevelFail {
				wrong = append(wrong, f)
			}
		}
		if c.found == "" {
			if len(wrong) != 0 {
				t.Errorf("nothing is missing: %+v", wrong)
			}
			continue
		}
		if len(wrong) != 1 || wrong[0].Check != "permissions" || !strings.HasPrefix(wrong[0].Found, c.found) || !strings.HasPrefix(wrong[0].Remedy, c.remedy) {
			t.Errorf("want %q: %+v", c.found, wrong)
		}
	}
}

func TestSEC2CheckNamesEachPermissionThatIsMissing(t *testing.T) {
	server := redistest.Start(t)
	admin := server.Client()
	commands := documented(t)
	attempted := redisstore.Attempted()
	for _, c := range commands {
		if !slices.Contains(attempted, c) {
			t.Errorf("Check does not try %s", c)
		}
	}
	for _, c := range attempted {
		if !slices.Contains(commands, c) {
			t.Errorf("Check tries %s, which is not documented", c)
		}
	}
	as := func(keys, channels, without string) redisstore.Finding {
		t.Helper()
		rules := []any{"ACL", "SETUSER", "leader", "reset", "on", ">pw", "~" + keys, "&" + channels}
		for _, c := range commands {
			if c != without {
				rules = append(rules, "+"+c)
			}
		}
		do(t, admin, rules...)
		client := server.Client(func(o *redis.Options) { o.Username, o.Password = "leader", "pw" })
		defer client.Close()
		s := redisstore.New(client, nil)
		defer s.Close()
		findings, err := s.Check(t.Context(), "g", 0)
		must(t, err)
		i := slices.IndexFunc(findings, func(f redisstore.Finding) bool { return f.Check == "permissions" })
		return findings[i]
	}
	for _, c := range []struct{ keys, channels, without, remedy string }{
		{"singleton:*", "singleton:*", "", ""},
		{"singleton:{g}:*", "singleton:{g}:*", "", ""},
		{"other:*", "singleton:*", "", "ACL SETUSER its-name ~singleton:*"},
		{"singleton:*", "other:*", "", "ACL SETUSER its-name &singleton:*"},
		{"singleton:{h}:*", "other:*", "get", "ACL SETUSER its-name +get ~singleton:* &singleton:*"},
	} {
		if f := as(c.keys, c.channels, c.without); f.Remedy != c.remedy || (f.Level == redisstore.LevelOK) != (c.remedy == "") {
			t.Errorf("%+v: got %+v", c, f)
		}
	}
	for _, c := range commands {
		if f := as("singleton:*", "singleton:*", c); f.Level != redisstore.LevelFail || f.Remedy != "ACL SETUSER its-name +"+c {
			t.Errorf("without %s: %+v", c, f)
		}
	}
}

// TestSEC2CheckTriesEachNodeOfACluster takes a command away from a user, on all nodes and on a replica alone.
func TestSEC2CheckTriesEachNodeOfACluster(t *testing.T) {
	nodes := cluster.get(t)
	options := nodes.Options()
	options.Username, options.Password = "few", "pw"
	client := redis.NewClusterClient(options)
	defer client.Close()
	owner, err := nodes.Owner(t.Context(), nodes.Nodes[0], "{g}")
	must(t, err)
	replica := nodes.Replica(owner)
	all := []string{"+cluster|slots", "+asking", "+wait"}
	for _, c := range []struct {
		lacks    string
		on       []*redistest.Server
		found    string
		measured bool // the rest could be looked at, too
	}{
		{"", nil, "", true},
		{"+asking", nodes.Nodes, "the user may not run asking", true},
		{"+asking", []*redistest.Server{replica}, replica.Addr() + ": the user may not run asking", true},
		{"+wait", []*redistest.Server{replica}, replica.Addr() + ": the user may not run wait", true},
		{"+cluster|slots", []*redistest.Server{replica}, replica.Addr() + ": the user may not run cluster|slots", true},
		{"+cluster|slots", []*redistest.Server{owner}, "the user may not run cluster|slots", true},
		{"+cluster|slots", nodes.Nodes, "the user may not run cluster|slots", false},
	} {
		grant(t, rules(t, "acl-check", all...), nodes.Nodes...)
		if c.lacks != "" {
			grant(t, rules(t, "acl-check", slices.DeleteFunc(slices.Clone(all), func(r string) bool { return r == c.lacks })...), c.on...)
		}
		s := redisstore.New(client, &redisstore.Options{Prefix: "acl-check", MinReplicas: 1, ReplicaTimeout: 2 * time.Second})
		findings, err := s.Check(t.Context(), "g", 0)
		must(t, err)
		must(t, s.Close())
		var wrong []redisstore.Finding
		names := map[string]int{}
		for _, f := range findings {
			names[f.Check]++
			if f.Level == redisstore.LevelFail {
				wrong = append(wrong, f)
			}
		}
		if c.found == "" {
			if len(wrong) > 0 || names["permissions"] != 1 || names["acknowledgement"] != 1 {
				t.Errorf("nothing is missing: %+v", findings)
			}
			continue
		}
		if len(wrong) != 1 || wrong[0].Check != "permissions" || wrong[0].Found != c.found || wrong[0].Remedy != "ACL SETUSER its-name "+c.lacks {
			t.Errorf("without %s on %d nodes: %+v", c.lacks, len(c.on), wrong)
		}
		if measured := names["latency"] > 0; measured != c.measured {
			t.Errorf("without %s on %d nodes: %v", c.lacks, len(c.on), names)
		}
	}
}

func TestCheckTriesWhetherReplicasReceiveAWriteInTime(t *testing.T) {
	primary, replica := pair(t)
	do(t, primary.Client(), "CONFIG", "SET", "appendonly", "yes")
	patient := open(t, primary.Client(), &redisstore.Options{MinReplicas: 1, ReplicaTimeout: 2 * time.Second})
	if bad, names := check(t, patient); len(bad) != 0 || !slices.Contains(names, "acknowledgement") {
		t.Errorf("%+v of %v", bad, names)
	}
	if _, names := check(t, open(t, primary.Client(), nil)); slices.Contains(names, "acknowledgement") {
		t.Error("nothing is waited for, and it was looked at")
	}
	s := open(t, primary.Client(), &redisstore.Options{MinReplicas: 1, ReplicaTimeout: 50 * time.Millisecond})
	replica.Stop() // it is connected all the same
	wantOne(t, s, "acknowledgement", redisstore.LevelFail, "0 of 1 replicas have received a write within 50ms", "ReplicaTimeout")
	replica.Cont()
	wantOne(t, open(t, primary.Client(), &redisstore.Options{MinReplicas: 2, ReplicaTimeout: time.Millisecond}), "replicas",
		redisstore.LevelFail, "waits for 2", "lower MinReplicas")
}

func TestCheckSaysWhatItMayNotSee(t *testing.T) {
	server := redistest.Start(t)
	do(t, server.Client(), "ACL", "SETUSER", "blind", "on", ">pw", "~*", "&*", "+@all", "-info", "-config")
	s := open(t, server.Client(func(o *redis.Options) { o.Username, o.Password = "blind", "pw" }), nil)
	bad, _ := check(t, s)
	var skipped []string
	for _, f := range bad {
		if f.Level != redisstore.LevelSkip || f.Remedy == "" {
			t.Errorf("got %+v", f)
		}
		skipped = append(skipped, f.Check)
	}
	if !slices.Equal(skipped, []string{"replicas", "persistence", "memory"}) {
		t.Errorf("not seen: %v", skipped)
	}
}

func TestB19CheckTellsAClockThatIsOff(t *testing.T) {
	clock := clockjump.Start(t)
	s := open(t, redistest.Start(t, redistest.Clock(clock)).Client(), nil)
	for off, want := range map[time.Duration]redisstore.Level{
		-time.Hour: redisstore.LevelFail, time.Hour: redisstore.LevelWarn, time.Second: redisstore.LevelOK,
	} {
		clock.Jump(off - clock.Offset())
		findings, err := s.Check(t.Context(), "", 0)
		must(t, err)
		for _, f := range findings {
			if f.Check == "clock" && f.Level != want {
				t.Errorf("%v: %+v, want %s", off, f, want)
			}
			if f.Check == "data" {
				t.Errorf("no group is named: %+v", f)
			}
		}
	}
}

func TestB17CheckIsRefusedWithTheRemedy(t *testing.T) {
	server := redistest.Start(t, redistest.Args("--requirepass", "canary-right"))
	s := open(t, server.Client(func(o *redis.Options) { o.Password = "canary-wrong" }), nil)
	findings, err := s.Check(t.Context(), "g", 0)
	wantPermanent(t, err, "WRONGPASS", "set those that it knows")
	if text := fmt.Sprint(findings, err); strings.Contains(text, "canary") {
		t.Errorf("SEC7: the password is in %s", text)
	}
	s = open(t, server.Client(func(o *redis.Options) { o.Password = "canary-right" }), nil)
	if _, err := s.Check(t.Context(), "a b", 0); err == nil {
		t.Error("a bad name is taken")
	}
	findings, err = s.Check(t.Context(), "g", time.Millisecond)
	must(t, err)
	if text := fmt.Sprint(findings); strings.Contains(text, "canary") {
		t.Errorf("SEC7: the password is in %s", text)
	}
	must(t, acquires(t, s))
}
