package redisstore

import (
	"strings"

	"github.com/go-singleton/singleton/store"
)

// key returns the name of one of a group's keys or channels.
func (s *Store) key(group, what string) string { return s.prefix + ":{" + group + "}:" + what }

func (s *Store) leaseKey(group string) string    { return s.key(group, "lease") }
func (s *Store) fenceKey(group string) string    { return s.key(group, "fence") }
func (s *Store) sessionsKey(group string) string { return s.key(group, "sessions") }
func (s *Store) infoKey(group string) string     { return s.key(group, "info") }

// all returns the keys that scripts about a lease and a session want.
func (s *Store) all(group string) []string {
	return []string{s.leaseKey(group), s.fenceKey(group), s.sessionsKey(group), s.infoKey(group)}
}

func (s *Store) bucketKey(group, bucket string) string {
	if bucket == store.InboxBucket {
		return s.key(group, store.InboxBucket)
	}
	return s.key(group, "r:"+bucket)
}

// channel returns where the hints of a topic are published.
func (s *Store) channel(group string, t store.Topic) string {
	if t == store.InboxFilled {
		return s.key(group, "post")
	}
	return s.key(group, "wake")
}

// leaseValue is what a lease's key holds: names have no blanks, so that two owners never share one.
func leaseValue(token, replica, nonce string) string {
	return strings.Join([]string{token, replica, nonce}, " ")
}
