package redlock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/store"
)

func TestRenewByWhatNodesAnswer(t *testing.T) {
	done, lost, ended, never := renewDone, renewLost, renewEnded, renewal(0)
	for _, c := range []struct {
		name    string
		answers []renewal
		want    error // errNoAnswer: nobody knows
		repairs int
	}{
		{"all", []renewal{done, done, done}, nil, 0},
		{"one has lost it", []renewal{lost, done, done}, nil, 1},
		{"one has lost the session", []renewal{done, done, ended}, nil, 1},
		{"a majority has lost it", []renewal{lost, done, lost}, store.ErrLost, 0},
		{"one has lost it, one is silent", []renewal{lost, done, never}, errNoAnswer, 1}, // so that it counts the next time
		{"a majority knows no session", []renewal{ended, ended, done}, store.ErrEnded, 0},
		{"one has lost it, one knows no session", []renewal{lost, ended, done}, store.ErrEnded, 0},
		{"two of five have lost it", []renewal{lost, done, done, lost, done}, nil, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, len(c.answers), Config{})
				for i, a := range c.answers {
					if nodes[i].renewal = a; a == never {
						nodes[i].fail = errNoAnswer
					}
				}
				_, err := s.Renew(within(t), lease())
				synctest.Wait()
				switch {
				case c.want == errNoAnswer:
					if err == nil || store.Definite(err) {
						t.Errorf("got %v, want that nobody knows", err)
					}
				case !errors.Is(err, c.want):
					t.Errorf("got %v, want %v", err, c.want)
				}
				repairs := 0
				for _, n := range nodes {
					repairs += n.times("repair")
				}
				if repairs != c.repairs {
					t.Errorf("%d nodes were repaired, want %d", repairs, c.repairs)
				}
			})
		})
	}
}

// A repair that comes late may put a lease back that was called lost: it stays lost, or its leader would be told so and then
// that it leads.
func TestALeaseThatIsCalledLostStaysLost(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		l, err := s.Acquire(within(t), "g", candidate("a"))
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		l.TTL = time.Minute
		nodes[0].renewal, nodes[1].renewal = renewLost, renewLost
		if _, err := s.Renew(within(t), l); !errors.Is(err, store.ErrLost) {
			t.Errorf("got %v, want that it is lost", err)
		}
		synctest.Wait()
		nodes[0].renewal, nodes[1].renewal = renewDone, renewDone
		if _, err := s.Renew(within(t), l); !errors.Is(err, store.ErrLost) {
			t.Errorf("got %v from a renewal, want that it is lost still", err)
		}
		if err := readAll(within(t), s, l); !errors.Is(err, store.ErrLost) {
			t.Errorf("got %v from a read, want that it is lost still", err)
		}
		if err := s.Commit(within(t), l, 1, nil); !errors.Is(err, store.ErrLost) {
			t.Errorf("got %v from a commit, want that it is lost still", err)
		}
		synctest.Wait()
		for _, n := range nodes {
			if n.times("repair")+n.times("write") > 0 {
				t.Errorf("%s was asked to repair or to write", n.id)
			}
		}
	})
}

func TestJoinByWhatNodesAnswer(t *testing.T) {
	minute, second, none, never := time.Minute, time.Second, time.Duration(0), time.Duration(-1)
	for _, c := range []struct {
		name    string
		left    []time.Duration
		granted time.Duration
		want    error
		starts  int
	}{
		{"all", []time.Duration{minute, minute, minute}, minute, nil, 0},
		{"as long as a majority keeps it", []time.Duration{second, never, minute}, second, nil, 0},
		{"one has forgotten it", []time.Duration{minute, none, minute}, minute, nil, 1},
		{"a majority has forgotten it", []time.Duration{none, none, minute}, 0, store.ErrEnded, 0},
		{"one has forgotten it, one is silent", []time.Duration{none, never, minute}, 0, errNoAnswer, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				for i, left := range c.left {
					if nodes[i].left = left; left == never {
						nodes[i].fail = errNoAnswer
					}
				}
				granted, err := s.Join(within(t), "g", store.Replica{ID: "a"}, minute, false)
				synctest.Wait()
				switch {
				case c.want == errNoAnswer:
					if err == nil || store.Definite(err) {
						t.Errorf("got %v, want that nobody knows", err)
					}
				case !errors.Is(err, c.want) || granted != c.granted:
					t.Errorf("got %v, %v, want %v, %v", granted, err, c.granted, c.want)
				}
				starts := 0
				for _, n := range nodes {
					starts += n.times("join true")
				}
				if starts != c.starts {
					t.Errorf("started anew on %d nodes, want %d", starts, c.starts)
				}
			})
		})
	}
}

func TestLeaderByWhatNodesAnswer(t *testing.T) {
	a, other, pending, nobody := holder{"a", "x", 7, time.Second}, holder{"b", "y", 8, time.Second}, holder{"b", "y", 0, time.Second}, holder{}
	never := holder{Replica: "never"}
	for _, c := range []struct {
		name    string
		holders []holder
		want    string // "": none; "?": nobody knows
	}{
		{"all", []holder{a, a, a}, "a"},
		{"a majority", []holder{a, nobody, a}, "a"},
		{"a majority, one is silent", []holder{a, never, a}, "a"},
		{"repaired", []holder{a, {"a", "", 7, time.Second}, nobody}, "a"},
		{"a minority", []holder{nobody, nobody, a}, ""},
		{"two minorities", []holder{a, other, nobody}, ""},
		{"a campaign", []holder{pending, pending, pending}, ""},
		{"one, and one is silent", []holder{a, nobody, never}, "?"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				for i, h := range c.holders {
					if nodes[i].holder = h; h == never {
						nodes[i].fail = errNoAnswer
					}
				}
				leader, err := s.Leader(within(t), "g")
				switch {
				case c.want == "" && !errors.Is(err, store.ErrNoLeader), c.want == "?" && (err == nil || store.Definite(err)),
					c.want == "a" && (err != nil || leader.Replica != "a" || leader.Token != 7):
					t.Errorf("got %+v, %v", leader, err)
				}
			})
		})
	}
}

func TestAReplicaIsAliveIfAnyNodeOfAMajoritySaysSo(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nodes, s := stubs(t, 3, Config{})
		nodes[0].living = []store.Replica{{ID: "b"}}
		nodes[1].living = []store.Replica{{ID: "b", Info: []byte("about b")}, {ID: "a"}}
		nodes[2].fail = errNoAnswer
		list, err := s.Replicas(within(t), "g")
		if err != nil || len(list) != 2 || list[0].ID != "a" || list[1].ID != "b" || string(list[1].Info) != "about b" {
			t.Errorf("got %v, %v", list, err)
		}
		nodes[0].up = time.Second // it may have forgotten who was alive
		if _, err := s.Join(within(t), "g", store.Replica{ID: "a"}, time.Minute, true); err != nil {
			t.Fatal(err)
		}
		if list, err := s.Replicas(within(t), "g"); err == nil || store.Definite(err) {
			t.Errorf("got %v, %v, want that nobody knows", list, err)
		}
	})
}

func TestAPositionCountsThatAMajorityHasReached(t *testing.T) {
	h := func(token, number uint64) *head { return &head{At: point{token, number}, Base: point{1, 1}} }
	for _, c := range []struct {
		name  string
		heads []*head // nil is silent
		want  *point  // nil: nobody knows
	}{
		{"all alike", []*head{h(2, 1), h(2, 1), h(2, 1)}, &point{2, 1}},
		{"a majority is alike, one is silent", []*head{h(2, 1), nil, h(2, 1)}, &point{2, 1}},
		{"a minority is behind", []*head{h(2, 1), h(1, 5), h(2, 1)}, &point{2, 1}},
		{"a minority is ahead", []*head{h(2, 1), h(2, 2), h(2, 1)}, &point{2, 1}},
		{"all differ", []*head{h(2, 1), h(2, 2), h(2, 3)}, &point{2, 2}},
		{"two differ, and one that would settle it is silent", []*head{h(2, 1), h(2, 2), nil}, nil},
		{"what a leader has found and written back", []*head{h(2, 0), h(2, 0), h(1, 1)}, &point{1, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				nodes, s := stubs(t, 3, Config{})
				for i, h := range c.heads {
					if h == nil {
						nodes[i].fail = errNoAnswer
						continue
					}
					nodes[i].ledger.Head = *h
				}
				token, number, err := s.Position(within(t), "g")
				if c.want == nil {
					if err == nil || store.Definite(err) {
						t.Errorf("got %d %d, %v, want that nobody knows", token, number, err)
					}
				} else if err != nil || (point{token, number}) != *c.want {
					t.Errorf("got %d %d, %v, want %v", token, number, err, *c.want)
				}
			})
		})
	}
}
