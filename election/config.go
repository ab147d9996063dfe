package election

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

// Limits of Config.Lease.
const (
	defaultLease = 15 * time.Second
	minLease     = 500 * time.Millisecond
	shortLease   = 2 * time.Second // below it a warning
)

// maxID is how long Config.ID may be: a hyphen and eight digits are added, and a name has at most 128 bytes.
const maxID = 128 - 9

// Config describes a candidate; New reports all its problems at once.
type Config struct {
	// Group is the name under which the replicas compete: 1 to 128 letters, digits, dots, underscores and hyphens, the
	// first a letter or digit. Required.
	Group string

	// ID names this replica, in at most 119 bytes of the same form. A random suffix is always added, so that two
	// replicas with the same ID are still two. "hostname-pid" by default.
	ID string

	// Lease is how long leadership outlives its last renewal, in whole milliseconds: after a crash nobody leads for up
	// to this long. 15 s by default, 500 ms to store.MaxDuration; below 2 s a short pause of the process or the network ends a term,
	// and New logs a warning.
	Lease time.Duration

	// Info is kept with the replica's session and shown by tools; at most store.MaxInfo bytes.
	Info []byte

	// Logger gets what happens to this replica; nil is silent.
	Logger *slog.Logger

	// Callbacks are told of changes.
	Callbacks Callbacks
}

// Callbacks are called in order and one at a time, on a goroutine that never delays a renewal; each may be nil. A panic
// in one is logged. Run does not return before the last one has.
type Callbacks struct {
	// Elected is called when a term begins.
	Elected func(*Term)

	// Lost is called when a term that was elected has ended: its lease is over, or its work has returned. The cause is
	// ErrLost, ErrExpired, ErrResigned, store.ErrEnded, the error of lead, or that of Run's context.
	Lost func(*Term, error)

	// LeaderChanged is called, on followers too, when this replica learns of another leader or of a new term of the same
	// one. Remaining is as it was then. The zero Leader means nobody: it follows the end of an own term. A follower asks
	// only when the lease may be free, so that it learns of a change within a lease.
	LeaderChanged func(store.Leader)
}

// complete fills in the defaults and returns all problems, joined.
func (c *Config) complete() error {
	var problems []error
	if err := store.CheckName("group", c.Group); err != nil {
		problems = append(problems, err)
	}
	if c.ID == "" {
		c.ID = hostID()
	} else if err := store.CheckName("replica", c.ID); err != nil {
		problems = append(problems, err)
	} else if len(c.ID) > maxID {
		problems = append(problems, fmt.Errorf("election: replica ID has %d bytes; at most %d", len(c.ID), maxID))
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.Lease < minLease {
		problems = append(problems, fmt.Errorf("election: lease of %v is too short: at least %v", c.Lease, minLease))
	} else if c.Lease > store.MaxDuration {
		problems = append(problems, fmt.Errorf("election: lease of %v is too long: at most %v", c.Lease, store.MaxDuration))
	} else if c.Lease%time.Millisecond != 0 {
		problems = append(problems, fmt.Errorf("election: lease of %v is not in whole milliseconds", c.Lease))
	}
	if len(c.Info) > store.MaxInfo {
		problems = append(problems, fmt.Errorf("election: info has %d bytes; at most %d", len(c.Info), store.MaxInfo))
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return errors.Join(problems...)
}

// hostID returns "hostname-pid" with everything replaced that a name cannot have.
func hostID() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	host = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, host)
	host = strings.TrimLeft(host, "._-")
	if host == "" {
		host = "unknown"
	}
	return fmt.Sprintf("%.100s-%d", host, os.Getpid())
}
