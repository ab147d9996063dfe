//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	formLimit = 60 * time.Second // how long servers may take until they have found each other
	look      = 10 * time.Millisecond
)

// PrimaryName is what the Sentinels call the primary.
const PrimaryName = "main"

// Sentinels are three servers, a primary and two replicas, and three Sentinels that watch them: they think a server dead
// when it has not answered for a second, and have another primary about a second later. Each Sentinel is a redis-server
// with the option --sentinel, which is all that the program redis-sentinel is.
type Sentinels struct {
	Servers   []*Server // the first is the primary at the start
	Sentinels []*Server

	cfg Config
}

// NewSentinels starts the servers and waits until the replicas have all data and the Sentinels know each other. The
// configuration is that of each server, and of each Sentinel what concerns TLS.
func NewSentinels(cfg Config) (*Sentinels, error) {
	s := &Sentinels{cfg: cfg}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Sentinels) start() error {
	primary, err := New(s.cfg)
	if err != nil {
		return err
	}
	s.Servers = append(s.Servers, primary)
	replica := s.cfg
	replica.Args = append([]string{"--replicaof", "127.0.0.1", strconv.Itoa(primary.port)}, s.cfg.Args...)
	watch := Config{TLS: s.cfg.TLS, SentinelPassword: s.cfg.SentinelPassword, sentinel: fmt.Sprintf("sentinel monitor %[1]s 127.0.0.1 %[2]d 2\n"+
		"sentinel down-after-milliseconds %[1]s 1000\nsentinel failover-timeout %[1]s 3000\n", PrimaryName, primary.port)}
	if s.cfg.SentinelPassword != "" {
		watch.sentinel += fmt.Sprintf("requirepass %[1]s\nsentinel sentinel-pass %[1]s\n", s.cfg.SentinelPassword)
	}
	replicas, err := newAll([]Config{replica, replica})
	if err != nil {
		return err
	}
	s.Servers = append(s.Servers, replicas...)
	// A Sentinel asks a primary for its replicas when it starts, and then not for ten seconds.
	err = formed("replicas", func(ctx context.Context) (string, error) { return replicated(ctx, replicas) })
	if err != nil {
		return err
	}
	if s.Sentinels, err = newAll([]Config{watch, watch, watch}); err != nil {
		return err
	}
	return formed("Sentinels", func(ctx context.Context) (string, error) {
		for _, one := range s.Sentinels {
			text, err := one.ask().Info(ctx, "sentinel").Result()
			if err != nil || !strings.Contains(text, "status=ok,address="+primary.Addr()+",slaves=2,sentinels=3") {
				return text, err
			}
		}
		return "", nil
	})
}

// Addrs returns the addresses of the Sentinels.
func (s *Sentinels) Addrs() []string { return addrs(s.Sentinels) }

// Options returns those of a client that asks the Sentinels.
func (s *Sentinels) Options() *redis.FailoverOptions {
	return &redis.FailoverOptions{
		MasterName: PrimaryName, SentinelAddrs: s.Addrs(), SentinelPassword: s.cfg.SentinelPassword, TLSConfig: s.cfg.TLS.Client(),
	}
}

// Primary returns the server that a majority of the Sentinels calls the primary, nil when there is none.
func (s *Sentinels) Primary(ctx context.Context) *Server {
	votes := map[string]int{}
	for _, one := range s.Sentinels {
		reply, err := one.ask().Do(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", PrimaryName).StringSlice()
		if err == nil && len(reply) == 2 {
			votes[net.JoinHostPort(reply[0], reply[1])]++
		}
	}
	for _, one := range s.Servers {
		if 2*votes[one.Addr()] > len(s.Sentinels) {
			return one
		}
	}
	return nil
}

// Close ends all processes.
func (s *Sentinels) Close() error { return closeAll(append(s.Sentinels, s.Servers...)) }

// newAll starts servers at once; all or none.
func newAll(cfgs []Config) ([]*Server, error) {
	servers, errs := make([]*Server, len(cfgs)), make([]error, len(cfgs))
	done := make(chan struct{})
	for i, cfg := range cfgs {
		go func() {
			servers[i], errs[i] = New(cfg)
			done <- struct{}{}
		}()
	}
	for range cfgs {
		<-done
	}
	if err := errors.Join(errs...); err != nil {
		return nil, errors.Join(err, closeAll(servers))
	}
	return servers, nil
}

func closeAll(servers []*Server) error {
	var errs []error
	for _, s := range servers {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

func addrs(servers []*Server) (list []string) {
	for _, s := range servers {
		list = append(list, s.Addr())
	}
	return list
}

// formed waits until check finds nothing missing.
func formed(what string, check func(context.Context) (missing string, err error)) error {
	ctx, cancel := context.WithTimeout(context.Background(), formLimit)
	defer cancel()
	for {
		missing, err := check(ctx)
		if err == nil && missing == "" {
			return nil
		}
		select {
		case <-time.After(look):
		case <-ctx.Done():
			return fmt.Errorf("redistest: %s have not found each other within %v: %s (%w)", what, formLimit, missing, errors.Join(err, ctx.Err()))
		}
	}
}

// replicated returns what is missing until the replicas have a copy of all data.
func replicated(ctx context.Context, replicas []*Server) (missing string, err error) {
	for _, one := range replicas {
		text, err := one.ask().Info(ctx, "replication").Result()
		if err != nil || !strings.Contains(text, "master_link_status:up") {
			return text, err
		}
	}
	return "", nil
}
