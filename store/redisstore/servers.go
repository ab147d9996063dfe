package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"
)

// servers knows which server takes the calls about a group. Its methods are safe for concurrent use.
type servers interface {
	// primary returns a client of the server that takes them, as far as is known; it may ask, for a second at most.
	primary(ctx context.Context, group string) (redis.UniversalClient, error)
	// primaries does the same for several groups, and asks once at most.
	primaries(ctx context.Context, groups []string) ([]redis.UniversalClient, error)
	// heard learns from the outcome of a call to client. When it says that another server is to be asked now, that
	// server's client is returned, and whether the request must come after ASKING; else nil.
	heard(group string, client redis.UniversalClient, err error) (next redis.UniversalClient, asking bool)
	// all returns a client of each server that takes calls now.
	all(ctx context.Context) ([]redis.UniversalClient, error)
	close() error
}

// single is one server, always the same.
type single struct {
	client redis.UniversalClient
	ours   bool // made by the store
}

func (s single) primary(context.Context, string) (redis.UniversalClient, error) { return s.client, nil }

func (s single) primaries(_ context.Context, groups []string) ([]redis.UniversalClient, error) {
	return slices.Repeat([]redis.UniversalClient{s.client}, len(groups)), nil
}

func (s single) heard(string, redis.UniversalClient, error) (redis.UniversalClient, bool) {
	return nil, false
}

func (s single) all(context.Context) ([]redis.UniversalClient, error) {
	return []redis.UniversalClient{s.client}, nil
}

func (s single) close() error {
	if !s.ours {
		return nil
	}
	return s.client.Close()
}

// elsewhere tells whether an error is a reason to ask which server is the primary now: no answer, or the answer of one
// that is none.
func elsewhere(err error) bool {
	if err == nil || errors.Is(err, redis.Nil) {
		return false
	}
	if !refused(err) {
		return true
	}
	return redis.IsReadOnlyError(err) || redis.IsMasterDownError(err) || redis.IsClusterDownError(err)
}
