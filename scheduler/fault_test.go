package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/store"
)

func TestPermanentFaultsEndRun(t *testing.T) {
	fault := store.Permanent("give the user the right to write", errors.New("NOPERM"))
	for _, tt := range []struct {
		name  string
		fails func(call call) bool
	}{
		{"of commits", func(call call) bool { return call.op == "commit" }},
		{"of reads", func(call call) bool { return call.op == "read" }},
		{"of positions", func(call call) bool { return call.op == "position" }},
		{"of the subscription", func(call call) bool { return call.op == "watch" && call.about == "2" }},
		{"of everything", func(call) bool { return true }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *cluster) {
				c.script.follow(func(call call) fate {
					if tt.fails(call) {
						return fate{err: fault}
					}
					return fate{}
				})
				r := c.start("r1", nil, Job{Name: "a", Spec: "* * * * * *"})
				r.checked = true
				<-r.done
				if !errors.Is(r.err, store.ErrPermanent) || !strings.Contains(r.err.Error(), "NOPERM: give the user the right to write") {
					t.Errorf("Run returned %v", r.err)
				}
				if took := time.Since(day2000()); took > 5*time.Second {
					t.Errorf("after %v", took)
				}
			})
		})
	}
}

// Neither a running job nor an end that cannot be told keeps Run for longer than the grace.
func TestPermanentFaultWithRunningJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		grace := func(cfg *Config) { cfg.Grace = 10 * time.Second }
		r := c.start("r1", grace, Job{Name: "heeds", Spec: "*/10 * * * * *", Do: takes(time.Hour)},
			Job{Name: "ignores", Spec: "*/10 * * * * *", Do: sleeps(40 * time.Second)})
		r.checked = true
		pass(11 * time.Second)
		c.script.follow(func(call) fate { return fate{err: store.Permanent("use the new password", errors.New("WRONGPASS"))} })
		<-r.done
		if !errors.Is(r.err, store.ErrPermanent) || !errors.Is(r.err, ErrUnfinished) {
			t.Errorf("Run returned %v", r.err)
		}
		if took := time.Since(day2000()); took > 25*time.Second {
			t.Errorf("after %v", took)
		}
		pass(time.Minute)
	})
}

func TestCheckSeesAStandstill(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		gate := make(chan struct{})
		blocks := func(cfg *Config) { cfg.Logger = slog.New(gated{cfg.Logger.Handler(), gate}) }
		r := c.start("r1", blocks, Job{Name: "a", Spec: "*/10 * * * * *", Do: takes(15 * time.Second)})
		r2 := c.start("r2", nil, Job{Name: "a", Spec: "*/10 * * * * *"})
		pass(11 * time.Second)
		if err := r.Check(); err != nil {
			t.Error(err)
		}
		pass(130 * time.Second) // the leader's loop waits for a log handler
		if err := r.Check(); !errors.Is(err, errStandstill) {
			t.Errorf("Check: %v", err)
		}
		pass(25 * time.Second)
		if got := c.started("a"); !r2.leads() || len(got) < 2 || !strings.HasPrefix(got[1], "r2 ") {
			t.Errorf("nobody has taken over: %v", c.started("a"))
		}
		before := c.records(bucketJob)["a"]
		close(gate) // what the loop that was left behind still does changes nothing
		pass(time.Second)
		if err := r.Check(); err != nil || c.records(bucketJob)["a"] != before {
			t.Errorf("%v, job was %s, is %s", err, before, c.records(bucketJob)["a"])
		}
	})
}

// gated is a log handler that blocks on records of skipped ticks until its gate is open.
type gated struct {
	slog.Handler
	gate chan struct{}
}

func (g gated) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == "ticks skipped" {
		<-g.gate
	}
	return g.Handler.Handle(ctx, r)
}

func (g gated) WithAttrs(a []slog.Attr) slog.Handler { return gated{g.Handler.WithAttrs(a), g.gate} }

// A follower that has never led sends nothing but what its elector sends.
func TestIdleFollowersSendNothing(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		lease := func(cfg *Config) { cfg.Lease = 15 * time.Second }
		job := Job{Name: "a", Spec: "* * * * * *"}
		c.start("r1", lease, job)
		c.start("r2", lease, job)
		pass(10 * time.Minute)
		acquires, watches := c.script.count("r2", "acquire"), c.script.count("r2", "watch")
		if all := c.script.count("r2", ""); all != acquires+watches || watches != 2 || acquires > 60 {
			t.Errorf("%d calls in 40 leases, of them %d acquires and %d watches", all, acquires, watches)
		}
	})
}

// What a replica sends that has led and has nothing to tell: looks at the ledger's position, and compares once in a while.
func TestIdleReplicasThatHaveLed(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster) {
		lease := func(cfg *Config) { cfg.Lease = 15 * time.Second }
		job := Job{Name: "a", Spec: "* * * * * *"}
		r1 := c.start("r1", lease, job)
		c.start("r2", lease, job)
		pass(time.Minute)
		if err := r1.Resign(t.Context()); err != nil {
			t.Fatal(err)
		}
		pass(time.Minute)
		before := make(map[string]int)
		ops := []string{"acquire", "position", "read", "leader", "join", "post", "replicas", "commit", ""}
		for _, op := range ops {
			before[op] = c.script.count("r1", op)
		}
		pass(10 * time.Minute) // 40 leases
		got := make(map[string]int)
		for _, op := range ops {
			got[op] = c.script.count("r1", op) - before[op]
		}
		if got["join"]+got["post"]+got["replicas"]+got["commit"]+got["leader"] > 0 || got["position"] > 81 || got["read"] > 11 ||
			got[""] != got["acquire"]+got["position"]+got["read"] {
			t.Errorf("%v", got)
		}
	})
}
