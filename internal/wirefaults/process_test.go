package wirefaults

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store/redisstore"
)

const lease = 3 * time.Second

// process is one life of a replica: a client, a store, a scheduler, and the network that they live on.
type process struct {
	*scheduler.Scheduler
	name   string
	link   *link
	client *redis.Client
	store  *redisstore.Store
	cancel context.CancelFunc
	dead   chan struct{} // closed when it is killed
	done   chan struct{} // closed when Run has returned, and the connections are closed
	err    error         // of Run
}

// begin starts another process; only the root does.
func (s *scene) begin() *process {
	number := uint64(len(s.all) + 1)
	p := &process{
		name: fmt.Sprint("p", number),
		link: newLink(s.server, s.seed, number),
		dead: make(chan struct{}),
		done: make(chan struct{}),
	}
	p.link.rough = s.rough
	level := slog.LevelError
	if *logs {
		level = slog.LevelDebug
	}
	log := slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: level})).With("p", p.name)
	p.client = redis.NewClient(&redis.Options{
		Addr:                     "127.0.0.1:6379", // a number: a bubble has no name server
		Dialer:                   p.link.dial,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	p.store = redisstore.New(p.client, &redisstore.Options{Logger: log})
	var err error
	p.Scheduler, err = scheduler.New(p.store, scheduler.Config{
		Group: group, ID: p.name, Lease: lease, Grace: 4 * time.Second, History: 10_000, Seconds: true, Logger: log,
		Callbacks: election.Callbacks{Elected: func(t *election.Term) { s.elected(p, t) }},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	for _, j := range jobs {
		j.Do = func(ctx context.Context, run scheduler.Run) error { return s.work(ctx, p, run) }
		if err := p.Add(j); err != nil {
			s.t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(world.With(context.Background(), surroundings(s.seed, number)))
	p.cancel = cancel
	s.all, s.alive = append(s.all, p), append(s.alive, p)
	s.say("%s begins", p.name)
	go func() {
		defer close(p.done)
		err := p.Run(ctx)
		p.err = errors.Join(err, p.store.Close(), p.client.Close())
	}()
	return p
}

func (p *process) killed() bool { return closed(p.dead) }

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// surroundings are a process's: identifiers that grow with the time of its bubble, which those of package uuid do not.
func surroundings(seed, number uint64) *world.World {
	var mu sync.Mutex
	chance := rand.New(rand.NewPCG(number, seed))
	random := func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return chance.Uint64()
	}
	ids := 0
	return &world.World{
		Wall:   time.Now,
		Random: random,
		ID: func() string {
			mu.Lock()
			defer mu.Unlock()
			ids++
			return fmt.Sprintf("%013x-%06d-p%d", time.Now().UnixMilli(), ids, number)
		},
		Secret: func() string { return fmt.Sprintf("%016x%016x", random(), random()) },
	}
}

// execution is a job's work being done.
type execution struct {
	process *process
	run     scheduler.Run
	ctx     context.Context
	ended   bool
	err     error
}

var errBug = errors.New("the job's own trouble")

// work is what all jobs do: it takes a while that follows from the seed, and mostly heeds its context.
func (s *scene) work(ctx context.Context, p *process, run scheduler.Run) error {
	if p.killed() {
		return errGone
	}
	e := &execution{process: p, run: run, ctx: ctx}
	s.enter(e)
	h := fnv.New64a()
	fmt.Fprint(h, s.seed, run.ID(), run.Attempt)
	draw := h.Sum64()
	long := time.Duration(draw % uint64(300*time.Millisecond))
	if draw>>32%12 == 0 && !s.calm.Load() {
		long = time.Duration(draw % uint64(5*time.Second))
	}
	var err error
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
		if draw>>40%10 == 0 {
			err = errBug
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
		if draw>>44%8 == 0 { // it does not heed
			select {
			case <-timer.C:
				err = nil
			case <-p.dead:
			}
		}
	case <-p.dead:
	}
	if p.killed() {
		return errGone
	}
	s.leave(e, err)
	return err
}
