package wirefaults

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"github.com/go-singleton/singleton/scheduler"
)

const (
	step = 10 * time.Millisecond // from one look to the next
	// soon is how long after the faults somebody leads: a lease that runs out, and calls over connections that have fallen
	// silent, each of a fifth of a lease at most, with the pauses between them.
	soon = 2*lease + 2*time.Second
)

// scene is one group under the faults of one seed.
type scene struct {
	t      *testing.T
	seed   uint64
	rand   *rand.Rand // of the root
	server *miniredis.Miniredis
	first  time.Time // the first tick
	rough  bool
	all    []*process
	alive  []*process // that are meant to run
	before map[string][]account
	looks  int
	counts map[string]int
	gap    time.Duration // the longest without a leader after the faults were over
	calm   atomic.Bool   // no fault comes any more, and no run is long: who is behind now is behind for no reason

	mu       sync.Mutex
	failures []string
	terms    []term
	fence    uint64
	lost     time.Time // when the server last lost its data
	started  map[string]*execution
	active   map[string]*execution
	logs     strings.Builder
}

func newScene(t *testing.T, seed uint64) *scene {
	s := &scene{
		t:       t,
		seed:    seed,
		rand:    rand.New(rand.NewPCG(seed, 0)),
		server:  miniredis.NewMiniRedis(),
		before:  make(map[string][]account),
		counts:  make(map[string]int),
		started: make(map[string]*execution),
		active:  make(map[string]*execution),
	}
	s.server.ClockTTL(true)
	return s
}

// Write gathers the logs of all processes.
func (s *scene) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.logs.Write(p)
}

func (s *scene) say(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(fmt.Sprintf(format, args...))
}

func (s *scene) note(text string) {
	fmt.Fprintln(&s.logs, time.Now().UTC().Format("15:04:05.000"), "----", text)
}

func (s *scene) fail(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failed(format, args...)
}

// failed is fail where mu is held.
func (s *scene) failed(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	s.failures = append(s.failures, time.Now().UTC().Format("15:04:05.000 ")+text)
	s.note("FAILED " + text)
}

func (s *scene) sound() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.failures) == 0
}

// between draws a duration.
func (s *scene) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(s.rand.Int64N(int64(hi-lo)))
}

// chance is true once in n times.
func (s *scene) chance(n int) bool { return s.rand.IntN(n) == 0 }

// pass lets time pass and looks again and again.
func (s *scene) pass(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end) && s.sound(); {
		time.Sleep(step)
		synctest.Wait()
		s.look()
	}
}

// leads reports whether somebody does.
func (s *scene) leads() bool { return s.leader() != nil }

// leader returns the process that leads, or nil.
func (s *scene) leader() *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, _ := s.valid()
	return t.process
}

// play runs the whole scene: the start of the group, faults and quiet by turns, the reckoning, the end.
func (s *scene) play(long time.Duration) {
	for range 3 + s.rand.IntN(2) {
		s.begin()
	}
	s.await(soon)
	s.pass(lease + 3*time.Second) // a group without a ledger waits for memories of one
	s.first = time.Unix(max(s.read(catching).watermark, s.read(skipping).watermark), 0)
	for end := time.Now().Add(long); time.Now().Before(end) && s.sound(); {
		s.trouble(s.between(5*time.Second, 20*time.Second))
		s.heal()
		s.gap = max(s.gap, s.await(soon))
		s.pass(s.between(time.Second, 4*time.Second))
		switch s.rand.IntN(4) {
		case 0:
			s.wipe()
		case 1:
			s.handOver()
		}
	}
	s.calm.Store(true)
	s.pass(12 * time.Second) // what is behind catches up
	for tries := 0; s.behind() && tries < 30; tries++ {
		s.pass(time.Second)
	}
	if s.sound() {
		s.reckon()
	}
	if s.sound() {
		s.startAnew()
	}
	s.end()
	if strings.Contains(s.logs.String(), "panicked") {
		s.fail("something has panicked")
	}
}

// await waits for a leader, and returns how long.
func (s *scene) await(limit time.Duration) time.Duration {
	start := time.Now()
	for !s.leads() && s.sound() {
		if time.Since(start) > limit {
			s.fail("nobody leads after %v", limit)
		}
		s.pass(step)
	}
	return time.Since(start)
}

func (s *scene) behind() bool {
	return slices.ContainsFunc(jobs, func(j scheduler.Job) bool { return time.Now().Unix()-s.read(j.Name).watermark > 3 })
}

// end stops all processes, and checks that nothing of them is left.
func (s *scene) end() {
	for _, p := range s.all {
		p.cancel()
	}
	time.Sleep(20 * time.Second) // longer than the grace; and go-redis's own goroutines end within five
	synctest.Wait()
	for _, p := range s.all {
		switch {
		case !closed(p.done):
			s.fail("Run of %s does not return", p.name)
			continue
		case p.err != nil && !p.killed() && !errors.Is(p.err, scheduler.ErrUnfinished):
			s.fail("%s ended with %v", p.name, p.err)
		}
		if n := len(p.link.open()); n > 0 {
			s.fail("%d connections of %s are left", n, p.name)
		}
		p.link.running.Wait()
		p.link.tally(s.counts)
	}
	if n := s.server.CurrentConnectionCount(); n > 0 {
		s.fail("the server has %d connections", n)
	}
	s.server.Close()
}

// command sends the server a command over a connection without faults.
func (s *scene) command(resp string) {
	c, err := s.server.Dial()
	if err == nil {
		_, err = c.Write([]byte(resp))
	}
	if err == nil {
		var answer string
		if answer, err = bufio.NewReader(c).ReadString('\n'); answer != "+OK\r\n" {
			err = errors.Join(err, fmt.Errorf("answer %q", answer))
		}
	}
	if err != nil {
		s.fail("%q: %v", resp, err)
		return
	}
	_ = c.Close()
}
