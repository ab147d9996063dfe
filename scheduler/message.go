package scheduler

import (
	"encoding/json"
	"fmt"

	"github.com/go-singleton/singleton/store"
)

// The kinds of messages.
const (
	kindEnd     = "end"     // a run has ended, or was never started
	kindMemory  = "memory"  // what a replica that has led remembers of a ledger that has lost records
	kindRequest = "request" // something is asked of the leader
)

// message is what others tell or ask the leader through the inbox.
type message struct {
	Version int     `json:"v"`
	Kind    string  `json:"kind"`
	End     *Entry  `json:"end,omitempty"`
	Memory  *recall `json:"memory,omitempty"`
	Request *order  `json:"request,omitempty"`
}

// recall is a part of a replica's memory.
type recall struct {
	Token  uint64                     `json:"token"` // with Number the ledger's position that is remembered
	Number uint64                     `json:"number"`
	Jobs   map[string]json.RawMessage `json:"jobs,omitempty"`
	Runs   map[string]json.RawMessage `json:"runs,omitempty"`
	Asked  map[string]json.RawMessage `json:"asked,omitempty"` // requests that were acted on
	Group  json.RawMessage            `json:"group,omitempty"` // record of the group
	Whole  bool                       `json:"whole,omitempty"` // Runs are all that were open
}

// decodeMessage reads a message; a store's data may come from anywhere, so everything is checked.
func decodeMessage(value []byte) (*message, error) {
	m := new(message)
	if err := decode(value, m); err != nil {
		return nil, err
	}
	switch {
	case m.Kind == kindEnd && m.End != nil:
		e := m.End
		if err := e.check(e.Job); err != nil {
			return nil, err
		}
		if err := store.CheckName("replica", e.Replica); err != nil {
			return nil, err
		}
		if e.Outcome == Skipped || e.Outcome == "" {
			return nil, fmt.Errorf("scheduler: end of %q has outcome %q", e.RunID, e.Outcome)
		}
		e.Note, e.Sequence = "", 0
		e.LastTick, e.Ticks = e.Tick, 1
	case m.Kind == kindMemory && m.Memory != nil:
	case m.Kind == kindRequest && m.Request != nil:
		if err := m.Request.check(); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("scheduler: message of unknown kind %.40q", m.Kind)
	}
	return m, nil
}
