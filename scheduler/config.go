package scheduler

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/go-singleton/singleton/election"
)

// Config describes a scheduler; New reports all its problems at once.
type Config struct {
	Group   string        // required: the name under which the replicas compete
	ID      string        // as election.Config.ID
	Lease   time.Duration // as election.Config.Lease
	Grace   time.Duration // how long running jobs may go on after Run's ctx has ended; 25 s
	History int           // entries kept per job, 1 to 10 000; 100
	Seconds bool          // specs have six fields, seconds first

	MaxRunning int // runs at once on this replica; 0 is no limit

	Zone      *time.Location // for specs without CRON_TZ=; UTC. Not time.Local, which may differ between replicas
	Logger    *slog.Logger   // nil is silent
	Callbacks election.Callbacks
}

// Defaults and bounds of a Config.
const (
	defaultLease   = 15 * time.Second // election's
	defaultGrace   = 25 * time.Second
	defaultHistory = 100
	maxHistory     = 10_000
)

// complete fills in the defaults and returns all problems, joined; those of group, ID and lease are the elector's to find.
func (c *Config) complete() error {
	var problems []error
	if c.Grace < 0 {
		problems = append(problems, fmt.Errorf("scheduler: grace %v is negative", c.Grace))
	}
	if c.History < 0 || c.History > maxHistory {
		problems = append(problems, fmt.Errorf("scheduler: history %d is out of range 1-%d", c.History, maxHistory))
	}
	if c.MaxRunning < 0 {
		problems = append(problems, fmt.Errorf("scheduler: max running %d is negative", c.MaxRunning))
	}
	if c.Zone != nil && c.Zone.String() == "Local" {
		problems = append(problems, errors.New("scheduler: zone is time.Local, which may be another one on each replica: "+
			"use time.LoadLocation with its name"))
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.Grace == 0 {
		c.Grace = defaultGrace
	}
	if c.History == 0 {
		c.History = defaultHistory
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return errors.Join(problems...)
}

// replicaInfo is what a replica tells of itself through its session.
type replicaInfo struct {
	Version int   `json:"v"`
	Lease   int64 `json:"lease_ms"`
}

// readInfo reads what a replica tells; zero where it tells nothing that can be read.
func readInfo(info []byte) replicaInfo {
	var i replicaInfo
	if json.Unmarshal(info, &i) != nil || i.Lease < 0 || i.Lease > int64(24*time.Hour/time.Millisecond) {
		return replicaInfo{}
	}
	return i
}

func (i replicaInfo) lease() time.Duration { return time.Duration(i.Lease) * time.Millisecond }
