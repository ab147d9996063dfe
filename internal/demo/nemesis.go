package demo

import (
	"fmt"
	"syscall"
	"time"
)

// The faults, by what the tally calls them.
const (
	killed = "killed"
	froze  = "frozen"
	left   = "left"
)

// nemesis does something to the leader every few seconds, between two ticks.
type nemesis struct {
	show  *show
	next  time.Time
	turn  int
	over  bool
	again []*replica // to be started again
	cold  *replica   // frozen
	thaw  time.Time
}

// act does what is due.
func (n *nemesis) act(now time.Time) error {
	if err := n.recover(now); err != nil {
		return err
	}
	s := n.show
	between := now.Sub(now.Truncate(time.Second))
	if n.over || now.Before(n.next) || s.leader == nil || s.fault != "" || n.cold != nil || between < phase || between > phase+100*time.Millisecond {
		return nil
	}
	n.next = now.Add(every).Truncate(time.Second)
	leader := s.leader
	s.faultAt, s.leader = now, nil
	switch n.turn % 3 {
	case 0:
		s.fault = killed
		s.timeline.event(now, leader.name, "KILLED", "(SIGKILL; the lease has to end)")
		leader.kill()
		n.again = append(n.again, leader)
	case 1:
		s.fault = left
		s.timeline.event(now, leader.name, "asked to leave (SIGTERM)", "")
		leader.terminate()
		n.again = append(n.again, leader)
	case 2:
		s.fault = froze
		s.timeline.event(now, leader.name, fmt.Sprintf("FROZEN for %s (SIGSTOP)", brief(frozen)), "(the lease has to end)")
		leader.signal(syscall.SIGSTOP)
		n.cold, n.thaw = leader, now.Add(frozen)
	}
	n.turn++
	return nil
}

// recover starts again what has ended and thaws what is frozen.
func (n *nemesis) recover(now time.Time) error {
	s := n.show
	if n.cold != nil && !now.Before(n.thaw) {
		s.timeline.event(now, n.cold.name, "thawed; another leads, so it runs nothing", "")
		n.cold.signal(syscall.SIGCONT)
		n.cold = nil
	}
	if s.fault != "" || len(n.again) == 0 || n.again[0].running() {
		return nil
	}
	r := n.again[0]
	n.again = n.again[1:]
	s.timeline.event(now, r.name, "started again", "")
	return r.start()
}

// finish does what is still due when no more faults come.
func (n *nemesis) finish(now time.Time) error { return n.recover(now) }
