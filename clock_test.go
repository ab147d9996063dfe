//go:build unix

package singleton_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/clockjump"
	"github.com/go-singleton/singleton/internal/redistest"
	"github.com/go-singleton/singleton/internal/testlog"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

// journal is a log that a test reads.
type journal struct{ testlog.Log }

func (j *journal) logger() *slog.Logger { return j.Logger(slog.LevelInfo) }

// says waits until there is a warning with all these words, and returns it.
func (j *journal) says(t *testing.T, words ...string) (warning string) {
	t.Helper()
	eventually(t, "a warning that says "+strings.Join(words, ", "), func() bool {
		for line := range strings.Lines(j.String()) {
			found := strings.Contains(line, "level=WARN")
			for _, w := range words {
				found = found && strings.Contains(line, w)
			}
			if found {
				warning = line
				return true
			}
		}
		return false
	})
	return warning
}

// saysJump waits until a jump of the clock is named, and checks by how much to a minute: replies take their time.
func (j *journal) saysJump(t *testing.T, want time.Duration) {
	t.Helper()
	line := j.says(t, "the store's clock has jumped")
	_, rest, _ := strings.Cut(line, "jump=")
	text, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if jump, err := time.ParseDuration(text); err != nil || (jump-want).Abs() > time.Minute {
		t.Errorf("the clock has jumped by %v: %s", want, line)
	}
}

// TestB19ClockOfRedisJumpsAheadAndOnlyTheNewLeaderIsBelieved ends a lease an hour early, which no promise about leaders
// survives: its holder, which does not hear of it, believes to lead beside another one. The store takes nothing from it.
func TestB19ClockOfRedisJumpsAheadAndOnlyTheNewLeaderIsBelieved(t *testing.T) {
	t.Parallel()
	clock := clockjump.Start(t)
	g := newGroup(t, redistest.Clock(clock))
	g.forgetful = true
	way, direct, log := g.proxy(), g.store(g.server.Addr()), &journal{}
	a := g.start(g.store(way.Addr()), election.Config{ID: "a", Lease: far, Logger: log.logger()}, untilEnd)
	old := g.next()
	put := func(l store.Lease, number uint64) error {
		return direct.Commit(t.Context(), l, number, []store.Change{{Bucket: "job", Key: "k", Value: fmt.Append(nil, l.Token)}})
	}
	if err := put(old.Lease(), 1); err != nil {
		t.Fatal(err)
	}
	way.Requests.Drop()
	if g.holder() != inRedis(old.Term) {
		t.Fatal("the lease has gone before the clock was set")
	}
	clock.Jump(time.Hour)
	if got := g.holder(); got != "" {
		t.Fatalf("the lease is still there: %s", got)
	}
	b := g.start(direct, election.Config{ID: "b", Lease: far}, untilEnd)
	next := g.next()
	if next.by != b || next.Token() <= old.Token() {
		t.Errorf("token %d after %d", next.Token(), old.Token())
	}
	if err := put(next.Lease(), 1); err != nil {
		t.Error(err)
	}
	if err := put(old.Lease(), 2); !errors.Is(err, store.ErrLost) {
		t.Errorf("a commit of the old leader: %v, want %v", err, store.ErrLost)
	}
	if _, err := direct.Renew(t.Context(), old.Lease()); !errors.Is(err, store.ErrLost) {
		t.Errorf("a renewal of the old leader: %v, want %v", err, store.ErrLost)
	}
	for r, err := range direct.Read(t.Context(), g.name, nil, "job") {
		if err != nil || string(r.Value) != fmt.Sprint(next.Token()) {
			t.Errorf("the record is that of %s, %v; want %d", r.Value, err, next.Token())
		}
	}
	way.Requests.Pass()
	way.Cut()
	receive(t, old.over, "the end of the old term")
	b.end()
	if again := g.next(); again.by != a {
		t.Error("a replica that has stopped leads")
	}
	log.saysJump(t, time.Hour)
}

// TestB19ClockOfRedisJumpsBackAndOnlyTimeIsLost: a lease that is renewed gets its right end again, and one whose holder is
// gone stands in the way until somebody deletes it, which followers ask for.
func TestB19ClockOfRedisJumpsBackAndOnlyTimeIsLost(t *testing.T) {
	t.Parallel()
	clock := clockjump.Start(t)
	g := newGroup(t, redistest.Clock(clock))
	way, log := g.proxy(), &journal{}
	a := g.start(g.store(way.Addr()), election.Config{ID: "a", Lease: long, Logger: log.logger()}, untilEnd)
	leader := g.next()
	first := leader.Token()
	clock.Jump(-time.Hour)
	if g.left() < 30*time.Minute {
		t.Fatalf("the lease ends in %v: the clock has not jumped", g.left())
	}
	eventually(t, "a renewal", func() bool { return g.left() <= long })
	leader = g.newest(leader)
	if !leader.Valid() || leader.Token() != first {
		t.Error("the leader has stopped although it renews")
	}
	log.saysJump(t, -time.Hour)

	way.Requests.Drop()
	clock.Jump(-time.Hour)
	follower := &journal{}
	b := g.start(g.store(g.server.Addr()), election.Config{ID: "b", Logger: follower.logger()}, untilEnd)
	follower.says(t, "ends far in the future", "delete the lease", "leader="+leader.Lease().Replica)
	g.nobodyElse()
	b.end()
	receive(t, leader.over, "the end of the term that is not renewed")
	a.end()
	if err := g.admin.Del(t.Context(), g.key("lease")).Err(); err != nil {
		t.Fatal(err)
	}
	g.start(g.store(g.server.Addr()), election.Config{ID: "c"}, untilEnd)
	if next := g.next(); next.Token() <= leader.Token() {
		t.Errorf("token %d after %d", next.Token(), leader.Token())
	}
}

// TestB19AndS1TicksStartOnceWhateverTheClockOfRedisDoes sets it an hour ahead, right, an hour back, and right again. While
// it is behind, no tick can be claimed; they are made up.
func TestB19AndS1TicksStartOnceWhateverTheClockOfRedisDoes(t *testing.T) {
	t.Parallel()
	clock := clockjump.Start(t)
	s := newShift(newGroup(t, redistest.Clock(clock)))
	for _, id := range []string{"a", "b"} {
		s.work(s.store(s.server.Addr()), scheduler.Config{ID: id},
			scheduler.Job{Name: "tick", Spec: everySecond, CatchUp: scheduler.CatchUpAll})
	}
	last := s.run("tick", time.Time{})
	for _, offset := range []time.Duration{time.Hour, 0, -time.Hour, 0} {
		clock.Jump(offset - clock.Offset())
		if offset < 0 {
			pass(t, time.Now().Add(2*lease))
			continue
		}
		last = s.run("tick", time.Now().Add(time.Second))
	}
	s.accounted("tick", last.Tick)
	inOrder(t, s.ticks("tick"), false)
}
