package redisstore

import (
	"strings"
	"testing"
	"time"
)

func TestWhatAServerTellsIsJudged(t *testing.T) {
	hello := func(server, version, role string) sight {
		return sight{hello: map[string]string{"server": server, "version": version, "role": role}}
	}
	info := func(fields ...string) sight {
		s := sight{info: map[string]string{}}
		for _, f := range fields {
			name, value, _ := strings.Cut(f, ":")
			s.info[name] = value
		}
		return s
	}
	saving := func(points string, fields ...string) sight {
		s := info(fields...)
		s.save = &points
		return s
	}
	clock := func(ahead, accuracy time.Duration) sight {
		return sight{replies: []time.Duration{time.Millisecond}, ahead: ahead, accuracy: accuracy}
	}
	latency := func(replies ...time.Duration) Finding { return sight{replies: replies}.latency(time.Second) }
	const ms = time.Millisecond
	for _, c := range []struct {
		got    Finding
		level  Level
		found  string
		remedy string
	}{
		{hello("redis", "6.2.0", "").version(), LevelOK, "Redis 6.2.0", ""},
		{hello("redis", "10.0.1", "").version(), LevelOK, "Redis 10.0.1", ""},
		{hello("redis", "6.0.16", "").version(), LevelFail, "Redis 6.0.16 is too old", "use Redis 6.2 or later"},
		{hello("redis", "5.9.9", "").version(), LevelFail, "5.9.9 is too old", "Valkey 7.2 or later"},
		{hello("valkey", "8.1.0", "").version(), LevelOK, "Valkey 8.1.0", ""},
		{hello("valkey", "7.1.0", "").version(), LevelFail, "Valkey 7.1.0 is too old", "Valkey 7.2"},
		{info("redis_version:7.2.4", "valkey_version:7.2.5").version(), LevelOK, "Valkey 7.2.5", ""},
		{info("redis_version:6.0.1").version(), LevelFail, "Redis 6.0.1", "6.2"},
		{sight{}.version(), LevelSkip, "not known", "look with a user that may"},

		{hello("", "", "master").role(), LevelOK, "a primary", ""},
		{hello("", "", "replica").role(), LevelFail, "takes no writes", "address of its primary"},
		{info("role:slave").role(), LevelFail, "takes no writes", "address of its primary"},
		{sight{}.role(), LevelSkip, "HELLO", ""},

		{info("connected_slaves:0").replicas(0), LevelOK, "none", ""},
		{info("connected_slaves:2").replicas(0), LevelWarn, "2, and writes do not wait", "min-replicas-to-write 1"},
		{info("connected_slaves:2", "min_slaves_good_slaves:2").replicas(0), LevelOK, "2, and no writes are taken", ""},
		{info("connected_slaves:2").replicas(1), LevelOK, "2, and leases and claims count when 1 have them", ""},
		{info("connected_slaves:1", "min_slaves_good_slaves:1").replicas(2), LevelFail, "1, and the store waits for 2", "lower MinReplicas"},
		{sight{}.replicas(0), LevelSkip, "INFO", ""},

		{info("aof_enabled:1").persistence(), LevelOK, "append-only", ""},
		{saving("3600 1", "aof_enabled:0").persistence(), LevelWarn, "snapshots only", "appendonly yes"},
		{saving("", "aof_enabled:0").persistence(), LevelWarn, "nothing on disk", "appendonly yes"},
		{info("aof_enabled:0").persistence(), LevelSkip, "CONFIG GET", ""},
		{saving("").persistence(), LevelSkip, "INFO", ""},

		{info("maxmemory_policy:noeviction", "used_memory:99").memory(), LevelOK, "nothing is evicted", ""},
		{info("maxmemory_policy:noeviction", "maxmemory:1000", "used_memory:899").memory(), LevelOK, "nothing is evicted", ""},
		{info("maxmemory_policy:noeviction", "maxmemory:1000", "used_memory:930").memory(), LevelWarn, "93 % of maxmemory", "raise maxmemory"},
		{info("maxmemory_policy:noeviction", "evicted_keys:12").memory(), LevelOK, "has evicted 12", ""},
		{info("maxmemory_policy:volatile-ttl", "maxmemory:0").memory(), LevelWarn, "volatile-ttl", "maxmemory-policy noeviction"},
		{info("maxmemory_policy:allkeys-lru", "maxmemory:1", "evicted_keys:3").memory(), LevelFail, "evicted 3", "maxmemory-policy noeviction"},
		{sight{}.memory(), LevelSkip, "INFO", ""},

		{clock(0, ms).clock(), LevelOK, "agree", ""},
		{clock(-3*time.Second, ms).clock(), LevelOK, "3s behind this machine's, to 2ms", ""},
		{clock(6*time.Second, 2*time.Second).clock(), LevelOK, "6s ahead", ""}, // it may be less than 5 s
		{clock(6*time.Second, 0).clock(), LevelWarn, "6s ahead", "NTP"},
		{clock(time.Hour, 0).clock(), LevelWarn, "1h0m0s ahead", "NTP"},
		{clock(-6*time.Second, 0).clock(), LevelWarn, "6s behind", "NTP"},
		{clock(-31*time.Second, 0).clock(), LevelFail, "fires no job", "NTP"},
		{sight{}.clock(), LevelSkip, "TIME", ""},

		{latency(ms, ms, 50*ms), LevelOK, "in 1ms, at the slowest in 50ms; an attempt to renew a lease of 1s may take 200ms", ""},
		{latency(ms, ms, 51*ms), LevelWarn, "slowest in 51ms", "at least 2s"},
		{latency(ms, 200*ms, 300*ms), LevelFail, "nobody can lead", "at least 7s"},
		{sight{}.latency(time.Second), LevelSkip, "TIME", ""},
	} {
		f := c.got
		if f.Level != c.level || !strings.Contains(f.Found, c.found) || !strings.Contains(f.Remedy, c.remedy) {
			t.Errorf("got %+v, want level %s, %q, %q", f, c.level, c.found, c.remedy)
		}
		if (f.Level == LevelOK) != (f.Remedy == "") {
			t.Errorf("%+v: a remedy belongs to what is not well, and only there", f)
		}
	}
}

func TestRefusalsAreReadAsEachServerPutsThem(t *testing.T) {
	for text, want := range map[string]string{
		"NOPERM this user has no permissions to run the 'hkeys' command":                      "+hkeys",
		"NOPERM this user has no permissions to run the 'hkeys' command or its subcommand":    "+hkeys",
		"NOPERM User leader has no permissions to run the 'hkeys' command":                    "+hkeys",
		"NOPERM this user has no permissions to access one of the keys used as arguments":     "~p:*",
		"NOPERM No permissions to access a key":                                               "~p:*",
		"NOPERM this user has no permissions to access one of the channels used as arguments": "&p:*",
		"NOPERM No permissions to access a channel":                                           "&p:*",
		"ERR unknown command 'HKEYS', with args beginning with: 'k' ":                         "rename no command",
		"WRONGTYPE Operation against a key holding the wrong kind of value":                   "",
		"READONLY You can't write against a read only replica.":                               "",
		"OOM command not allowed when used memory > 'maxmemory'.":                             "",
	} {
		tried := trial{prefix: "p"}
		if denied := tried.judge("hkeys", serverError(text)); denied != (want != "") {
			t.Errorf("%s: denied is %v", text, denied)
		}
		if f := tried.permissions(); !strings.Contains(f.Remedy, want) || (f.Level == LevelFail) != (want != "") {
			t.Errorf("%s: %+v, want %q", text, f, want)
		}
	}
}

func TestACommandThatIsRefusedTwiceIsNamedOnce(t *testing.T) {
	tried := trial{prefix: "p"}
	for _, command := range []string{"set", "get", "set", "get"} {
		tried.judge(command, serverError("NOPERM this user has no permissions to run the '"+command+"' command"))
	}
	if f := tried.permissions(); f.Found != "the user may not run get, set" || f.Remedy != "ACL SETUSER its-name +get +set" {
		t.Errorf("%+v", f)
	}
}

// serverError is an error as go-redis makes one of a server's answer.
type serverError string

func (e serverError) Error() string { return string(e) }
func (serverError) RedisError()     {}
