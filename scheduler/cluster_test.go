package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

// cluster is several replicas of one group on one store, in a synctest bubble.
type cluster struct {
	t     *testing.T
	store store.Store
	group string

	mu   sync.Mutex
	runs []Run // in the order in which they started
	logs strings.Builder
}

func newCluster(t *testing.T) *cluster {
	c := &cluster{t: t, store: memstore.New(), group: "g"}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("\n" + c.log())
		}
	})
	return c
}

func (c *cluster) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logs.String()
}

// Write gathers the logs of all replicas.
func (c *cluster) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logs.Write(p)
}

// replica is one scheduler that is running.
type replica struct {
	*Scheduler
	cluster *cluster
	cancel  context.CancelFunc
	done    chan error
}

// start runs a replica with the jobs; each job's work is recorded in the cluster before do, which may be nil, is called.
func (c *cluster) start(name string, change func(*Config), jobs ...Job) *replica {
	c.t.Helper()
	cfg := Config{Group: c.group, ID: name, Lease: 3 * time.Second, Seconds: true,
		Logger: slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug})).With("r", name)}
	if change != nil {
		change(&cfg)
	}
	s, err := New(c.store, cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range jobs {
		do := jobs[i].Do
		jobs[i].Do = func(ctx context.Context, run Run) error {
			c.mu.Lock()
			c.runs = append(c.runs, run)
			c.mu.Unlock()
			if do == nil {
				return nil
			}
			return do(ctx, run)
		}
	}
	if err := s.Add(slices.Clone(jobs)...); err != nil {
		c.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &replica{Scheduler: s, cluster: c, cancel: cancel, done: make(chan error, 1)}
	go func() { r.done <- s.Run(ctx) }()
	return r
}

// stop ends a replica politely and checks what Run returned.
func (r *replica) stop() {
	r.cluster.t.Helper()
	r.cancel()
	if err := <-r.done; err != nil {
		r.cluster.t.Errorf("Run returned %v", err)
	}
}

// ticks returns the ticks of a job in the order in which their runs started.
func (c *cluster) ticks(job string) []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ticks []time.Time
	for _, r := range c.runs {
		if r.Job == job {
			ticks = append(ticks, r.Tick)
		}
	}
	return ticks
}

// history returns the entries of a job, oldest first, one line each.
func (c *cluster) history(job string) []string {
	c.t.Helper()
	in, err := NewInspector(c.store, c.group)
	if err != nil {
		c.t.Fatal(err)
	}
	var lines []string
	for e, err := range in.History(context.Background(), job) {
		if err != nil {
			c.t.Fatal(err)
		}
		lines = append(lines, summary(e))
	}
	slices.Reverse(lines)
	return lines
}

func summary(e Entry) string {
	at := e.Tick.Format("15:04:05")
	if e.Outcome == Skipped {
		return fmt.Sprintf("%s-%s %d skipped: %s", at, e.LastTick.Format("15:04:05"), e.Ticks, e.Detail)
	}
	return fmt.Sprintf("%s #%d %s %s", at, e.Attempt, e.Reason, e.Outcome)
}

func TestSmoke(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		job := func() Job { return Job{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll} }
		r1 := c.start("r1", nil, job())
		r2 := c.start("r2", nil, job())
		time.Sleep(20 * time.Second)
		r1.stop()
		time.Sleep(10 * time.Second)
		r2.stop()
		t.Log(len(c.ticks("a")), c.history("a"))
		t.Log(c.log())
	})
}
