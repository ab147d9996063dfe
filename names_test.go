//go:build unix

package singleton_test

import (
	"strings"
	"testing"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/scheduler"
)

func TestB6SameIDs(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	ids := map[string]bool{}
	running := map[*replica]bool{}
	for _, id := range []string{"worker-1", "worker-1", "worker-10", "worker"} {
		r := g.start(g.store(g.server.Addr()), election.Config{ID: id, Lease: far}, untilEnd)
		ids[r.ID()], running[r] = true, true
	}
	if len(ids) != 4 {
		t.Errorf("the IDs of four replicas: %v", ids)
	}
	for len(running) > 0 { // that only one leads is checked each time one begins to
		leader := g.next()
		for r := range running {
			if leads := r.Term() != nil; leads != (r == leader.by) {
				t.Errorf("while %s leads, that %s does is %v", leader.by.ID(), r.ID(), leads)
			}
		}
		if value := g.holder(); value != inRedis(leader.Term) {
			t.Errorf("the lease of %s is %q", leader.by.ID(), value)
		}
		if !running[leader.by] {
			t.Fatalf("%s leads after it was stopped", leader.by.ID())
		}
		delete(running, leader.by)
		leader.by.end()
	}
}

func TestB7GroupsWithSimilarNamesAreIndependent(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	st := g.store(g.server.Addr())
	leaders := map[string]*call{}
	for _, name := range []string{"a", "ab", "a.b", "a-b"} {
		g.start(st, election.Config{ID: "a", Group: name, Lease: far}, untilEnd)
		c := g.next()
		leaders[c.Lease().Group] = c
	}
	for name, c := range leaders {
		if l, err := st.Leader(t.Context(), name); err != nil || l.Token != c.Token() || !c.Valid() {
			t.Errorf("group %s: %+v, %v, want token %d, valid", name, l, err, c.Token())
		}
	}
	leaders["a"].by.end()
	for _, name := range []string{"ab", "a.b", "a-b"} {
		if !leaders[name].Valid() {
			t.Errorf("the leader of %s ended with that of a", name)
		}
	}
}

func TestB7BadNamesAreRefusedAlsoWhenTheyStandInRedis(t *testing.T) {
	t.Parallel()
	g := newGroup(t)
	st := g.store(g.server.Addr())
	for _, name := range []string{"", "a{b", "a}b", "a/b", "a:b", "a b", "a\nb", strings.Repeat("a", 129), "-a", ".a"} {
		if _, err := election.New(st, election.Config{Group: name}); err == nil {
			t.Errorf("election: group %q is accepted", name)
		}
		if _, err := scheduler.New(st, scheduler.Config{Group: name}); err == nil {
			t.Errorf("scheduler: group %q is accepted", name)
		}
		if _, err := scheduler.NewInspector(st, name, "test"); err == nil {
			t.Errorf("inspector: group %q is accepted", name)
		}
		if err := g.admin.Set(t.Context(), g.key("lease"), "5 "+name+" nonce", far).Err(); err != nil {
			t.Fatal(err)
		}
		if l, err := st.Leader(t.Context(), g.name); err == nil {
			t.Errorf("a replica named %q was read back: %+v", name, l)
		}
	}
}
