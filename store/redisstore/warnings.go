package redisstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// clockLimit is how far the server's clock may be from ours before Warnings says so.
const clockLimit = 5 * time.Second

// Warnings looks at how the server, or each primary of a cluster, is set up and returns a sentence for each thing that endangers leases or records, with
// what to do about it: an eviction policy, no persistence, a replica, a clock far from this machine's. What the server
// does not let it see is left out. It is meant for the start of a program; calls do not depend on it.
func (s *Store) Warnings(ctx context.Context) ([]string, error) {
	var warnings []string
	_, err := s.call(ctx, func(ctx context.Context, servers servers) (any, error) {
		clients, err := servers.all(ctx)
		if err != nil {
			return nil, err
		}
		for _, c := range clients {
			more, err := look(ctx, c)
			if err != nil {
				return nil, err
			}
			for _, w := range more {
				if !slices.Contains(warnings, w) {
					warnings = append(warnings, w)
				}
			}
		}
		return nil, nil
	})
	if err := s.judge(ctx, "warnings", err); err != nil {
		return nil, err
	}
	return warnings, nil
}

func look(ctx context.Context, c redis.UniversalClient) (warnings []string, err error) {
	before := time.Now()
	server, err := c.Time(ctx).Result()
	if err != nil {
		return nil, err // ours are among the commands that it needs anyway
	}
	took := time.Since(before)
	if ahead := server.Sub(before.Add(took / 2)); ahead.Abs() > clockLimit+took {
		warnings = append(warnings, fmt.Sprintf("the clock of the Redis server is %v from this machine's: "+
			"keep both in time by NTP", ahead.Round(time.Second)))
	}
	info := map[string]string{}
	for _, section := range []string{"memory", "persistence", "replication"} {
		text, err := c.Info(ctx, section).Result()
		if err != nil && !refused(err) {
			return nil, err
		}
		for line := range strings.Lines(text) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			info[name] = value
		}
	}
	if policy := info["maxmemory_policy"]; policy != "" && policy != "noeviction" {
		warnings = append(warnings, fmt.Sprintf("the Redis server evicts keys (maxmemory-policy %s), and leases are the first to go: "+
			"CONFIG SET maxmemory-policy noeviction", policy))
	}
	if info["role"] == "slave" {
		warnings = append(warnings, "the Redis server is a replica and takes no writes: use the address of its primary")
	}
	if info["aof_enabled"] == "0" {
		save, err := c.ConfigGet(ctx, "save").Result()
		if err != nil && !refused(err) {
			return nil, err
		}
		if points, known := save["save"]; known && points == "" {
			warnings = append(warnings, "the Redis server keeps nothing on disk, so that a restart loses leases and the records of runs: "+
				"CONFIG SET appendonly yes")
		}
	}
	return warnings, nil
}

// refused tells whether the server has answered that it does not do this, for us or at all.
func refused(err error) bool {
	_, answered := errors.AsType[redis.Error](err)
	return answered
}
