package etcdstore

import (
	"strings"

	"github.com/go-singleton/singleton/store"
)

// root is what the keys of all groups begin with, after Config.Prefix.
const root = "singleton/"

const maxPrefix = 512

// The keys of a group.
func (s *Store) groupKey(group string) string       { return s.cfg.Prefix + root + group + "/" }
func (s *Store) fenceKey(group string) string       { return s.groupKey(group) + "fence" }
func (s *Store) leaseKey(group string) string       { return s.groupKey(group) + "lease" }
func (s *Store) ledgerKey(group string) string      { return s.groupKey(group) + "ledger" }
func (s *Store) sessionsPrefix(group string) string { return s.groupKey(group) + "sessions/" }

func (s *Store) sessionKey(group, replica string) string { return s.sessionsPrefix(group) + replica }

// bucketPrefix is what the keys of a bucket's records begin with. A colon cannot stand in a bucket's name, so that no
// bucket lies in another.
func (s *Store) bucketPrefix(group, bucket string) string {
	if bucket == store.InboxBucket {
		return s.groupKey(group) + "inbox/"
	}
	return s.groupKey(group) + "records/" + strings.ReplaceAll(bucket, "/", ":") + "/"
}

func (s *Store) recordKey(group, bucket, key string) string {
	return s.bucketPrefix(group, bucket) + key
}

// after is the first key behind key.
func after(key string) string { return key + "\x00" }
