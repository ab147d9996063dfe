package redisstore_test

import (
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/redisstore"
)

// rules returns what docs/redis.md grants a user, for other keys than those with the prefix "singleton".
func rules(t testing.TB, prefix string, more ...string) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/redis.md")
	must(t, err)
	_, rest, found := strings.Cut(string(text), "ACL SETUSER singleton reset on >PASSWORD ")
	line, _, _ := strings.Cut(rest, "\n")
	if !found {
		t.Fatal("docs/redis.md has no rules")
	}
	return append(strings.Fields(strings.ReplaceAll(line, "singleton", prefix)), more...)
}

// grant gives a user of the name "few" the rules and nothing else, on each server.
func grant(t testing.TB, rules []string, servers ...*redistest.Server) {
	t.Helper()
	args := []any{"ACL", "SETUSER", "few", "reset", "on", ">pw"}
	for _, r := range rules {
		args = append(args, r)
	}
	for _, s := range servers {
		do(t, s.Client(), args...)
	}
}

// denials returns what a server has refused the user, since the last time.
func denials(t testing.TB, admin *redis.Client) (all []string) {
	t.Helper()
	logged, err := admin.ACLLog(t.Context(), 100).Result()
	must(t, err)
	for _, l := range logged {
		if l.Username == "few" {
			all = append(all, l.Reason+" "+l.Object)
		}
	}
	do(t, admin, "ACL", "LOG", "RESET")
	return all
}

func few(o *redis.Options) { o.Username, o.Password = "few", "pw" }

// thorough calls every method, watches, hears a hint, lets the connection for hints be idle, and watches less. It returns
// when that is done, or what was refused.
func thorough(t *testing.T, s *redisstore.Store, admin *redis.Client) (refused []string) {
	t.Helper()
	do(t, admin, "CONFIG", "RESETSTAT")
	redisstore.Silence(s, 200*time.Millisecond)
	wait := func(come func() bool) {
		until(t, func() bool {
			refused = append(refused, denials(t, admin)...)
			return len(refused) > 0 || come()
		})
	}
	sent := func(command string, n int) func() bool {
		return func() bool {
			_, rest, _ := strings.Cut(admin.Info(t.Context(), "commandstats").Val(), "cmdstat_"+command+":calls=")
			count, _, _ := strings.Cut(rest, ",")
			calls, _ := strconv.Atoi(count)
			return calls >= n
		}
	}
	hints := make(chan bool, 1000)
	must(t, s.Watch(t.Context(), "g", store.LeaseFree, func() { hints <- true }))
	wait(func() bool { return len(hints) > 0 })
	_ = everything(t.Context(), s) // the next test looks at its error
	wait(sent("ping", 2))
	wait(func() bool {
		inbox, stop := context.WithCancel(t.Context())
		must(t, s.Watch(inbox, "g", store.InboxFilled, stop)) // enough when the subscription stands
		return sent("unsubscribe", 1)()
	})
	return refused
}

// TestSEC2NothingIsRefusedUnderTheDocumentedRulesAndNoneIsNeedless takes one rule away at a time: something must then be
// refused, as the server's own log has it.
func TestSEC2NothingIsRefusedUnderTheDocumentedRulesAndNoneIsNeedless(t *testing.T) {
	server := redistest.Start(t)
	all := rules(t, "singleton")
	var commands []string
	for _, r := range all[2:] {
		commands = append(commands, strings.TrimPrefix(r, "+"))
	}
	if !slices.Equal(commands, documented(t)) {
		t.Errorf("docs/redis.md grants %v,\nthe package's documentation %v", commands, documented(t))
	}
	admin := server.Client()
	try := func(given []string) []string {
		grant(t, given, server)
		do(t, admin, "FLUSHALL")
		do(t, admin, "SCRIPT", "FLUSH")
		s := redisstore.New(server.Client(few), nil)
		defer s.Close()
		return thorough(t, s, admin)
	}
	if refused := try(all); len(refused) > 0 {
		t.Errorf("refused: %v", refused)
	}
	for i, r := range all {
		less := slices.Delete(slices.Clone(all), i, i+1)
		if refused := try(less); len(refused) == 0 {
			t.Errorf("without %s nothing is refused", r)
		}
	}
	grant(t, all, server)
	for _, name := range []string{"singleton", "leader"} { // keys and channels of others
		err := acquires(t, open(t, server.Client(few), &redisstore.Options{Prefix: name + "s"}))
		wantPermanent(t, err, "NOPERM", "grant")
	}
}

// TestSEC2RemoveACommandAndTheCallSaysWhatToDo: what a call needs is told by its error.
func TestSEC2RemoveACommandAndTheCallSaysWhatToDo(t *testing.T) {
	server := redistest.Start(t)
	all := rules(t, "singleton")
	silent := []string{"+publish", "+subscribe", "+unsubscribe", "+ping"} // hints only save time
	for i, r := range all[2:] {
		grant(t, slices.Delete(slices.Clone(all), i+2, i+3), server)
		do(t, server.Client(), "FLUSHALL")
		do(t, server.Client(), "SCRIPT", "FLUSH")
		s := redisstore.New(server.Client(few), nil)
		err := everything(t.Context(), s)
		if slices.Contains(silent, r) {
			must(t, err)
		} else {
			wantPermanent(t, err, "grant")
		}
		must(t, s.Close())
	}
}

// TestSEC2WhatMoreIsNeededIsDocumented tries each further rule, without which something is refused.
func TestSEC2WhatMoreIsNeededIsDocumented(t *testing.T) {
	text, err := os.ReadFile("../../docs/redis.md")
	must(t, err)
	server := redistest.Start(t)
	admin := server.Client()
	for _, c := range []struct {
		rule   string
		change func(*redis.Options)
		opts   redisstore.Options
	}{
		{"+select", func(o *redis.Options) { o.DB = 1 }, redisstore.Options{}},
		{"+client|setname", func(o *redis.Options) { o.ClientName = "billing" }, redisstore.Options{}},
		{"+wait", func(*redis.Options) {}, redisstore.Options{MinReplicas: 1, ReplicaTimeout: time.Millisecond}},
	} {
		if !strings.Contains(string(text), strings.ReplaceAll(c.rule, "|", `\|`)) {
			t.Errorf("docs/redis.md does not speak of %s", c.rule)
		}
		for _, more := range [][]string{nil, {c.rule}} {
			grant(t, rules(t, "singleton", more...), server)
			err := acquires(t, open(t, server.Client(few, c.change), &c.opts))
			refused := denials(t, admin)
			if allowed := more != nil; (len(refused) == 0) != allowed {
				t.Errorf("%s allowed %v: %v, refused %v", c.rule, allowed, err, refused)
			}
		}
	}
	for _, want := range []string{"+asking", `+cluster\|slots`, `+sentinel\|get-master-addr-by-name`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("docs/redis.md does not speak of %s", want)
		}
	}
}

// TestSEC2SentinelsAndClustersNeedWhatIsDocumented: the rest of it is tried where a slot is moved.
func TestSEC2SentinelsAndClustersNeedWhatIsDocumented(t *testing.T) {
	servers, nodes := sentinels.get(t), cluster.get(t)
	asFew := servers.Options()
	asFew.Username, asFew.Password, asFew.SentinelUsername, asFew.SentinelPassword = "few", "pw", "few", "pw"
	options := nodes.Options()
	options.Username, options.Password = "few", "pw"
	grant(t, rules(t, "acl"), servers.Servers...)
	for name, c := range map[string]struct {
		more    string
		servers []*redistest.Server
		keys    []string
		open    func() *redisstore.Store
	}{
		"Sentinels": {"+sentinel|get-master-addr-by-name", servers.Sentinels, nil,
			func() *redisstore.Store { return redisstore.NewFailover(asFew, &redisstore.Options{Prefix: "acl"}) }},
		"cluster": {"+cluster|slots", nodes.Nodes, rules(t, "acl"), func() *redisstore.Store {
			client := redis.NewClusterClient(options)
			t.Cleanup(func() { _ = client.Close() })
			return redisstore.New(client, &redisstore.Options{Prefix: "acl"})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			grant(t, c.keys, c.servers...)
			wantPermanent(t, acquires(t, ends(t, c.open())), "grant", "NOPERM")
			grant(t, append(c.keys, c.more), c.servers...)
			must(t, everything(t.Context(), ends(t, c.open())))
		})
	}
}
