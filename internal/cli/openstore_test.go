package cli

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

func TestStoresOpenWithoutAsking(t *testing.T) {
	for url, name := range map[string]string{
		"memory:":                    "memory:",
		"memory://":                  "memory:",
		"redis://example.org":        "redis://example.org:6379",
		"redis://":                   "redis://localhost:6379",
		"redis://example.org:7000/3": "redis://example.org:7000/3",
		"rediss://u:" + canary + "@example.org:7000/3?skip_verify=true": "rediss://u:xxxxx@example.org:7000/3",
		"redis://:" + canary + "@[::1]:7000":                            "redis://:xxxxx@[::1]:7000",
		"unix://u:" + canary + "@/run/redis.sock?db=2":                  "unix://u:xxxxx@/run/redis.sock",
		"unix:///run/redis.sock":                                        "unix:///run/redis.sock",
	} {
		st, err := opens(url)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		if st.name != name {
			t.Errorf("%s is called %s, want %s", url, st.name, name)
		}
		if err := st.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSEC7BadStoreURLsAreNotRepeated gives URLs whose password would show if any part of them was.
func TestSEC7BadStoreURLsAreNotRepeated(t *testing.T) {
	for _, url := range []string{
		canary,
		"redis:" + canary,
		"u:" + canary + "@example.org",
		"http://u:" + canary + "@example.org",
		"redis://u:" + canary + "/x@example.org",
		"redis://u:" + canary + "#x@example.org",
		"redis://u:" + canary + "?x@example.org",
		"redis://u:12/" + canary + "@example.org",
		"redis://u:12#" + canary + "@example.org",
		"redis://" + canary + "@example.org",
		"redis://12/" + canary + "@example.org",
		"redis://u:%zz" + canary + "@example.org",
		"redis://u:x " + canary + "@example.org",
		"redis://u:" + canary + "@example.org:port",
		"redis://u:" + canary + "@example.org:0x1",
		"redis://u:" + canary + "@example.org/db",
		"redis://u:" + canary + "@example.org/1/2",
		"redis://u:" + canary + "@example.org?password=" + canary,
		"redis://u:" + canary + "@example.org?read_timeout=" + canary,
		"unix://u:" + canary + "@",
		"redis://u:" + canary + "@exa mple.org",
		"redis://u:" + canary + "@a,b:1",
		"redis://u:" + canary + "@a:1,b:2",
	} {
		_, err := opens(url)
		if err == nil {
			t.Errorf("%s is accepted", url)
			continue
		}
		checkSecret(t, url, err.Error())
		if !strings.Contains(err.Error(), "want redis://") {
			t.Errorf("%s: the error says no remedy: %v", url, err)
		}
		for _, command := range []string{"status", "history"} {
			call(t, nil, command, "--group", "g", "--store", url)
			call(t, map[string]string{"REDIS_URL": url}, command, "--group", "g")
			call(t, map[string]string{"SINGLETON_STORE": url}, command, "--group", "g")
		}
		call(t, nil, "cron", "--group", "g", "--store", url, write(t, "jobs.cron", "@daily true\n"))
	}
}

// TestURLsOfOtherPrograms asks for a store that another program knows, which adds its opener to the same commands.
func TestURLsOfOtherPrograms(t *testing.T) {
	for _, url := range []string{"etcd://u:" + canary + "@h1,h2", "etcds://h"} {
		r := call(t, nil, "status", "--group", "g", "--store", url)
		scheme, _, _ := strings.Cut(url, "://")
		r.want(t, exitUsage, "", "singleton: status: --store: stores of the kind \""+scheme+"://\" are for singleton-etcd, which has the "+
			"same commands; build it in a clone of https://github.com/go-singleton/singleton: "+
			"go build -C store/etcdstore -o \"$PWD/\" ./cmd/singleton-etcd; see singleton status --help\n")
	}
	var asked string
	a := &app{openers: Openers{"etcd": func(url string, lease time.Duration, _ *slog.Logger) (store.Store, string, error) {
		asked = url + " " + lease.String()
		return memstore.New(), "etcd://u:xxxxx@h", nil
	}}}
	url := "etcd://u:" + canary + "@h"
	st, err := a.open(place{url, "--store"}, time.Second, slog.New(slog.DiscardHandler))
	if err != nil || asked != url+" 1s" || st.name != "etcd://u:xxxxx@h" || st.alone {
		t.Errorf("asked for %q, got %+v, %v", asked, st, err)
	}
}
