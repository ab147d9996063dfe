package scheduler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

// once fails when a tick of the job was started twice as a first attempt.
func (c *cluster) once(t *testing.T, job string) {
	t.Helper()
	seen := make(map[string]string)
	for _, e := range c.executions(job) {
		if e.run.Attempt > 1 {
			continue
		}
		if other, ok := seen[e.run.ID()]; ok {
			t.Errorf("%s started on %s and on %s", e.run.ID(), other, e.replica.name)
		}
		seen[e.run.ID()] = e.replica.name
	}
}

// leader returns the replica that holds the lease.
func (c *cluster) leader(t *testing.T) *replica {
	t.Helper()
	for _, r := range c.replicas {
		if r.leads() {
			return r
		}
	}
	t.Fatal("nobody leads")
	return nil
}

// delay makes every acquire of a replica take so long that another one wins.
func (c *cluster) delay(name string) {
	c.script.follow(func(call call) fate {
		if call.replica == name && call.op == "acquire" {
			return fate{request: 3 * time.Second}
		}
		return fate{}
	})
}

func TestB57WipedStore(t *testing.T) {
	jobs := []Job{
		{Name: "ticks", Spec: "* * * * * *", CatchUp: CatchUpAll},
		{Name: "rare", Spec: "0 */5 * * * *", CatchUp: CatchUpAll},
		{Name: "long", Spec: "8 * * * * *", OnInterrupt: InterruptRerun, Do: takes(30 * time.Second)},
		{Name: "record", Spec: "8 * * * * *", Do: takes(30 * time.Second)},
	}
	for _, tt := range []struct{ name, slow, leads string }{
		{"a replica that has led leads next", "r2", "r1"},
		{"a replica that has never led leads next", "r1", "r2"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.start("r1", nil, jobs...)
				c.start("r2", nil, jobs...)
				pass(10500 * time.Millisecond)
				c.delay(tt.slow)
				c.store.Wipe()
				// The watermark of the ticks does not come back to what it was when r2, or r1, began.
				pass(10 * time.Second)
				c.script.follow(nil)
				if l := c.leader(t); l.name != tt.leads {
					t.Errorf("%s leads", l.name)
				}
				pass(10 * time.Second)
				c.once(t, "ticks")
				equal(t, "rare", c.started("rare"), nil)
				first := c.executions("ticks")[10].run
				if want := day2000().Add(11 * time.Second); !first.Tick.Equal(want) || first.Reason != ReasonCatchUp {
					t.Errorf("after the wipe the first tick is %v, %s, want %v", first.Tick, first.Reason, want)
				}
				equal(t, "long", c.started("long"), []string{"r1 00:00:08#1 schedule", tt.leads + " 00:00:08#2 rerun"})
				equal(t, "record", c.history("record"), []string{"00:00:08#1 schedule interrupted"})
				runs := c.executions("long")
				if len(runs) == 2 && runs[1].at.Before(runs[0].over) {
					t.Errorf("the second attempt started at %v, the first ended at %v", runs[1].at, runs[0].over)
				}
			})
		})
	}
}

// Of several memories the later watermark counts, and the runs of the newest.
func TestB57SeveralMemories(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		jobs := []Job{
			{Name: "ticks", Spec: "* * * * * *", CatchUp: CatchUpAll},
			{Name: "long", Spec: "2 * * * * *", Do: takes(2 * time.Second)},
		}
		r1 := c.start("r1", nil, jobs...)
		pass(3500 * time.Millisecond)
		c.start("r2", nil, jobs...)
		if err := r1.Resign(t.Context()); err != nil { // r1 remembers 3 s and an open run
			t.Fatal(err)
		}
		pass(7 * time.Second)
		if l := c.leader(t); l.name != "r2" { // r2 remembers 10 s, and that the run has ended
			t.Fatalf("%s leads", l.name)
		}
		c.start("r3", nil, jobs...)
		c.script.follow(func(call call) fate {
			if call.op == "acquire" && call.replica != "r3" {
				return fate{request: 200 * time.Millisecond}
			}
			return fate{}
		})
		c.store.Wipe()
		pass(10 * time.Second)
		if l := c.leader(t); l.name != "r3" {
			t.Fatalf("%s leads", l.name)
		}
		c.once(t, "ticks")
		if got := c.executions("ticks")[10].run.Tick; !got.Equal(day2000().Add(11 * time.Second)) {
			t.Errorf("after the wipe the first tick is %v", got)
		}
		equal(t, "long", c.started("long"), []string{"r1 00:00:02#1 schedule"})
		equal(t, "history of long", c.history("long"), nil) // it was lost
		if runs := c.records(bucketRun); len(runs) != 0 {
			t.Errorf("open runs %v", runs)
		}
	})
}

// Who remembers may look at the ledger less often than the new leader's lease is long.
func TestB57LongestLeaseIsWaitedFor(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "12 * * * * *"}
		long := func(cfg *Config) { cfg.Lease = 30 * time.Second }
		r1 := c.start("r1", long, job)
		r2 := c.start("r2", nil, job)
		pass(5 * time.Second)
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(6 * time.Second)
		if !r2.leads() {
			t.Fatal("r2 does not lead")
		}
		c.start("r3", nil, job)
		r2.kill()
		c.script.follow(func(call call) fate {
			switch {
			case call.replica == "r2":
				return fate{err: errGone}
			case call.replica == "r1" && call.op == "acquire":
				return fate{request: 150 * time.Millisecond}
			}
			return fate{}
		})
		c.store.Wipe()
		pass(40 * time.Second)
		// Without r1's memory the job would start from now, and nobody would ever run this tick.
		equal(t, "starts", c.started("a"), []string{"r3 00:00:12#1 schedule"})
	})
}

func TestB57NobodyRemembers(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		job := Job{Name: "a", Spec: "* * * * * *", CatchUp: CatchUpAll}
		r1 := c.start("r1", nil, job)
		c.start("r2", nil, job)
		pass(5500 * time.Millisecond)
		r1.kill()
		c.store.Wipe()
		pass(6 * time.Second)
		// One lease and a second of waiting for memories; a job that nobody remembers starts from now.
		equal(t, "starts", c.started("a")[5:], []string{"r2 00:00:10#1 schedule", "r2 00:00:11#1 schedule"})
	})
}

// A memory that is spread over several messages.
func TestB57ManyJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var jobs []Job
		for i := range 400 {
			name := strings.Repeat("x", 100) + fmt.Sprint(i)
			jobs = append(jobs, Job{Name: name, Spec: "*/10 * * * * *", CatchUp: CatchUpAll})
		}
		c.start("r1", nil, jobs...)
		c.start("r2", nil, jobs...)
		pass(15 * time.Second)
		if n := len(c.replicas[0].memory.all().parts()); n < 3 {
			t.Fatalf("%d messages, too few for this test", n)
		}
		c.delay("r1")
		c.store.Wipe()
		pass(10 * time.Second)
		for _, j := range jobs {
			if n := len(c.executions(j.Name)); n != 2 {
				t.Fatalf("job %s has run %d times, want at 10 and at 20 s", j.Name, n)
			}
			c.once(t, j.Name)
		}
	})
}

// The store comes back without its newest records, the lease among what it has kept.
func TestLostTailIsRestored(t *testing.T) {
	for _, tt := range []struct {
		name string
		lone bool // no other replica
		mute bool // the leader cannot post what it remembers
	}{{"the same leader", true, false}, {"the next leader", false, false}, {"the same leader, by itself", true, true}} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				jobs := []Job{
					{Name: "ticks", Spec: "* * * * * *", CatchUp: CatchUpAll, OnInterrupt: InterruptRerun, Do: takes(100 * time.Millisecond)},
					{Name: "ended", Spec: "8 * * * * *", OnInterrupt: InterruptRerun, Do: takes(1800 * time.Millisecond)},
					{Name: "going", Spec: "8 * * * * *", OnInterrupt: InterruptRerun, Do: takes(5 * time.Second)},
					{Name: "claimed", Spec: "*/3 * * * * *", Do: takes(4 * time.Second)},
				}
				lease := func(cfg *Config) { cfg.Lease = 6 * time.Second } // what comes back outlives the outage
				c.start("r1", lease, jobs...)
				if !tt.lone {
					c.start("r2", lease, jobs...)
				}
				pass(8500 * time.Millisecond)
				restore := c.store.Snapshot() // "ended" and "going" are open
				pass(2200 * time.Millisecond)
				// r1 says what it remembers before it gives up the lease: after that it would be too late.
				late := "position"
				if tt.mute {
					late = "post"
				}
				if !tt.lone || tt.mute {
					c.script.follow(func(call call) fate { return fate{lost: call.replica == "r1" && call.op == late} })
				}
				restore() // "ended" has ended, and its end is lost, like two ticks and the claim of 9 s
				pass(7500 * time.Millisecond)
				c.once(t, "ticks")
				equal(t, "ended", c.started("ended"), []string{"r1 00:00:08#1 schedule"})
				equal(t, "history of ended", c.history("ended"), []string{"00:00:08#1 schedule succeeded"})
				equal(t, "going", c.started("going"), []string{"r1 00:00:08#1 schedule"})
				equal(t, "history of going", c.history("going"), []string{"00:00:08#1 schedule succeeded"})
				var claimed []string
				for _, e := range c.executions("claimed") { // the run whose claim was lost goes on until 13 s
					claimed = append(claimed, e.run.Tick.Format("15:04:05"))
				}
				equal(t, "claimed", claimed, []string{"00:00:03", "00:00:09", "00:00:15"})
				if runs := c.records(bucketRun); len(runs) > 1 {
					t.Errorf("open runs %v", runs)
				}
				if !slices.Contains(c.history("ticks"), "00:00:09-00:00:10 ×2 restored") {
					t.Errorf("history of ticks: %v", c.history("ticks"))
				}
				if n := len(c.executions("ticks")); n != 18 {
					t.Errorf("%d ticks were run in 18 s", n)
				}
			})
		})
	}
}

// The store comes back with the first attempt of a run open: what has become of later ones counts.
func TestLostAttemptsAreNotMadeAgain(t *testing.T) {
	for _, tt := range []struct {
		name  string
		lost  time.Duration // when the records are
		fails int           // attempts
		want  []string      // starts

		history []string
	}{
		{"the second has succeeded", 11500 * time.Millisecond, 1, []string{"r1 00:00:08#1 schedule", "r1 00:00:08#2 retry"},
			[]string{"00:00:08#1 schedule failed"}},
		{"all have failed", 15 * time.Second, 3, []string{"r1 00:00:08#1 schedule", "r1 00:00:08#2 retry", "r1 00:00:08#3 retry"},
			[]string{"00:00:08#1 schedule failed"}},
		{"it waits for the third", 11500 * time.Millisecond, 2,
			[]string{"r1 00:00:08#1 schedule", "r1 00:00:08#2 retry", "r1 00:00:08#3 retry"},
			[]string{"00:00:08#1 schedule failed", "00:00:08#3 retry succeeded"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.start("r1", func(cfg *Config) { cfg.Lease = 8 * time.Second }, Job{
					Name: "a", Spec: "8 * * * * *", Retry: Retry{Attempts: 3, Delay: time.Second},
					Do: func(_ context.Context, run Run) error {
						time.Sleep(700 * time.Millisecond)
						if run.Attempt <= tt.fails {
							return errors.New("not yet")
						}
						return nil
					},
				}, Job{Name: "ticks", Spec: "*/2 * * * * *"}) // commits, which do not fit any more
				pass(8500 * time.Millisecond)
				restore := c.store.Snapshot() // the first attempt is open
				pass(tt.lost - 8500*time.Millisecond)
				restore()
				pass(20 * time.Second)
				equal(t, "starts", c.started("a"), tt.want)
				equal(t, "history", c.history("a"), tt.history)
				if runs := c.records(bucketRun); len(runs) > 0 {
					t.Errorf("open runs %v", runs)
				}
			})
		})
	}
}

// A wiped store whose new leader died while it made the ledger: the next one begins again.
func TestHalfMadeLedgerIsMadeAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		var jobs []Job
		for i := range 200 { // several commits
			jobs = append(jobs, Job{Name: "j" + time.Duration(i).String(), Spec: "*/10 * * * * *", CatchUp: CatchUpAll})
		}
		c.start("r1", nil, jobs...)
		r2 := c.start("r2", nil, jobs...)
		c.start("r3", nil, jobs...)
		pass(15 * time.Second)
		var made []string // the commits that make the ledger
		c.script.follow(func(call call) fate {
			for _, change := range call.changes {
				if change.Bucket == bucketLedger {
					made = append(made, fmt.Sprint("the marker and ", len(call.changes)-1, " more"))
				}
			}
			switch {
			case call.op == "acquire" && call.replica != "r2":
				return fate{request: 200 * time.Millisecond}
			case call.replica == "r2" && call.op == "commit" && strings.HasSuffix(call.about, " 2"):
				r2.kill()
				return fate{err: errGone}
			}
			return fate{}
		})
		c.store.Wipe()
		pass(20 * time.Second)
		c.script.follow(nil)                                                         // and wait for whoever asks it
		equal(t, "commits with the marker", made, []string{"the marker and 0 more"}) // it comes last, and alone
		if len(c.records(bucketLedger)) != 1 || c.leader(t) == r2 {
			t.Fatalf("marker %v, leader %v", c.records(bucketLedger), c.leader(t).name)
		}
		for _, j := range jobs {
			c.once(t, j.Name)
			if n := len(c.executions(j.Name)); n != 3 {
				t.Errorf("job %s has run %d times, want at 10, 20 and 30 s", j.Name, n)
			}
		}
	})
}

func TestMemoriesMerge(t *testing.T) {
	job := func(watermark int64) json.RawMessage {
		j := someJob
		j.Watermark, j.Row, j.Last = watermark, nil, nil
		return encode(&j)
	}
	run := func(n int64) (string, json.RawMessage) {
		r := someRun
		r.Tick = n
		return r.id(), encode(&r)
	}
	memory := func(at position, jobs map[string]json.RawMessage, runs ...int64) *recall {
		r := newRecall(at)
		r.Jobs = jobs
		for _, n := range runs {
			id, value := run(n)
			r.Runs[id] = value
		}
		return r
	}
	older := memory(position{5, 9}, map[string]json.RawMessage{"a": job(100), "b": job(200), "only": job(7)}, 1, 2)
	newer := memory(position{6, 1}, map[string]json.RawMessage{"a": job(150), "b": job(150), "bad": []byte(`{"v":1}`)}, 3)
	part := memory(position{6, 1}, map[string]json.RawMessage{"c": job(1)}, 4)
	for _, order := range [][]*recall{{older, newer, part}, {newer, part, older}, {part, older, newer}} {
		all := newRecall(position{})
		for _, r := range order {
			all.merge(r)
		}
		var got []string
		for name, value := range all.Jobs {
			j, err := decodeJob(store.Record{Key: name, Value: value})
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, fmt.Sprint(name, " ", j.Watermark))
		}
		slices.Sort(got)
		equal(t, "jobs", got, []string{"a 150", "b 200", "c 1", "only 7"})
		if len(all.Runs) != 2 || all.position() != (position{6, 1}) {
			t.Errorf("%d runs, position %v", len(all.Runs), all.position())
		}
	}
}
