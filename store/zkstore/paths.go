package zkstore

import (
	"fmt"
	"net/url"
	"strings"

	"github.com/go-singleton/singleton/store"
)

// root is the znode under Config.Chroot that all groups lie in.
const root = "/singleton"

const maxChroot = 512

// components splits a chroot into names, "" first, and leaves out what is not a name.
func components(path string) []string {
	names := []string{""}
	for name := range strings.SplitSeq(path, "/") {
		if name != "" && store.CheckName("znode", name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// The znodes of a group.
func (s *Store) groupPath(group string) string    { return s.cfg.Chroot + root + "/" + group }
func (s *Store) fencePath(group string) string    { return s.groupPath(group) + "/fence" }
func (s *Store) leasePath(group string) string    { return s.groupPath(group) + "/lease" }
func (s *Store) sessionsPath(group string) string { return s.groupPath(group) + "/sessions" }
func (s *Store) inboxPath(group string) string    { return s.groupPath(group) + "/inbox" }
func (s *Store) ledgerPath(group string) string   { return s.groupPath(group) + "/ledger" }

func (s *Store) sessionPath(group, replica string) string {
	return s.sessionsPath(group) + "/" + replica
}

// bucketPath is the znode whose children are the records of a bucket. A colon cannot stand in a bucket's name.
func (s *Store) bucketPath(group, bucket string) string {
	if bucket == store.InboxBucket {
		return s.inboxPath(group)
	}
	return s.ledgerPath(group) + "/" + strings.ReplaceAll(bucket, "/", ":")
}

func (s *Store) recordPath(group, bucket, key string) string {
	return s.bucketPath(group, bucket) + "/" + escape(key)
}

// watchPath is the znode that a topic is about.
func (s *Store) watchPath(group string, t store.Topic) string {
	if t == store.LeaseFree {
		return s.leasePath(group)
	}
	return s.inboxPath(group)
}

// escape makes a key the name of a znode: slashes would be more znodes, and "." and ".." are none.
func escape(key string) string {
	key = strings.ReplaceAll(strings.ReplaceAll(key, "%", "%25"), "/", "%2F")
	if strings.Trim(key, ".") == "" {
		key = strings.ReplaceAll(key, ".", "%2E")
	}
	return key
}

// unescape is the inverse of escape, for names of its form only.
func unescape(name string) (string, error) {
	key, err := url.PathUnescape(name)
	if err == nil && (store.CheckKey(key) != nil || escape(key) != name) {
		err = fmt.Errorf("%.140q is no key", name)
	}
	return key, err
}
