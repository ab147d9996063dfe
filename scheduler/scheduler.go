package scheduler

import (
	"context"
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
// context.DeadlineExceeded (Timeout), ErrCancelled, ErrReplaced, election.ErrExpired and store.ErrEnded (the replica's
// session). A job that has heard
// of the stop by itself returns an error that wraps it: its run is interrupted then, and not failed.
var ErrStopping = errors.New("scheduler: grace is over")

// errStandstill ends the term of a leader whose loop does not move (S7).
var errStandstill = errors.New("scheduler: the scheduling loop stands still")

// Scheduler runs jobs on the leader of a group; its methods are safe for concurrent use, also from inside a job.
type Scheduler struct {
	store   store.Store
	cfg     Config
	log     *slog.Logger
	elector *election.Elector
	memory  *memory

	mu      sync.Mutex
	jobs    map[string]*definition
	version int    // of jobs; from 1
	stop    func() // ends Run; nil when it is not running
	fatal   error  // with which it ends

	// Of one Run:
	world   *world.World
	runner  *runner
	bell    chan struct{} // wakes the leader's loop
	rounds  chan struct{} // wakes attend
	leading atomic.Bool
	inbox   atomic.Bool  // messages may have come
	claimed atomic.Int64 // claims that are on their way to the store
	moved   atomic.Int64 // when the leader's loop last moved, in ns since born
	born    time.Time
}

// New returns a scheduler that does nothing until Run is called.
func New(st store.Store, cfg Config) (*Scheduler, error) {
	err := cfg.complete()
	elector, electorErr := election.New(st, election.Config{
		Group:     cfg.Group,
		ID:        cfg.ID,
		Lease:     cfg.Lease,
		Info:      encode(replicaInfo{Version: formatVersion, Lease: cfg.Lease.Milliseconds()}),
		Logger:    cfg.Logger,
		Callbacks: cfg.Callbacks,
	})
	if err = errors.Join(err, electorErr); err != nil {
		return nil, err
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
		born:    time.Now(),
	}, nil
}

// Add adds jobs, all or none; the error names every problem. A job that is new in the group, or whose ticks have changed,
// starts from the moment the leader first sees it. It may be called at any time, also from inside a job; on a leader it
// takes effect at once.
func (s *Scheduler) Add(jobs ...Job) error {
	defs, problems := s.define(jobs)
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

// Replace makes jobs the only ones of this replica, in one step, all or none; the error names every problem. Those that
// it has already keep their place in the ledger as those of another binary would: only ticks that have changed start from
// now. Those that it has and jobs lacks are removed. Running runs go on as they were started.
func (s *Scheduler) Replace(jobs ...Job) error {
	defs, problems := s.define(jobs)
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	s.mu.Lock()
	s.jobs = defs
	s.version++
	s.mu.Unlock()
	s.ring()
	return nil
}

// define makes jobs ready.
func (s *Scheduler) define(jobs []Job) (defs map[string]*definition, problems []error) {
	opts := schedule.Options{Seconds: s.cfg.Seconds, Zone: s.cfg.Zone}
	defs = make(map[string]*definition, len(jobs))
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
	return defs, problems
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
func (s *Scheduler) progress() { s.moved.Store(int64(time.Since(s.born))) }

func (s *Scheduler) standstill() time.Duration {
	return time.Since(s.born) - time.Duration(s.moved.Load())
}
