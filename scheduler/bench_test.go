package scheduler

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store/memstore"
)

// BenchmarkLeader measures one leader over a store in memory, with a thousand jobs that fall due each second: how long it
// takes from the first claim of a second to the last end in the ledger.
func BenchmarkLeader(b *testing.B) {
	const jobs = 1000
	st := memstore.New()
	if err := Create(b.Context(), st, "g"); err != nil {
		b.Fatal(err)
	}
	s, err := New(st, Config{Group: "g", Seconds: true})
	if err != nil {
		b.Fatal(err)
	}
	var mu sync.Mutex
	starts := make(map[int64][]time.Time)
	for i := range jobs {
		do := func(_ context.Context, run Run) error {
			mu.Lock()
			defer mu.Unlock()
			starts[run.Tick.Unix()] = append(starts[run.Tick.Unix()], time.Now())
			return nil
		}
		if err := s.Add(Job{Name: fmt.Sprint("job", i), Spec: "* * * * * *", CatchUp: CatchUpAll, Do: do}); err != nil {
			b.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	_, before, _ := st.Position(ctx, "g")
	var first, last time.Duration
	seconds := 0
	for b.Loop() {
		second := time.Now().Unix() + 1
		for full := false; !full; time.Sleep(time.Millisecond) {
			mu.Lock()
			full = len(starts[second]) == jobs
			mu.Unlock()
		}
		mu.Lock()
		first += starts[second][0].Sub(time.Unix(second, 0))
		last += starts[second][jobs-1].Sub(time.Unix(second, 0))
		mu.Unlock()
		seconds++
	}
	_, after, _ := st.Position(ctx, "g")
	b.ReportMetric(float64(first.Microseconds())/float64(seconds)/1000, "ms-to-first-start")
	b.ReportMetric(float64(last.Microseconds())/float64(seconds)/1000, "ms-to-last-start")
	b.ReportMetric(float64(after-before)/float64(seconds), "commits/s")
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

var silent = slog.New(slog.DiscardHandler)

// BenchmarkClaimAndEnd measures what one tick costs a leader besides the store's own time: decide, claim, start, end.
func BenchmarkClaimAndEnd(b *testing.B) {
	for _, jobs := range []int{1, 1000} {
		b.Run(fmt.Sprint(jobs, " jobs"), func(b *testing.B) {
			c := &book{
				jobs: make(map[string]*jobState), runs: make(map[string]*runRecord), slots: 100, log: silent, memory: new(memory),
			}
			for i := range jobs {
				name := fmt.Sprint("job", i)
				def := defined(b, Job{Name: name, Spec: "* * * * * *"})
				c.jobs[name] = &jobState{name: name, record: jobRecord{Version: 1, Spec: def.Spec, Key: def.key, Ring: 100}, def: def, index: -1}
			}
			now := day
			for b.Loop() {
				now = now.Add(time.Second)
				for _, j := range c.jobs {
					p := j.def.decide(situation{now: now, watermark: now.Add(-time.Second), free: 1})
					rec := &runRecord{Job: j.name, Tick: p.claims[0].tick.Unix(), Attempt: 1, Version: 1, Replica: "r"}
					c.runs[rec.id()] = rec
					c.put(bucketRun, rec.id(), rec)
					j.record.Watermark = rec.Tick
					c.putJob(j)
					e := entryOf(rec)
					e.Outcome, e.Ended = Succeeded, now
					c.enter(j, e)
					c.closeRun(j, rec, now)
					if c.batch.full() {
						c.batch = batch{}
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*jobs), "ns/tick")
		})
	}
}

// BenchmarkJobMemory measures what a job costs: its definition, its state in the leader's book, and what is remembered.
func BenchmarkJobMemory(b *testing.B) {
	const jobs = 10_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		st := memstore.New()
		if err := Create(b.Context(), st, "g"); err != nil {
			b.Fatal(err)
		}
		s, err := New(st, Config{Group: "g", Seconds: true})
		if err != nil {
			b.Fatal(err)
		}
		for i := range jobs {
			if err := s.Add(Job{Name: fmt.Sprint("job", i), Spec: "0 0 3 * * *", Do: work}); err != nil {
				b.Fatal(err)
			}
		}
		ctx, cancel := context.WithCancel(b.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		for n := 0; n < jobs; time.Sleep(10 * time.Millisecond) {
			n = 0
			for range st.Read(ctx, "g", nil, bucketJob) {
				n++
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/jobs, "B/job")
		cancel()
		if err := <-done; err != nil {
			b.Error(err)
		}
	}
}
