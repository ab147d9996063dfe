package redlock

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/store"
)

func candidate(id string) store.Candidate {
	return store.Candidate{Replica: store.Replica{ID: id}, Nonce: "nonce-" + id, TTL: 10 * time.Second, Session: 30 * time.Second, Start: true}
}

func lease() store.Lease {
	return store.Lease{Group: "g", Replica: "a", Nonce: "nonce-a", Token: 7, Grant: store.Grant{TTL: 10 * time.Second}}
}

// bubble runs a test in virtual time.
func bubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	synctest.Test(t, test)
}

// within gives calls a second.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	t.Cleanup(cancel)
	return ctx
}

// calls are all methods that ask nodes.
var calls = []struct {
	name string
	do   func(context.Context, *Store) error
}{
	{"acquire", func(ctx context.Context, s *Store) error { _, err := s.Acquire(ctx, "g", candidate("a")); return err }},
	{"renew", func(ctx context.Context, s *Store) error { _, err := s.Renew(ctx, lease()); return err }},
	{"release", func(ctx context.Context, s *Store) error { return s.Release(ctx, lease()) }},
	{"leader", func(ctx context.Context, s *Store) error { _, err := s.Leader(ctx, "g"); return err }},
	{"join", func(ctx context.Context, s *Store) error {
		_, err := s.Join(ctx, "g", store.Replica{ID: "a"}, time.Second, false)
		return err
	}},
	{"leave", func(ctx context.Context, s *Store) error { return s.Leave(ctx, "g", "a") }},
	{"replicas", func(ctx context.Context, s *Store) error { _, err := s.Replicas(ctx, "g"); return err }},
	{"commit", func(ctx context.Context, s *Store) error { return s.Commit(ctx, lease(), 1, nil) }},
	{"position", func(ctx context.Context, s *Store) error { _, _, err := s.Position(ctx, "g"); return err }},
	{"read", func(ctx context.Context, s *Store) error {
		l := lease()
		for _, err := range s.Read(ctx, "g", &l, "job") {
			return err
		}
		return nil
	}},
	{"post", func(ctx context.Context, s *Store) error { return s.Post(ctx, "g", "1", nil) }},
}

// TestB20AHungMinorityDelaysNothing counts virtual time: a call that waits for the hung node takes some.
func TestB20AHungMinorityDelaysNothing(t *testing.T) {
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				for n, hung := range map[int][]int{3: {1}, 5: {0, 4}} {
					nodes, s := stubs(t, n, Config{})
					for _, stub := range nodes {
						stub.holder = holder{Replica: "a", Token: 7, Remaining: time.Second}
						stub.hold = 3 * time.Millisecond
					}
					for _, i := range hung {
						nodes[i].hold = time.Hour
					}
					steps := map[string]time.Duration{"acquire": 2, "commit": 3, "read": 3}[c.name]
					began := time.Now()
					if err := c.do(t.Context(), s); err != nil {
						t.Errorf("%d nodes: %v", n, err)
					}
					if took := time.Since(began); took != max(1, steps)*3*time.Millisecond {
						t.Errorf("%d nodes: it took %v", n, took)
					}
				}
			})
		})
	}
}

func TestWithoutAMajorityNothingIsDone(t *testing.T) {
	for _, c := range calls {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				nodes[0].fail, nodes[2].fail = errNoAnswer, errNoAnswer
				err := c.do(within(t), s)
				if err == nil || store.Definite(err) || !strings.Contains(err.Error(), "node0: no answer; node2: no answer") {
					t.Errorf("got %v, want that nobody knows, and the nodes named", err)
				}
				synctest.Wait() // what the call goes on with in the background asks the nodes, too
				for i := range 3 {
					nodes[i].fail = store.Permanent("set the password", errors.New("WRONGPASS"))
				}
				nodes[1].fail = nil
				if err := c.do(within(t), s); !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "set the password") {
					t.Errorf("got %v, want an error for good: two of three refuse for good", err)
				}
			})
		})
	}
}

func TestAMinorityThatRefusesForGoodEndsNothingAndIsLoggedOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log strings.Builder
		nodes, s := stubs(t, 3, Config{Logger: slog.New(slog.NewTextHandler(&log, nil))})
		nodes[0].fail = store.Permanent("set the password", errors.New("WRONGPASS"))
		for _, c := range calls {
			for _, n := range nodes {
				n.holder = holder{Replica: "a", Token: 7, Remaining: time.Second}
			}
			if err := c.do(within(t), s); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			synctest.Wait()
		}
		if n := strings.Count(log.String(), "level=ERROR"); n != 1 || !strings.Contains(log.String(), "node=node0") {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
	})
}

func TestQ7OneServerUnderTwoNamesIsRefusedAndNamed(t *testing.T) {
	for _, c := range calls {
		if c.name == "release" || c.name == "leave" || c.name == "leader" || c.name == "post" {
			continue // these grant and claim nothing
		}
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				nodes[1].run, nodes[1].ledger.Marker = nodes[0].run, nodes[0].run
				nodes[2].hold = time.Millisecond
				err := c.do(within(t), s)
				if !errors.Is(err, store.ErrPermanent) || !strings.Contains(err.Error(), "node0") || !strings.Contains(err.Error(), "node1") {
					t.Errorf("got %v, want both named", err)
				}
			})
		})
	}
}

func TestQ3ANodeThatHasRestartedHasNoVoteUntilALeaseIsOver(t *testing.T) {
	for _, c := range []struct {
		name    string
		up      time.Duration
		durable bool
		want    bool
	}{
		{"just restarted", 0, false, false},
		{"a moment before a lease is over", 10*time.Second - 1, false, false},
		{"a lease ago", 10 * time.Second, false, true},
		{"just restarted, and has lost nothing", 0, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				nodes[0].up, nodes[0].durable, nodes[1].fail = c.up, c.durable, errNoAnswer
				for _, call := range calls[:2] { // acquire and renew
					if err := call.do(within(t), s); (err == nil) != c.want || err != nil && !strings.Contains(err.Error(), "no vote") {
						t.Errorf("%s: %v", call.name, err)
					}
				}
			})
		})
	}
}

func TestARestartedServerIsAskedAgainWhatItIs(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		nodes[0].durable, nodes[1].fail = true, errNoAnswer
		if _, err := s.Acquire(within(t), "g", candidate("a")); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()                                                   // a grant is followed by a renewal in the background
		nodes[0].run, nodes[0].up, nodes[0].durable = "another", 0, false // it is not what it was
		if _, err := s.Renew(within(t), lease()); err == nil {
			t.Error("what is known of one run of a server counted for another")
		}
	})
}

func TestAHungNodeIsAskedNoMoreWhenTooMuchWaits(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		nodes[2].hold = time.Hour
		for range maxWaiting + 100 {
			if err := s.Post(t.Context(), "g", "1", nil); err != nil {
				t.Fatal(err)
			}
		}
		waiting := func() int {
			synctest.Wait()
			s.links[2].mu.Lock()
			defer s.links[2].mu.Unlock()
			return s.links[2].waiting
		}
		if n := waiting(); n != maxWaiting {
			t.Errorf("%d requests wait for the node", n)
		}
		if n := nodes[2].times("post"); n != 1 {
			t.Errorf("%d requests are under way to it at once", n)
		}
		time.Sleep(nodeLimit + time.Second)
		if n := waiting(); n != 0 {
			t.Errorf("%d requests wait for the node for ever", n)
		}
	})
}

func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		nodes[2].hold = time.Hour
		if err := s.Post(t.Context(), "g", "1", nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if time.Since(began) > 0 || s.links[2].waiting != 0 {
			t.Errorf("Close took %v and has left %d requests", time.Since(began), s.links[2].waiting)
		}
	})
}
