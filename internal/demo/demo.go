// Package demo shows what the project is for: three replicas of a cron process, an every-second job, and a leader that is
// killed, frozen or asked to leave every few seconds, as a timeline that a person can follow. In the end every tick is
// counted from the lines that the job has written.
package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/redisstore"
	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
)

// Config says what to show.
type Config struct {
	Out    io.Writer
	Binary string         // of singleton, which the replicas run
	Store  string         // URL of a Redis; empty starts one in this process
	Client *redis.Options // what Store says
	For    time.Duration  // how long faults go on
	Lease  time.Duration  // of the replicas
}

// Times of the show.
const (
	every  = 5 * time.Second        // between faults
	frozen = 4 * time.Second        // how long a leader is frozen
	phase  = 500 * time.Millisecond // faults come this long after a tick, when no run is going on
	poll   = 2 * time.Millisecond   // how often the job's lines are looked at
	grace  = 5 * time.Second        // of the replicas' running jobs
	job    = "tick"
)

// ErrTicks says that a tick was lost, or doubled without an interruption.
var ErrTicks = errors.New("ticks were lost or doubled")

// StoreError says that the store cannot be used, and why.
type StoreError struct{ Err error }

// Error says why.
func (e *StoreError) Error() string { return "the store cannot be used: " + e.Err.Error() }

// Unwrap returns the store's error.
func (e *StoreError) Unwrap() error { return e.Err }

// show is one run of the demo. Its loop belongs to one goroutine.
type show struct {
	cfg      Config
	url      string
	group    string
	dir      string
	store    *redisstore.Store
	began    time.Time
	events   chan event
	replicas []*replica
	lines    lines
	timeline *timeline
	first    int64 // Unix time of the first tick that is expected
	leader   *replica
	gaps     map[string][]time.Duration // how long nobody led, by fault
	fault    string                     // the last one
	faultAt  time.Time
}

// Run shows it, until the time is over or ctx ends, and returns ErrTicks if the tally is not right.
func Run(ctx context.Context, cfg Config) error {
	s := &show{cfg: cfg, url: cfg.Store, group: "demo-" + uuid.NewString()[:8], events: make(chan event, 64),
		gaps: make(map[string][]time.Duration)}
	var err error
	if s.dir, err = os.MkdirTemp("", "singleton-demo-"); err != nil {
		return err
	}
	defer os.RemoveAll(s.dir)
	options, where := cfg.Client, "the Redis of --store"
	if s.url == "" {
		embedded := miniredis.NewMiniRedis()
		embedded.ClockTTL(true)
		if err := embedded.StartAddr("127.0.0.1:0"); err != nil {
			return fmt.Errorf("start the embedded Redis: %w", err)
		}
		defer embedded.Close()
		s.url = "redis://" + embedded.Addr()
		options = &redis.Options{Addr: embedded.Addr()}
		where = "embedded Redis on " + embedded.Addr()
	}
	client := redis.NewClient(options)
	defer client.Close()
	s.store = redisstore.New(client, nil)
	defer s.store.Close()
	if err := s.create(ctx); err != nil {
		return err
	}
	if cfg.Store != "" {
		defer s.clean(client)
	}
	fmt.Fprintf(cfg.Out, "3 replicas (r-1, r-2, r-3), one job every second, lease %s, %s\n", brief(cfg.Lease), where)
	fmt.Fprintf(cfg.Out, "Every %s the leader is killed, frozen or asked to leave. %s in all; Ctrl-C ends early with the tally.\n\n",
		brief(every), brief(cfg.For))
	return s.play(ctx)
}

// create makes the group's ledger, so that the first leader need not wait for memories of one.
func (s *show) create(ctx context.Context) error {
	limited, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := scheduler.Create(limited, s.store, s.group); err != nil {
		return &StoreError{err}
	}
	return nil
}

// clean removes the group's keys from a Redis that goes on.
func (s *show) clean(client *redis.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for keys := client.Scan(ctx, 0, "singleton:{"+s.group+"}:*", 1000).Iterator(); keys.Next(ctx); {
		client.Del(ctx, keys.Val())
	}
}

const crontab = `#: name=` + job + ` catch-up=all on-interrupt=rerun
* * * * * *  echo $SINGLETON_TICK_UNIX $SINGLETON_REPLICA >> "$DEMO_LINES"
`

// play runs the replicas and the faults, and counts.
func (s *show) play(ctx context.Context) (err error) {
	file := filepath.Join(s.dir, "jobs.cron")
	s.lines.file = filepath.Join(s.dir, "lines")
	for name, text := range map[string]string{file: crontab, s.lines.file: ""} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return err
		}
	}
	s.began = time.Now()
	s.timeline = &timeline{out: s.cfg.Out, began: s.began}
	defer func() {
		for _, r := range s.replicas {
			r.kill()
		}
	}()
	for i := range 3 {
		r := &replica{name: fmt.Sprintf("r-%d", i+1), events: s.events}
		r.command = []string{s.cfg.Binary, "cron", "--group", s.group, "--seconds", "--id", r.name,
			"--lease", s.cfg.Lease.String(), "--grace", grace.String(), "--history", "10000", "--log-format", "json",
			"--log-level", "info", file}
		r.environment = append(s.environment(), "DEMO_LINES="+s.lines.file, "SINGLETON_STORE="+s.url)
		if err := r.start(); err != nil {
			return err
		}
		s.replicas = append(s.replicas, r)
	}
	if err := s.watch(ctx); err != nil {
		return err
	}
	s.timeline.flush()
	return s.sum()
}

// environment is this process's, without what would change the replicas.
func (s *show) environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SINGLETON_") })
}

// watch is the loop: lines, elections, faults, until the last tick that counts has run or can no longer be late.
func (s *show) watch(ctx context.Context) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	nemesis := &nemesis{show: s, next: time.Now().Add(every)}
	end := s.began.Add(s.cfg.For)
	done := ctx.Done()
	for {
		select {
		case <-done:
			done, end = nil, time.Now() // once: the tally still has to be right
			nemesis.over = true
		case e := <-s.events:
			if err := s.note(e); err != nil {
				return err
			}
		case now := <-ticker.C:
			if err := s.look(now); err != nil {
				return err
			}
			if now.Before(end) {
				if err := nemesis.act(now); err != nil {
					return err
				}
				continue
			}
			if err := nemesis.finish(now); err != nil {
				return err
			}
			s.lines.until = end.Unix()
			if s.complete(end) || now.After(end.Add(3*s.cfg.Lease+5*time.Second)) {
				return s.stop()
			}
		}
	}
}

// note takes in what a replica's log says.
func (s *show) note(e event) error {
	switch {
	case e.exited != nil && !*e.expected:
		return fmt.Errorf("%s ended by itself (%w):\n%s", e.replica.name, e.exited, e.replica.lastLines())
	case e.schedules && s.first == 0:
		s.expect(e.at.Unix() + 1)
		return nil
	case e.token == 0:
		return nil
	}
	s.leader = e.replica
	said := "leads"
	if s.fault != "" {
		gap := e.at.Sub(s.faultAt)
		s.gaps[s.fault] = append(s.gaps[s.fault], gap)
		said = "leads after " + brief(gap)
		if s.fault != left {
			said += " without a leader"
		}
		s.fault = ""
	}
	s.timeline.led = e.at
	s.timeline.event(e.at, e.replica.name, said, fmt.Sprintf("token %d", e.token))
	return nil
}

// expect makes tick the first that has to run.
func (s *show) expect(tick int64) { s.first, s.timeline.first = tick, tick }

// look reads what the job has written since.
func (s *show) look(now time.Time) error {
	fresh, err := s.lines.read(now)
	if err != nil {
		return err
	}
	for _, l := range fresh {
		if s.first == 0 || l.tick < s.first { // due after the ledger got the job and before the leader said so
			s.expect(l.tick)
		}
		s.timeline.ran(l)
	}
	return nil
}

// complete reports whether every tick up to end has run.
func (s *show) complete(end time.Time) bool {
	if s.first == 0 {
		return false
	}
	for tick := s.first; tick <= end.Unix(); tick++ {
		if s.lines.count[tick] == 0 {
			return false
		}
	}
	return true
}

// stop ends all replicas politely; what runs may end.
func (s *show) stop() error {
	for _, r := range s.replicas {
		r.terminate()
	}
	for _, r := range s.replicas {
		r.wait()
	}
	return s.look(time.Now())
}
