package redisclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/internal/spell"
)

// Subscription is the hub of a store on Redis: one connection for all that is watched. Points are called as channels are.
// The fields are set before the first watcher comes.
type Subscription struct {
	*hub.Hub

	Name string // what errors begin with
	Log  *slog.Logger

	// Server returns a client of the server to subscribe at; group is one that is watched. When it returns another client
	// than before, the connection is replaced; see Wake.
	Server func(ctx context.Context, group string) (redis.UniversalClient, error)
	// Heard is told how a connection has ended.
	Heard func(group string, client redis.UniversalClient, err error)

	// Silence is how often the server is asked for a sign of life, 5 s by default; the connection is replaced when nothing
	// has come since the last time.
	Silence time.Duration

	spells spell.Spells
}

// Whoever watches asks the server when a subscription stands: after a connection has broken, thousands must not at once.
const (
	together = 250 // channels in one SUBSCRIBE
	between  = 50 * time.Millisecond
)

// NewSubscription returns a subscription that nobody watches yet. It does no I/O; Close ends it.
func NewSubscription() *Subscription {
	s := &Subscription{Silence: 5 * time.Second}
	s.Hub = hub.New(s.hear)
	return s
}

// hear makes a connection and keeps it subscribed to what is watched, until it breaks, falls silent, or is not needed; it
// tells whether anything was heard over it.
func (s *Subscription) hear(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := s.First()
	if first == nil {
		return false
	}
	group := first.Group // what is published in a cluster comes to all of its nodes: any would do
	client, err := s.Server(ctx, group)
	if err != nil {
		s.report(err)
		return false
	}
	sub := client.Subscribe(ctx) // to nothing yet: no I/O
	var last atomic.Int64        // number of things heard
	broken := make(chan error, 1)
	var reader sync.WaitGroup
	defer func() {
		cancel()
		_ = sub.Close()
		reader.Wait()
	}()

	failed := func(err error) bool {
		s.Heard(group, client, err)
		s.report(err)
		return last.Load() > 0
	}
	subscribed := map[string]*hub.Point{}
	alarm := time.NewTimer(s.Silence) // no ticker: after a pause of this process two ticks would come at once
	defer alarm.Stop()
	reading, asked, before := false, false, int64(0)
	for {
		if now, err := s.Server(ctx, group); err == nil && now != client {
			return true // another server takes the calls
		}
		came, went := s.Difference(subscribed)
		for part := range slices.Chunk(names(came), together) {
			if reading && len(came) > together && !rest(ctx) {
				return true
			}
			if err := sub.Subscribe(ctx, part...); err != nil {
				return failed(err)
			}
			if !reading {
				reading = true
				reader.Go(func() { broken <- s.receive(ctx, sub, &last) })
			}
		}
		if len(went) > 0 {
			if err := sub.Unsubscribe(ctx, names(went)...); err != nil {
				return failed(err)
			}
		}
		if len(subscribed) == 0 {
			return last.Load() > 0
		}
		select {
		case <-s.Changed():
		case <-ctx.Done():
			return true
		case err := <-broken:
			return failed(err)
		case <-alarm.C:
			now := last.Load()
			if asked && now == before {
				s.Heard(group, client, errSilent)
				s.Log.WarnContext(ctx, "the connection that hints come over has died silently; it is replaced")
				return true
			}
			if err := sub.Ping(ctx); err != nil {
				return failed(err)
			}
			asked, before = true, now
			alarm.Reset(s.Silence)
		}
	}
}

// rest lets those be served who have just heard that a subscription stands.
func rest(ctx context.Context) bool {
	select {
	case <-time.After(between):
		return true
	case <-ctx.Done():
		return false
	}
}

var errSilent = errors.New("no sign of life")

func names(points []*hub.Point) (list []string) {
	for _, p := range points {
		list = append(list, p.Name)
	}
	return list
}

// receive hands on what comes until the connection breaks.
func (s *Subscription) receive(ctx context.Context, sub *redis.PubSub, heard *atomic.Int64) error {
	for {
		got, err := sub.Receive(ctx)
		if err != nil {
			return err
		}
		heard.Add(1)
		switch m := got.(type) {
		case *redis.Subscription:
			if m.Kind == "subscribe" {
				s.spells.End("watch")
				s.Stands(m.Channel)
			}
		case *redis.Message:
			s.News(m.Channel, m.Payload)
		}
	}
}

// report logs what no reconnecting will heal; hints are a convenience, so that it is no more than a warning.
func (s *Subscription) report(err error) {
	if what, remedy := Classify(err.Error()); what == Permanent && s.spells.Begin("watch", remedy) {
		s.Log.Warn("no hints come: followers wait for the end of a lease, messages for the next look",
			slog.Any("error", fmt.Errorf("%s: watch: %w", s.Name, Discreet(err))), slog.String("remedy", remedy))
	}
}
