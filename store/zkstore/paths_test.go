package zkstore

import (
	"strings"
	"testing"

	"github.com/go-singleton/singleton/store"
)

func FuzzKeysAreNamesOfZnodesAndBack(f *testing.F) {
	for _, key := range []string{"a", ".", "..", "...", "/", "a/b", "%", "%2F", "%2f", "a%2Fb", "//", "./.", "zookeeper", strings.Repeat("/", 512)} {
		f.Add(key)
	}
	f.Fuzz(func(t *testing.T, key string) {
		if store.CheckKey(key) != nil {
			return
		}
		name := escape(key)
		if strings.Contains(name, "/") || name == "." || name == ".." {
			t.Errorf("%q becomes %q", key, name)
		}
		if back, err := unescape(name); back != key || err != nil {
			t.Errorf("%q becomes %q becomes %q, %v", key, name, back, err)
		}
	})
}

func TestNamesThatNoKeyHasAreRefused(t *testing.T) {
	for _, name := range []string{"", "%", "%zz", "%2f", "%41", "a b", "ä", "%00", strings.Repeat("a", 513)} {
		if key, err := unescape(name); err == nil {
			t.Errorf("%q is taken for %q", name, key)
		}
	}
}

func TestBucketsHaveZnodesOfTheirOwn(t *testing.T) {
	s := New(Config{Servers: []string{"h"}, Chroot: "/c"})
	seen := map[string]bool{}
	for _, bucket := range []string{"job", "run", "seen", "inbox", "history/a", "history/a.b", "history"} {
		path := s.bucketPath("g", bucket)
		if seen[path] || !strings.HasPrefix(path, "/c/singleton/g/") {
			t.Errorf("bucket %s lies at %s", bucket, path)
		}
		seen[path] = true
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
