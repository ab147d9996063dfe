package rivals

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/tally"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

// EverySecond has three replicas run a job every second, on stores that open returns, while breaks breaks the servers until
// mend is called, and leadership is handed over. Each tick must have run once, or again where the history shows that an
// attempt was interrupted.
func EverySecond(t *testing.T, lease time.Duration, open func() store.Store, breaks func() (mend func())) {
	t.Helper()
	var mu sync.Mutex
	var effects []tally.Effect
	ticks := make(chan time.Time, 1000)
	job := scheduler.Job{Name: "tick", Spec: "* * * * * *", CatchUp: scheduler.CatchUpAll, OnInterrupt: scheduler.InterruptRerun,
		Do: func(_ context.Context, run scheduler.Run) error {
			mu.Lock()
			defer mu.Unlock()
			effects = append(effects, tally.Effect{Tick: run.Tick.Unix(), At: time.Now()})
			ticks <- run.Tick
			return nil
		}}
	var all []*scheduler.Scheduler
	for _, id := range []string{"a", "b", "c"} {
		jobs, err := scheduler.New(open(), scheduler.Config{Group: "g", ID: id, Lease: lease, Seconds: true})
		Must(t, err)
		Must(t, jobs.Add(job))
		all = append(all, jobs)
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan error, 1)
		go func() { over <- jobs.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			if err := <-over; err != nil {
				t.Error(err)
			}
		})
	}
	after := func(tick time.Time) time.Time {
		t.Helper()
		for {
			select {
			case next := <-ticks:
				if !next.Before(tick) {
					return next
				}
			case <-time.After(Patience):
				t.Fatal("no tick runs")
			}
		}
	}
	first := after(time.Time{})
	tick := after(first.Add(2 * time.Second))
	mend := breaks()
	tick = after(tick.Add(3 * time.Second))
	for _, jobs := range all {
		if jobs.Resign(Short(t)) == nil {
			break // the others do not lead
		}
	}
	mend()
	after(tick.Add(2 * time.Second))
	inspector, err := scheduler.NewInspector(open(), "g", "judge")
	Must(t, err)
	var said tally.Chronicle
	Must(t, said.Gather(Short(t), inspector, job.Name))
	mu.Lock()
	defer mu.Unlock()
	if v := tally.Judge(effects, &said); len(v.Missing)+len(v.Doubled) > 0 {
		t.Errorf("%v: missing %v, doubled %v", v, v.Missing, v.Doubled)
	}
}
