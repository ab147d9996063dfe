package redisstore

import (
	"strings"
	"testing"

	"github.com/go-singleton/singleton/store"
)

// tag returns what a Redis Cluster hashes of a key.
func tag(key string) string {
	if _, rest, found := strings.Cut(key, "{"); found {
		if inside, _, closed := strings.Cut(rest, "}"); closed && inside != "" {
			return inside
		}
	}
	return key
}

// FuzzSEC3Keys checks that all keys of a group share a slot, and that no two names or buckets share a key.
func FuzzSEC3Keys(f *testing.F) {
	for _, seed := range [][4]string{
		{"a", "ab", "job", "run"}, {"a", "a", "history/x", "history/y"}, {"a}", "{a", "inbox", "r"}, {"", "a:lease", "job/x", "job"},
		{"a.b", "a-b", "seen", "info"}, {"g", "G", "lease", "fence"}, {"x", "y", "r", "r:r"},
	} {
		f.Add(seed[0], seed[1], seed[2], seed[3])
	}
	s := New(nil, nil)
	f.Fuzz(func(t *testing.T, a, b, one, other string) {
		if store.CheckName("group", a) != nil || store.CheckName("group", b) != nil || store.CheckBucket(one) != nil || store.CheckBucket(other) != nil {
			return
		}
		fixed := append(s.all(a), s.channel(a, store.LeaseFree), s.channel(a, store.InboxFilled))
		keys := map[string]bool{}
		for _, key := range append(fixed, s.bucketKey(a, one)) {
			if tag(key) != a {
				t.Errorf("%s is hashed by %q", key, tag(key))
			}
			if keys[key] {
				t.Errorf("%s has two meanings", key)
			}
			keys[key] = true
		}
		if one != other && s.bucketKey(a, one) == s.bucketKey(a, other) {
			t.Errorf("%q and %q share %s", one, other, s.bucketKey(a, one))
		}
		if a != b && s.bucketKey(a, one) == s.bucketKey(b, other) {
			t.Errorf("%q and %q share %s", a, b, s.bucketKey(a, one))
		}
	})
}
