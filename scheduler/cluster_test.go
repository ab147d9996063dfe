package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is several replicas of one group on one store, in a synctest bubble that begins at midnight.
type cluster struct {
	t        *testing.T
	store    *memstore.Store
	script   *script // decides on the fate of each call
	replicas []*replica
	puts     int

	mu   sync.Mutex
	runs []*execution // in the order in which they started
	logs strings.Builder
}

// inBubble runs a test with a cluster whose ledger exists, and stops all replicas at its end.
func inBubble(t *testing.T, test func(t *testing.T, c *cluster)) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t)
		if err := Create(t.Context(), c.store, "g"); err != nil {
			t.Fatal(err)
		}
		defer c.close()
		test(t, c)
	})
}

func newCluster(t *testing.T) *cluster {
	return &cluster{t: t, store: memstore.New(), script: newScript()}
}

// close stops all replicas; what is still on its way to the store arrives.
func (c *cluster) close() {
	for _, r := range c.replicas {
		r.stop()
	}
	c.script.late.Wait()
	if c.t.Failed() {
		c.t.Log("\n" + c.log())
	}
}

func (c *cluster) log() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.logs.String()
}

// pass lets so much time pass, and then all that is due at that moment be done. Only the root of a bubble calls it: a bare
// Sleep ends beside whatever else is due.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
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
	name    string
	cluster *cluster
	cancel  context.CancelFunc
	offset  atomic.Int64 // of its wall clock
	dead    chan struct{}
	done    chan struct{}
	err     error
	checked bool
}

// execution is a job's work being done.
type execution struct {
	replica *replica
	run     Run
	ctx     context.Context
	at      time.Time
	over    time.Time // zero while it goes on
}

// start runs a replica with the jobs; each start of a job's work is noted before Do, which may be nil, is called.
func (c *cluster) start(name string, change func(*Config), jobs ...Job) *replica {
	c.t.Helper()
	r := &replica{name: name, cluster: c, dead: make(chan struct{}), done: make(chan struct{})}
	cfg := Config{Group: "g", ID: name, Lease: 3 * time.Second, Seconds: true, History: 1000,
		Logger: slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug})).With("r", name)}
	if change != nil {
		change(&cfg)
	}
	s, err := New(&line.Line{Store: c.store, Replica: name, Carrier: c.script}, cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Scheduler = s
	r.add(jobs...)
	ctx := world.With(context.Background(), world.Seeded(1, name, func() time.Duration { return time.Duration(r.offset.Load()) }))
	ctx, r.cancel = context.WithCancel(ctx)
	c.replicas = append(c.replicas, r)
	go func() {
		r.err = s.Run(ctx)
		close(r.done)
	}()
	synctest.Wait()
	return r
}

func (r *replica) add(jobs ...Job) {
	r.cluster.t.Helper()
	for _, j := range jobs {
		do := j.Do
		j.Do = func(ctx context.Context, run Run) error { return r.work(ctx, run, do) }
		if err := r.Add(j); err != nil {
			r.cluster.t.Fatal(err)
		}
	}
}

func (r *replica) work(ctx context.Context, run Run, do Func) error {
	select {
	case <-r.dead:
		return errGone
	default:
	}
	e := &execution{replica: r, run: run, ctx: ctx, at: time.Now()}
	r.cluster.mu.Lock()
	r.cluster.runs = append(r.cluster.runs, e)
	r.cluster.mu.Unlock()
	defer func() {
		r.cluster.mu.Lock()
		e.over = time.Now()
		r.cluster.mu.Unlock()
	}()
	if do == nil {
		return nil
	}
	return do(ctx, run)
}

// stop ends a replica politely, waits for it, and checks what Run returned.
func (r *replica) stop() {
	r.cluster.t.Helper()
	r.cancel()
	<-r.done
	if !r.checked && r.err != nil {
		r.cluster.t.Errorf("Run of %s returned %v", r.name, r.err)
	}
	r.checked = true
}

// kill ends a replica without a word: nothing of it reaches the store any more.
func (r *replica) kill() {
	r.checked = true
	r.cluster.cutOff(r)
	close(r.dead)
	r.cancel()
}

// cutOff loses everything that a replica sends from now on, besides what the script says.
func (c *cluster) cutOff(r *replica) {
	c.script.mu.Lock()
	defer c.script.mu.Unlock()
	before := c.script.decide
	c.script.decide = func(call call) fate {
		switch {
		case call.replica == r.name:
			return fate{err: errGone}
		case before != nil:
			return before(call)
		}
		return fate{}
	}
}

// leads reports whether the replica holds the lease.
func (r *replica) leads() bool {
	l, err := r.cluster.store.Leader(context.Background(), "g")
	return err == nil && strings.HasPrefix(l.Replica, r.name+"-")
}

// takes is a job's work that takes so long, or until its context ends.
func takes(d time.Duration) Func {
	return func(ctx context.Context, _ Run) error {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// sleeps is a job's work that takes so long whatever becomes of its context.
func sleeps(d time.Duration) Func {
	return func(context.Context, Run) error { time.Sleep(d); return nil }
}

// started says which attempts of a job were started, in order: "r1 00:00:05#1 schedule".
func (c *cluster) started(job string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []string
	for _, e := range c.runs {
		if e.run.Job == job {
			all = append(all, fmt.Sprintf("%s %s#%d %s", e.replica.name, e.run.Tick.Format("15:04:05"), e.run.Attempt, e.run.Reason))
		}
	}
	return all
}

// executions returns the runs of a job in the order of their starts.
func (c *cluster) executions(job string) []execution {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []execution
	for _, e := range c.runs {
		if e.run.Job == job {
			all = append(all, *e)
		}
	}
	return all
}

// entries returns the history of a job, oldest first.
func (c *cluster) entries(job string) []Entry {
	c.t.Helper()
	in, err := NewInspector(c.store, "g", "ann")
	if err != nil {
		c.t.Fatal(err)
	}
	var all []Entry
	for e, err := range in.History(context.Background(), job) {
		if err != nil {
			c.t.Fatal(err)
		}
		all = append(all, e)
	}
	slices.Reverse(all)
	return all
}

// entry returns the nth entry in the history of a job, from 0, the oldest.
func (c *cluster) entry(t *testing.T, job string, n int) Entry {
	t.Helper()
	all := c.entries(job)
	if len(all) <= n {
		t.Fatalf("the history of %s has %d entries", job, len(all))
	}
	return all[n]
}

// history returns the entries of a job, oldest first, as "00:00:05#1 schedule succeeded" or "00:00:06-00:00:08 ×3 overlap".
func (c *cluster) history(job string) []string {
	c.t.Helper()
	var lines []string
	for _, e := range c.entries(job) {
		at := e.Tick.Format("15:04:05")
		switch {
		case e.Outcome != Skipped:
			at = fmt.Sprintf("%s#%d %s %s", at, e.Attempt, e.Reason, e.Outcome)
		case e.Ticks == 1:
			at += " " + e.Detail
		default:
			at = fmt.Sprintf("%s-%s ×%d %s", at, e.LastTick.Format("15:04:05"), e.Ticks, e.Detail)
		}
		lines = append(lines, at)
	}
	return lines
}

// put writes records into the ledger of a group that nobody leads.
func (c *cluster) put(changes ...store.Change) {
	c.t.Helper()
	c.puts++
	ctx := context.Background()
	l, err := c.store.Acquire(ctx, "g", store.Candidate{
		Replica: store.Replica{ID: "editor"}, Nonce: fmt.Sprint("n", c.puts), TTL: time.Second, Session: time.Second, Start: true,
	})
	if err != nil {
		c.t.Fatal(err)
	}
	if err := c.store.Commit(ctx, l, 1, changes); err != nil {
		c.t.Fatal(err)
	}
	if err := c.store.Release(ctx, l); err != nil {
		c.t.Fatal(err)
	}
}

// records returns a bucket.
func (c *cluster) records(bucket string) map[string]string {
	c.t.Helper()
	all := make(map[string]string)
	for r, err := range c.store.Read(context.Background(), "g", nil, bucket) {
		if err != nil {
			c.t.Fatal(err)
		}
		all[r.Key] = string(r.Value)
	}
	return all
}

// equal fails unless got is want.
func equal[T comparable](t testing.TB, what string, got, want []T) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\ngot  %v\nwant %v", what, got, want)
	}
}

// every returns n ticks of a job as history says them: from second first, step seconds apart.
func every(first, step, n int, what string) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("%s#1 %s", time.Unix(int64(first+i*step), 0).UTC().Format("15:04:05"), what))
	}
	return all
}
