package cli

import (
	"strings"
	"testing"
	"time"
)

func TestURLsOfRedlock(t *testing.T) {
	for url, want := range map[string]struct{ name, nodes string }{
		"redlock://a,b,c":   {"redlock://a:6379,b:6379,c:6379", "a:6379 b:6379 c:6379"},
		"redlocks://a,b,c":  {"redlocks://a:6379,b:6379,c:6379", "a:6379 b:6379 c:6379"},
		"redlock://a,a:1,b": {"redlock://a:6379,a:1,b:6379", "a:6379 a:1 b:6379"},
		"redlock://[::1]:7000,[::1]:7001,c/2?dial_timeout=2s": {"redlock://[::1]:7000,[::1]:7001,c:6379/2",
			"[::1]:7000/2 [::1]:7001/2 c:6379/2"},
		"redlock://u:" + canary + "@a,b,c:1": {"redlock://u:xxxxx@a:6379,b:6379,c:1",
			"u:PW@a:6379 u:PW@b:6379 u:PW@c:1"},
		"redlock://:" + canary + "@a,v:" + canary + "2@b,c": {"redlock://:xxxxx@a:6379,v:xxxxx@b:6379,c:6379",
			":PW@a:6379 v:PW2@b:6379 :PW@c:6379"},
		"redlock://a,b,c,d,e?ca=/c": {},
	} {
		q, err := parseRedlock(url)
		if want.name == "" {
			if err == nil {
				t.Errorf("%s is accepted", url)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		var nodes []string
		for _, o := range q.nodes {
			text := ""
			if o.Username != "" || o.Password != "" {
				text = o.Username + ":" + strings.Replace(o.Password, canary, "PW", 1) + "@"
			}
			if text += o.Addr; o.DB != 0 {
				text += "/" + string(rune('0'+o.DB))
			}
			nodes = append(nodes, text)
			if (o.TLSConfig != nil) != strings.HasPrefix(url, "redlocks") {
				t.Errorf("%s: TLS is %+v", url, o.TLSConfig)
			}
			if strings.Contains(url, "dial_timeout") && o.DialTimeout != 2*time.Second {
				t.Errorf("%s: an option is lost", url)
			}
		}
		if got := strings.Join(nodes, " "); q.name != want.name || got != want.nodes {
			t.Errorf("%s: %s, %s", url, q.name, got)
		}
		checkSecret(t, url, q.name)
	}
}

func TestSEC7BadURLsOfRedlockAreNotRepeated(t *testing.T) {
	for url, want := range map[string]string{
		"redlock://":                                       "empty host",
		"redlock://a":                                      "names 1 hosts",
		"redlock://a,b":                                    "fewer than 3",
		"redlock://a,b,a:6379":                             "names a host twice",
		"redlock://a,,b":                                   "empty host",
		"redlock://a,b,":                                   "empty host",
		"redlock://a,b,c/x":                                "the number of a database",
		"redlock://a,b,c?nothing=1":                        "an option that is not known",
		"redlock://a,b,c?min_replicas=1":                   "no replicas",
		"redlock://a,b,c?ca=/c":                            "belong to TLS",
		"redlock://" + canary + "@a,b,c":                   "one word before the @",
		"redlock://u:" + canary + ",x@a,b,c":               "cannot be read",
		"redlock://u:1,x:" + canary + "@a,b,c":             "not the first",
		"redlock://u:12/" + canary + "@a,b,c":              "cannot be read",
		"redlock://u:12#" + canary + "@a,b,c":              "cannot be read",
		"redlock://u:%zz" + canary + "@a,b,c":              "cannot be read",
		"redlock://u:" + canary + "@a,b:c:d,e":             "cannot be read",
		"redlock://a,u:" + canary + "@b,c":                 "not the first",
		"redlock://:" + canary + "@a,b,c?ca=":              "an empty option",
		"redlock://:" + canary + "@a,b,c?password_file=/p": "give one of them",
	} {
		_, err := opens(url)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), wantRedlock) {
			t.Errorf("%s: %v; want it to say %q", url, err, want)
			continue
		}
		checkSecret(t, url, err.Error())
		call(t, nil, "status", "--group", "g", "--store", url)
	}
}
