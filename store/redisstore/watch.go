package redisstore

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/go-singleton/singleton/internal/hub"
	"github.com/go-singleton/singleton/internal/redisclient"
	"github.com/go-singleton/singleton/store"
)

// silence is how often a subscription is asked for a sign of life; it is replaced when nothing has come since the last
// time.
const silence = 5 * time.Second

// Watch implements store.Leases.
func (s *Store) Watch(ctx context.Context, group string, t store.Topic, hint func()) error {
	if err := store.CheckWatch(group, t); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if _, err := s.begin(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	if !s.hub.Watch(ctx, s.channel(group, t), group, t, hint) {
		return errClosed
	}
	return nil
}

// hear makes a connection and keeps it subscribed to what is watched, until it breaks, falls silent, or is not needed; it
// tells whether anything was heard over it.
func (s *Store) hear(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	servers := s.servers
	s.mu.Unlock()
	first := s.hub.First()
	if first == nil {
		return false
	}
	group := first.Group // what is published in a cluster comes to all of its nodes: any would do
	client, err := servers.primary(ctx, group)
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
		servers.heard(group, client, err)
		s.report(err)
		return last.Load() > 0
	}
	subscribed := map[string]*hub.Point{}
	alarm := time.NewTimer(s.silence) // no ticker: after a pause of this process two ticks would come at once
	defer alarm.Stop()
	reading, asked, before := false, false, int64(0)
	for {
		if now, err := servers.primary(ctx, group); err == nil && now != client {
			return true // another server takes the calls
		}
		came, went := s.hub.Difference(subscribed)
		if len(came) > 0 {
			if err := sub.Subscribe(ctx, names(came)...); err != nil {
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
		case <-s.hub.Changed():
		case <-ctx.Done():
			return true
		case err := <-broken:
			return failed(err)
		case <-alarm.C:
			now := last.Load()
			if asked && now == before {
				servers.heard(group, client, errSilent)
				s.log.WarnContext(ctx, "the connection that hints come over has died silently; it is replaced")
				return true
			}
			if err := sub.Ping(ctx); err != nil {
				return failed(err)
			}
			asked, before = true, now
			alarm.Reset(s.silence)
		}
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
func (s *Store) receive(ctx context.Context, sub *redis.PubSub, heard *atomic.Int64) error {
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
				s.hub.Stands(m.Channel)
			}
		case *redis.Message:
			s.hub.News(m.Channel, m.Payload)
		}
	}
}

// report logs what no reconnecting will heal; hints are a convenience, so that it is no more than a warning.
func (s *Store) report(err error) {
	if what, remedy := redisclient.Classify(err.Error()); what == redisclient.Permanent && s.spells.Begin("watch", remedy) {
		s.log.Warn("no hints come: followers wait for the end of a lease, messages for the next look",
			slog.Any("error", wrap("watch", err)), slog.String("remedy", remedy))
	}
}
