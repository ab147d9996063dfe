package store

import (
	"fmt"
	"time"
)

// Bounds that the checks below apply, the same on every store.
const (
	MaxToken    = 1<<53 - 1      // the largest token: every JSON reader and Lua script holds it exactly
	MaxDuration = 24 * time.Hour // the longest lease or session
	maxKey      = 512
	maxNonce    = 64
)

// CheckCandidate returns an error unless group and c can be given to a store: valid names, a nonce of 1 to 64 bytes of
// printable ASCII without blanks, durations from 1 ms to MaxDuration, Info of at most MaxInfo and a Floor below
// MaxToken.
func CheckCandidate(group string, c Candidate) error {
	if err := checkOwner(group, c.ID, c.Nonce); err != nil {
		return err
	}
	if err := checkInfo(c.Info); err != nil {
		return err
	}
	if err := checkDuration("lease", c.TTL); err != nil {
		return err
	}
	if err := checkDuration("session", c.Session); err != nil {
		return err
	}
	if c.Floor >= MaxToken {
		return Permanent(fmt.Sprintf("store: the floor %d leaves no token below 2^53, so it cannot have come from a store: "+
			"look for what handed it out", c.Floor), nil)
	}
	return nil
}

// CheckLease returns an error unless l names a lease: valid names and a nonce.
func CheckLease(l Lease) error { return checkOwner(l.Group, l.Replica, l.Nonce) }

// CheckRenewal returns an error unless l can be renewed: what CheckLease wants, and a TTL.
func CheckRenewal(l Lease) error {
	if err := CheckLease(l); err != nil {
		return err
	}
	return checkDuration("lease", l.TTL)
}

// CheckSession returns an error unless r can have a session of ttl in group.
func CheckSession(group string, r Replica, ttl time.Duration) error {
	if err := checkNames(group, r.ID); err != nil {
		return err
	}
	if err := checkInfo(r.Info); err != nil {
		return err
	}
	return checkDuration("session", ttl)
}

// CheckCommit returns an error unless number and changes can be committed under l: ErrTooLarge over a limit, a permanent
// error for what is malformed.
func CheckCommit(l Lease, number uint64, changes []Change) error {
	if err := CheckLease(l); err != nil {
		return err
	}
	if number == 0 || number > MaxToken {
		return Permanent(fmt.Sprintf("store: commit number %d is not in 1 to 2^53-1: "+
			"number the commits of a lease from 1", number), nil)
	}
	if len(changes) > MaxChanges {
		return fmt.Errorf("%w: %d changes in one commit, %d are the most", ErrTooLarge, len(changes), MaxChanges)
	}
	type place struct{ bucket, key string }
	seen := make(map[place]bool, len(changes))
	bytes := 0
	for _, c := range changes {
		if err := CheckBucket(c.Bucket); err != nil {
			return err
		}
		if err := CheckKey(c.Key); err != nil {
			return err
		}
		if seen[place{c.Bucket, c.Key}] {
			return Permanent(fmt.Sprintf("store: %s %q stands twice in one commit: keep the last", c.Bucket, c.Key), nil)
		}
		seen[place{c.Bucket, c.Key}] = true
		bytes += len(c.Bucket) + len(c.Key)
		if c.Delete {
			continue
		}
		if c.Bucket == InboxBucket {
			return Permanent("store: a commit only deletes from the inbox: Post puts there", nil)
		}
		if err := checkValue(c.Key, c.Value); err != nil {
			return err
		}
		bytes += len(c.Value)
	}
	if bytes > MaxBytes {
		return fmt.Errorf("%w: a commit of %d bytes, %d are the most", ErrTooLarge, bytes, MaxBytes)
	}
	return nil
}

// CheckRead returns an error unless bucket of group can be read, under l where it is given.
func CheckRead(group string, l *Lease, bucket string) error {
	if err := CheckName("group", group); err != nil {
		return err
	}
	if l != nil {
		if err := CheckLease(*l); err != nil {
			return err
		}
		if l.Group != group {
			return Permanent(fmt.Sprintf("store: group %s cannot be read under the lease of group %s", group, l.Group), nil)
		}
	}
	return CheckBucket(bucket)
}

// CheckWatch returns an error unless t of group can be watched.
func CheckWatch(group string, t Topic) error {
	if t != LeaseFree && t != InboxFilled {
		return Permanent(fmt.Sprintf("store: topic %d is not known", t), nil)
	}
	return CheckName("group", group)
}

// CheckMessage returns an error unless message can be posted to group under id.
func CheckMessage(group, id string, message []byte) error {
	if err := CheckName("group", group); err != nil {
		return err
	}
	if err := CheckKey(id); err != nil {
		return err
	}
	return checkValue(id, message)
}

// CheckKey returns an error unless key is 1 to 512 bytes of printable ASCII without blanks.
func CheckKey(key string) error {
	if !graphic(key, maxKey) {
		return Permanent(fmt.Sprintf("store: key %.140q is not 1 to %d bytes of printable ASCII without blanks", key, maxKey), nil)
	}
	return nil
}

func checkOwner(group, replica, nonce string) error {
	if err := checkNames(group, replica); err != nil {
		return err
	}
	if !graphic(nonce, maxNonce) { // said without the nonce, which is a secret
		return Permanent(fmt.Sprintf("store: the nonce is not 1 to %d bytes of printable ASCII without blanks", maxNonce), nil)
	}
	return nil
}

func checkNames(group, replica string) error {
	if err := CheckName("group", group); err != nil {
		return err
	}
	return CheckName("replica", replica)
}

func checkInfo(info []byte) error {
	if len(info) > MaxInfo {
		return fmt.Errorf("%w: a replica's info of %d bytes, %d are the most", ErrTooLarge, len(info), MaxInfo)
	}
	return nil
}

func checkValue(key string, value []byte) error {
	if len(value) > MaxValue {
		return fmt.Errorf("%w: %d bytes under %q, %d are the most", ErrTooLarge, len(value), key, MaxValue)
	}
	return nil
}

func checkDuration(what string, d time.Duration) error {
	if d < time.Millisecond || d > MaxDuration {
		return Permanent(fmt.Sprintf("store: a %s of %v is not possible: use 1ms to %v", what, d, MaxDuration), nil)
	}
	return nil
}

func graphic(s string, most int) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= most
}
