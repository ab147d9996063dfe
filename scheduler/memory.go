package scheduler

import (
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"github.com/go-singleton/singleton/store"
)

// position is how far a ledger has got: the token and number of its last commit.
type position struct{ token, number uint64 }

func (p position) before(q position) bool {
	return p.token < q.token || p.token == q.token && p.number < q.number
}

// memory is what a replica that has led remembers of the ledger: only what the store has acknowledged. It outlives terms
// and is safe for concurrent use.
type memory struct {
	mu   sync.Mutex
	kept *recall // nil before it has led

	told position // of the messages with these IDs
	ids  []string
}

// reset makes the memory what a leader knows the ledger to be; it owns r from then on.
func (m *memory) reset(r *recall) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.kept = r
}

// learn follows an acknowledged commit. One of a term that was left behind has nothing to add.
func (m *memory) learn(at position, changes []store.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil || !m.kept.position().before(at) {
		return
	}
	m.kept.Token, m.kept.Number = at.token, at.number
	for _, c := range changes {
		var in map[string]json.RawMessage
		switch c.Bucket {
		case bucketJob:
			in = m.kept.Jobs
		case bucketRun:
			in = m.kept.Runs
		case bucketSeen:
			if rec, err := decodeSeen(c.Value); !c.Delete && (err != nil || rec.Verb == "") {
				continue // an end is known by its run
			}
			in = m.kept.Asked
		case bucketLedger:
			if c.Key == groupKey {
				m.kept.Group = c.Value
			}
			continue
		default:
			continue
		}
		if c.Delete {
			delete(in, c.Key)
		} else {
			in[c.Key] = c.Value
		}
	}
}

// lost reports whether a ledger at that position has lost records that are remembered.
func (m *memory) lost(at position) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept != nil && at.before(m.kept.position())
}

// remembers reports whether this replica has led.
func (m *memory) remembers() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.kept != nil
}

// all returns a copy of everything that is remembered, or nil.
func (m *memory) all() *recall {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		return nil
	}
	r := *m.kept
	r.Jobs, r.Runs, r.Asked = maps.Clone(r.Jobs), maps.Clone(r.Runs), maps.Clone(r.Asked)
	return &r
}

// part is a message that tells a part of a memory.
type part struct {
	id     string
	recall *recall
}

// messages cuts the memory into messages. As long as the memory is the same, so are they: telling it again adds nothing.
func (m *memory) messages(newID func() string) []part {
	all := m.all()
	if all == nil {
		return nil
	}
	parts := all.parts()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.told != all.position() || len(m.ids) != len(parts) {
		m.told, m.ids = all.position(), nil
		for range parts {
			m.ids = append(m.ids, newID())
		}
	}
	told := make([]part, len(parts))
	for i, p := range parts {
		told[i] = part{id: m.ids[i], recall: p}
	}
	return told
}

// newRecall returns an empty part of a memory of a ledger that had got so far.
func newRecall(at position) *recall {
	return &recall{
		Token: at.token, Number: at.number,
		Jobs: make(map[string]json.RawMessage), Runs: make(map[string]json.RawMessage), Asked: make(map[string]json.RawMessage),
	}
}

// parts cuts a memory into messages that a store takes. The runs come first: where one message holds them all, its reader
// knows which runs had ended.
func (r *recall) parts() []*recall {
	const most = store.MaxValue - 8<<10
	part, size := newRecall(r.position()), 0
	parts := []*recall{part}
	room := func(n int) {
		if size += n + 64; size > most {
			part, size = newRecall(r.position()), n+64
			parts = append(parts, part)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(r.Runs)) {
		room(len(id) + len(r.Runs[id]))
		part.Runs[id] = r.Runs[id]
	}
	part.Whole = r.Whole && len(parts) == 1
	for _, name := range slices.Sorted(maps.Keys(r.Jobs)) {
		room(len(name) + len(r.Jobs[name]))
		part.Jobs[name] = r.Jobs[name]
	}
	room(len(r.Group))
	part.Group = r.Group
	for _, id := range slices.Sorted(maps.Keys(r.Asked)) {
		room(len(id) + len(r.Asked[id]))
		part.Asked[id] = r.Asked[id]
	}
	return parts
}

// position is what the memory reached to.
func (r *recall) position() position { return position{r.Token, r.Number} }

// merge brings another memory in: the later watermark of a job counts, its newest pause or resume, and the open runs of
// whoever remembers most: an older memory holds runs that have ended since.
func (r *recall) merge(other *recall) {
	for name, value := range other.Jobs {
		theirs, err := decodeJob(store.Record{Key: name, Value: value})
		if err != nil {
			continue
		}
		mine, err := decodeJob(store.Record{Key: name, Value: r.Jobs[name]})
		if err != nil {
			r.Jobs[name] = value
			continue
		}
		steering := newer(mine.Steering, theirs.Steering)
		if mine.Watermark < theirs.Watermark {
			mine = theirs
		}
		mine.Steering = steering
		r.Jobs[name] = encode(mine)
	}
	r.mergeGroup(other)
	switch {
	case r.position().before(other.position()):
		r.Token, r.Number = other.Token, other.Number
		r.Runs = make(map[string]json.RawMessage, len(other.Runs))
		maps.Copy(r.Runs, other.Runs)
	case r.position() == other.position():
		maps.Copy(r.Runs, other.Runs)
	}
}

// mergeGroup brings in what another memory knows of the group as a whole, and of requests.
func (r *recall) mergeGroup(other *recall) {
	if theirs, err := decodeGroup(other.Group); err == nil {
		mine, err := decodeGroup(r.Group)
		if err != nil || newer(&mine.Steering, &theirs.Steering) == &theirs.Steering {
			r.Group = other.Group
		}
	}
	if r.Asked == nil {
		r.Asked = make(map[string]json.RawMessage, len(other.Asked))
	}
	for id, value := range other.Asked {
		if r.Asked[id] == nil || r.position().before(other.position()) {
			r.Asked[id] = value
		}
	}
}
