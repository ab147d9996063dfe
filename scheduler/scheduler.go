package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/schedule"
	"github.com/go-singleton/singleton/store"
)

// Errors that callers branch on.
var (
	ErrDuplicate  = errors.New("scheduler: job name is taken")
	ErrUnknownJob = errors.New("scheduler: no such job")
	ErrUnfinished = errors.New("scheduler: jobs ignored their cancelled context") // from Run, after the grace
)

// ErrStopping is the cause of a run's end when its replica stops and the grace is nearly over. The other causes are
// context.DeadlineExceeded (Timeout), election.ErrExpired and store.ErrEnded (the replica's session).
var ErrStopping = errors.New("scheduler: grace is over")

// errStandstill ends the term of a leader whose loop does not move (S7).
var errStandstill = errors.New("scheduler: the scheduling loop stands still")

// Config describes a scheduler; New reports all its problems at once.
type Config struct {
	Group   string        // required: the name under which the replicas compete
	ID      string        // as election.Config.ID
	Lease   time.Duration // as election.Config.Lease
	Grace   time.Duration // how long running jobs may go on after Run's ctx has ended; 25 s
	History int           // entries kept per job, 1 to 10 000; 100
	Seconds bool          // specs have six fields, seconds first

	MaxRunning int // runs at once on this replica; 0 is no limit

	Zone      *time.Location // for specs without CRON_TZ=; UTC
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

// Scheduler runs jobs on the leader of a group; its methods are safe for concurrent use, also from inside a job.
type Scheduler struct {
	store   store.Store
	cfg     Config
	log     *slog.Logger
	elector *election.Elector
	memory  *memory

	mu      sync.Mutex
	jobs    map[string]*definition
	version int // of jobs; from 1
	running bool
	fatal   error
	failed  chan struct{} // closed with fatal

	// Of one Run:
	world   *world.World
	runner  *runner
	bell    chan struct{} // wakes the leader's loop
	rounds  chan struct{} // wakes attend
	leading atomic.Bool
	inbox   atomic.Bool  // messages may have come
	claimed atomic.Int64 // claims that are on their way to the store
	moved   atomic.Int64 // when the leader's loop last moved, in ns since started
	started time.Time
}

// New returns a scheduler that does nothing until Run is called.
func New(st store.Store, cfg Config) (*Scheduler, error) {
	var problems []error
	if st == nil {
		problems = append(problems, errors.New("scheduler: store is nil"))
	}
	if cfg.Grace < 0 {
		problems = append(problems, fmt.Errorf("scheduler: grace %v is negative", cfg.Grace))
	}
	if cfg.History < 0 || cfg.History > maxHistory {
		problems = append(problems, fmt.Errorf("scheduler: history %d is out of range 1-%d", cfg.History, maxHistory))
	}
	if cfg.MaxRunning < 0 {
		problems = append(problems, fmt.Errorf("scheduler: max running %d is negative", cfg.MaxRunning))
	}
	if cfg.Grace == 0 {
		cfg.Grace = defaultGrace
	}
	if cfg.History == 0 {
		cfg.History = defaultHistory
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Lease == 0 {
		cfg.Lease = defaultLease
	}
	elector, err := election.New(st, election.Config{
		Group:     cfg.Group,
		ID:        cfg.ID,
		Lease:     cfg.Lease,
		Info:      encode(replicaInfo{Version: formatVersion, Lease: cfg.Lease.Milliseconds()}),
		Logger:    cfg.Logger,
		Callbacks: cfg.Callbacks,
	})
	if err != nil {
		problems = append(problems, err)
	}
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	return &Scheduler{
		store:   st,
		cfg:     cfg,
		log:     cfg.Logger.With("group", cfg.Group),
		elector: elector,
		memory:  new(memory),
		jobs:    make(map[string]*definition),
		version: 1,
		bell:    make(chan struct{}, 1),
		rounds:  make(chan struct{}, 1),
	}, nil
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

// Add adds jobs, all or none; the error names every problem. A job that is new in the group, or whose ticks have changed,
// starts from the moment the leader first sees it. It may be called at any time, also from inside a job; on a leader it
// takes effect at once.
func (s *Scheduler) Add(jobs ...Job) error {
	opts := schedule.Options{Seconds: s.cfg.Seconds, Zone: s.cfg.Zone}
	var problems []error
	defs := make(map[string]*definition, len(jobs))
	for _, j := range jobs {
		def, err := define(j, opts)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if defs[j.Name] != nil {
			problems = append(problems, fmt.Errorf("%w: %q is added twice", ErrDuplicate, j.Name))
		}
		defs[j.Name] = def
	}
	s.mu.Lock()
	for _, name := range slices.Sorted(maps.Keys(defs)) {
		if s.jobs[name] != nil {
			problems = append(problems, fmt.Errorf("%w: %q; Remove the other first", ErrDuplicate, name))
		}
	}
	if len(problems) > 0 {
		s.mu.Unlock()
		return errors.Join(problems...)
	}
	maps.Copy(s.jobs, defs)
	s.version++
	s.mu.Unlock()
	s.ring()
	return nil
}

// Remove removes a job from this replica; its running run goes on. The ledger keeps the job's watermark and history for a
// week, so that another binary may own it.
func (s *Scheduler) Remove(name string) error {
	s.mu.Lock()
	if s.jobs[name] == nil {
		s.mu.Unlock()
		return fmt.Errorf("%w: %q", ErrUnknownJob, name)
	}
	delete(s.jobs, name)
	s.version++
	s.mu.Unlock()
	s.ring()
	return nil
}

// Jobs returns a snapshot of this replica's jobs, by name, with the defaults of their policies filled in.
func (s *Scheduler) Jobs() []Job {
	defs, _ := s.definitions()
	jobs := make([]Job, len(defs))
	for i, d := range defs {
		jobs[i] = d.Job
	}
	return jobs
}

func (s *Scheduler) definitions() ([]*definition, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defs := make([]*definition, 0, len(s.jobs))
	for _, name := range slices.Sorted(maps.Keys(s.jobs)) {
		defs = append(defs, s.jobs[name])
	}
	return defs, s.version
}

// ID returns this replica's ID, as election.Elector.ID.
func (s *Scheduler) ID() string { return s.elector.ID() }

// Resign hands leadership to another replica; running jobs go on. See election.Elector.Resign. A job may call it.
func (s *Scheduler) Resign(ctx context.Context) error { return s.elector.Resign(ctx) }

// Check is as election.Elector.Check, and fails too while this replica leads and its scheduling loop stands still.
func (s *Scheduler) Check() error {
	if err := s.elector.Check(); err != nil {
		return err
	}
	if s.leading.Load() && s.standstill() > max(minStandstill, 4*s.cfg.Lease) {
		return errStandstill
	}
	return nil
}

// Run takes part in the election and fires jobs while this replica leads. When ctx ends it hands leadership over at once,
// lets running jobs go on for the grace (their contexts end at four fifths of it), and returns nil, or ErrUnfinished when
// jobs still run at its end. Every other error is a fault that no retry heals (store.ErrPermanent). It may be called
// again after it has returned.
func (s *Scheduler) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.running {
		s.mu.Unlock()
		return errors.New("scheduler: Run is running already")
	}
	s.running = true
	s.fatal, s.failed = nil, make(chan struct{})
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.running = false
	}()

	base := context.WithoutCancel(ctx)
	s.world = world.From(ctx)
	s.started = time.Now()
	s.runner = newRunner(base, s.log, func() {
		s.ring()
		s.ringRounds()
	})
	inner, stop := context.WithCancel(base) // of everything that goes on while runs drain
	defer stop()
	if err := s.store.Watch(inner, s.cfg.Group, store.InboxFilled, func() {
		s.inbox.Store(true)
		s.ring()
	}); err != nil {
		return err
	}
	var wg sync.WaitGroup
	wg.Go(func() { s.attend(inner) })
	over := make(chan struct{})
	unfinished := 0
	wg.Go(func() { unfinished = s.drain(ctx, over) })

	err := s.elector.Run(ctx, s.lead)
	close(over)
	if err == nil {
		s.mu.Lock()
		err = s.fatal
		s.mu.Unlock()
	}
	stop()
	wg.Wait()
	switch {
	case unfinished > 0:
		s.log.Error("jobs ignore their cancelled context", "runs", unfinished)
		err = errors.Join(err, ErrUnfinished)
	case len(s.runner.reports()) == 0 || s.allPosted():
		s.leave(base)
	}
	return err
}

// fail ends Run with an error that no retry heals.
func (s *Scheduler) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fatal == nil {
		s.fatal = err
		close(s.failed)
	}
}

// drain waits for the end of ctx, then lets runs go on for the grace; it returns how many it had to give up.
func (s *Scheduler) drain(ctx context.Context, over chan struct{}) int {
	select {
	case <-over:
		return 0
	case <-ctx.Done():
	case <-s.failed:
	}
	s.ringRounds()
	if n := s.runner.running(); n > 0 {
		s.log.Info("stopping; running jobs may end", "runs", n, "grace", s.cfg.Grace)
	}
	for _, part := range []time.Duration{s.cfg.Grace / 5 * 4, s.cfg.Grace - s.cfg.Grace/5*4} {
		timer := time.NewTimer(part)
		select {
		case <-over:
			timer.Stop()
			return 0
		case <-timer.C:
		}
		s.runner.stop(ErrStopping)
	}
	return s.runner.giveUp()
}

// leave ends the session of a replica that has nothing more to tell; where that fails, the session lapses.
func (s *Scheduler) leave(base context.Context) {
	session := s.elector.Session()
	if session == nil {
		return
	}
	ctx, cancel := context.WithTimeout(base, leaveTime)
	defer cancel()
	if err := s.store.Leave(ctx, s.cfg.Group, session.ID()); err != nil {
		s.log.Warn("session could not be ended; it lapses", "replica", session.ID(), "error", err)
	}
}

// leaveTime bounds how long a stopping replica tries to say goodbye.
const leaveTime = time.Second

func (s *Scheduler) allPosted() bool {
	for _, rep := range s.runner.reports() {
		if !rep.posted {
			return false
		}
	}
	return true
}

// ring wakes the leader's loop; rings that come together are one.
func (s *Scheduler) ring() {
	select {
	case s.bell <- struct{}{}:
	default:
	}
}

func (s *Scheduler) ringRounds() {
	select {
	case s.rounds <- struct{}{}:
	default:
	}
}

// progress notes that the leader's loop moves.
func (s *Scheduler) progress() { s.moved.Store(int64(time.Since(s.started))) }

func (s *Scheduler) standstill() time.Duration {
	return time.Since(s.started) - time.Duration(s.moved.Load())
}

func isPermanent(err error) bool { return errors.Is(err, store.ErrPermanent) }
