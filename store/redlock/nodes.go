package redlock

import (
	"context"
	"sync"
	"time"

	"github.com/go-singleton/singleton/store"
)

// NodeState is what one server says of itself, and of its part in a group.
type NodeState struct {
	Addr string
	Err  error // it cannot be asked; nothing else is known then, or only what stands here

	Run      string        // run_id of the server process
	Up       time.Duration // for how long it has run, at least
	Durable  bool          // it loses nothing when it ends: appendonly yes and appendfsync always
	Replica  bool          // it follows another server
	Replicas int           // that follow it
	Clock    time.Time     // its wall clock, at some moment during the call

	Ledger        bool   // it has records of the group; what follows is about them
	Token, Number uint64 // of the last commit that it has
	Doubt         string // why its records do not count, "" when they do
}

// Nodes asks each server how it is, in the order in which New was given them; group "" is about none. A node that has restarted
// less than the longest lease ago and is not Durable has no vote on leases.
func (s *Store) Nodes(ctx context.Context, group string) ([]NodeState, error) {
	if group != "" {
		if err := store.CheckName("group", group); err != nil {
			return nil, err
		}
	}
	ctx, end, err := s.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	states := make([]NodeState, len(s.links))
	var all sync.WaitGroup
	for i, l := range s.links {
		all.Go(func() { states[i] = look(ctx, l.node, group) })
	}
	all.Wait()
	return states, nil
}

// look asks one server.
func look(ctx context.Context, n node, group string) NodeState {
	st := NodeState{Addr: n.name()}
	ctx, cancel := context.WithTimeout(ctx, nodeLimit)
	defer cancel()
	id, err := n.identity(ctx)
	if err != nil {
		st.Err = err
		return st
	}
	st.Run, st.Durable, st.Replica, st.Replicas = id.Run, id.Durable, id.Replica, id.Replicas
	asked := group
	if asked == "" {
		asked = "doctor" // a group that nobody has: for the clock and the time since the start
	}
	r, err := n.head(ctx, asked, nil)
	if err != nil {
		st.Err = err
		return st
	}
	st.Up, st.Clock = r.Up, r.Clock
	if group == "" || r.blank() {
		return st
	}
	at := r.Head.position()
	st.Ledger, st.Token, st.Number, st.Doubt = true, at.Token, at.Number, r.doubt(id.Durable)
	return st
}
