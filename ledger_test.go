//go:build unix

package singleton_test

import (
	"testing"
	"time"

	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/scheduler"
)

func TestB33StoreIsGoneAroundATick(t *testing.T) {
	t.Parallel()
	s := newShift(newGroup(t))
	s.work(s.store(s.server.Addr()), scheduler.Config{ID: "a", Lease: far},
		scheduler.Job{Name: "tick", Spec: everySecond, CatchUp: scheduler.CatchUpAll})
	before := s.run("tick", time.Time{}).Tick
	s.server.Stop()
	pass(t, before.Add(3*time.Second+lease/10))
	back := time.Now()
	s.server.Cont()
	for tick := before.Add(time.Second); !tick.After(back); {
		run := s.run("tick", before)
		if !run.Tick.Equal(tick) {
			t.Errorf("%v ran, want %v", run.Tick, tick)
		}
		tick = tick.Add(time.Second)
	}
	last := s.run("tick", back)
	s.accounted("tick", last.Tick)
	inOrder(t, s.ticks("tick"), false)
	for _, e := range s.history("tick") {
		if e.Tick.After(before) && e.Tick.Before(back) && e.Started.Before(back) {
			t.Errorf("%v started at %v, while Redis did not answer; that was over at %v", e.Tick, e.Started, back)
		}
	}
}

// TestB57StoreLosesNothingOrEverythingUnderARunningGroup wipes or restarts Redis under two replicas. Watermarks come back
// from those who remember: ticks that fell due meanwhile are made up, and none runs twice.
func TestB57StoreLosesNothingOrEverythingUnderARunningGroup(t *testing.T) {
	t.Parallel()
	restart := func(s *shift) error { return s.server.Restart() }
	for name, c := range map[string]struct {
		fsync string
		fault func(*shift) error
		keeps bool // all that Redis has acknowledged
	}{
		"FLUSHALL":                                          {"everysec", func(s *shift) error { return s.admin.FlushAll(s.t.Context()).Err() }, false},
		"killed and restarted without its data":             {"everysec", func(s *shift) error { return s.server.RestartEmpty() }, false},
		"killed and restarted with what it has written":     {"everysec", restart, false},
		"killed and restarted with all it has acknowledged": {"always", restart, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShift(newGroup(t, redistest.AppendOnly(), redistest.Args("--appendfsync", c.fsync)))
			job := scheduler.Job{Name: "tick", Spec: everySecond, CatchUp: scheduler.CatchUpAll}
			for _, id := range []string{"a", "b"} {
				s.work(s.store(s.server.Addr()), scheduler.Config{ID: id}, job)
			}
			first := s.run("tick", time.Time{})
			s.run("tick", first.Tick.Add(time.Second))
			if err := c.fault(s); err != nil {
				t.Fatal(err)
			}
			back := time.Now()
			last := s.run("tick", back.Add(2*time.Second))
			inOrder(t, s.ticks("tick"), false)
			if c.keeps {
				s.accounted("tick", last.Tick)
			}
		})
	}
}
