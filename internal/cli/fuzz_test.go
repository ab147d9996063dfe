package cli

import (
	"net"
	"strconv"
	"strings"
	"testing"
)

// FuzzStoreURL puts a password anywhere into the URL of a store: no error shows it, and neither does the name under which
// logs and tables know the store. Nobody is asked, and no file is read.
func FuzzStoreURL(f *testing.F) {
	for _, seed := range []struct{ head, tail string }{
		{"", ""},
		{"redis://", "@h"},
		{"redis://:", "@h"},
		{"redis://:", "@h:7000/3?dial_timeout=2s"},
		{"redis://u:", "@[::1]:7000?password_file=/p"},
		{"redis://u:", "/x@h"},
		{"redis://u:", "#x@h"},
		{"redis://u:", "?x@h"},
		{"redis://u:12/", "@h"},
		{"redis://u:%zz", "@h"},
		{"redis://u:%2F", "@h"},
		{"redis://u:pa://", "@h"},
		{"u:", "://@h"},
		{"", "://h"},
		{"redis:", ""},
		{"redis://h?password=", ""},
		{"redis://u:p@h?username=x&password=", "&db=1"},
		{"redis://u:x@h?read_timeout=", ""},
		{"redis://u:x@h/", ""},
		{"rediss://u:", "@h?ca=/c&cert=/a&key=/b"},
		{"rediss://u:", "@h?skip_verify=true"},
		{"unix://u:", "@/run/redis.sock?db=2"},
		{"unix:///run/", ".sock"},
		{"redis+sentinel://:", "@a,b:1,[::1]/main/2?sentinel_user=s"},
		{"redis+sentinel://u:x@a/main?sentinel_password_file=", ""},
		{"redis+sentinel://u:", "?@a/main"},
		{"rediss+cluster://u:", "@a,b/?ca=c"},
		{"redis+cluster://u:", "@a:1,b:2,"},
		{"redis+ring://u:", "@a"},
		{"memory:", ""},
	} {
		f.Add(seed.head, seed.tail)
	}
	f.Fuzz(func(t *testing.T, head, tail string) {
		if strings.Contains(head+tail, "81f3") {
			return // it may be part of a host
		}
		raw := head + canary + tail
		a, err := parseStore(raw)
		if err != nil {
			checkSecret(t, raw, err.Error())
			if text := err.Error(); text != line(text) || !strings.Contains(text, wantURL) {
				t.Errorf("%q: the error is no line with a remedy: %q", raw, text)
			}
			return
		}
		checkAddress(t, raw, a)
	})
}

// checkAddress checks what was made of a URL that holds the canary.
func checkAddress(t *testing.T, raw string, a *address) {
	t.Helper()
	var password string
	var hosts []string
	kinds := 0
	if o := a.one; o != nil {
		kinds, password = kinds+1, o.Password
		if o.Network == "unix" {
			if o.Addr == "" {
				t.Errorf("%q has no path", raw)
			}
		} else {
			hosts = []string{o.Addr}
		}
	}
	if o := a.sentinels; o != nil {
		kinds, password, hosts = kinds+1, o.Password, o.SentinelAddrs
		if o.MasterName == "" {
			t.Errorf("%q names no primary", raw)
		}
	}
	if o := a.cluster; o != nil {
		kinds, password, hosts = kinds+1, o.Password, o.Addrs
	}
	if kinds != 1 {
		t.Errorf("%q leads to %d kinds of servers", raw, kinds)
	}
	for _, host := range hosts {
		name, port, err := net.SplitHostPort(host)
		if n, bad := strconv.ParseUint(port, 10, 16); err != nil || bad != nil || n == 0 || name == "" {
			t.Errorf("%q leads to %q", raw, host)
		}
	}
	if strings.Contains(password, canary) {
		checkSecret(t, raw, a.name)
	}
	if a.name != line(a.name) {
		t.Errorf("%q is called %q", raw, a.name)
	}
}
