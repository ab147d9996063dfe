package redlock

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-singleton/singleton/store"
)

// simJudge knows what the store has answered, and judges each answer by what is promised. It never looks into a node.
type simJudge struct {
	mu    sync.Mutex // one client goes on at a time; the race detector cannot know
	fail  func(format string, args ...any)
	loose bool // clocks step further than is promised: two may believe that they lead, and nothing else may go wrong

	grants  int
	highest uint64 // token
	terms   []*simTerm

	states []simState // by ID; the first is the ledger without a commit
	top    int        // the newest state that nothing may lose any more
	lost   bool       // too many nodes have lost records: an operator has accepted it

	posts    map[string]time.Time // messages that a majority has, since when
	sessions map[string]*simSession
	commits  int
	handled  int
}

// simTerm is what one who has been granted the lease may believe.
type simTerm struct {
	who      string
	token    uint64
	deadline time.Time // of the lease
	valid    time.Time // until when it believes to lead
	resigned bool
}

// simState is a ledger: its parent with one commit more. Those that nobody knows about make it a tree.
type simState struct {
	parent, depth int
	token, number uint64
	messages      []string // that the commit handles
	unknown       bool     // at least one call has ended without a definite answer
	refused       bool     // surely not done
	sure          bool     // it is, or is below, the top
}

type simSession struct{ since, until time.Time }

func newSimJudge(fail func(string, ...any)) *simJudge {
	return &simJudge{
		fail: fail, states: []simState{{sure: true}},
		posts: make(map[string]time.Time), sessions: make(map[string]*simSession),
	}
}

// elected judges a grant that has come in time.
func (j *simJudge) elected(who string, token uint64, deadline, valid time.Time) *simTerm {
	j.mu.Lock()
	defer j.mu.Unlock()
	if token <= j.highest {
		j.fail("%s is granted token %d after %d", who, token, j.highest)
	}
	j.highest = max(j.highest, token)
	j.grants++
	t := &simTerm{who: who, token: token}
	j.terms = slices.DeleteFunc(j.terms, func(t *simTerm) bool { return !t.leads() })
	j.believes(t, deadline, valid)
	j.terms = append(j.terms, t)
	return t
}

// renewed judges a renewal that has come in time.
func (j *simJudge) renewed(t *simTerm, deadline, valid time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.believes(t, deadline, valid)
}

// resign ends a belief.
func (j *simJudge) resign(t *simTerm) {
	j.mu.Lock()
	defer j.mu.Unlock()
	t.resigned = true
}

func (t *simTerm) leads() bool { return !t.resigned && time.Now().Before(t.valid) }
func (t *simTerm) over() bool  { return !time.Now().Before(t.deadline) }

func (j *simJudge) believes(t *simTerm, deadline, valid time.Time) {
	t.deadline, t.valid = deadline, valid
	for _, other := range j.terms {
		if other != t && other.leads() && t.leads() && !j.loose {
			j.fail("%s leads with token %d while %s does with %d", t.who, t.token, other.who, other.token)
		}
	}
}

// propose makes a state that a commit may lead to.
func (j *simJudge) propose(t *simTerm, number uint64, parent int, messages []string) (id int, changes []store.Change) {
	j.mu.Lock()
	defer j.mu.Unlock()
	id = len(j.states)
	j.states = append(j.states, simState{
		parent: parent, depth: j.states[parent].depth + 1, token: t.token, number: number, messages: messages,
	})
	for b, records := range simEffects(id) {
		for k, v := range records {
			changes = append(changes, store.Change{Bucket: b, Key: k, Value: []byte(v), Delete: v == ""})
		}
	}
	for _, m := range messages {
		changes = append(changes, store.Change{Bucket: store.InboxBucket, Key: m, Delete: true},
			store.Change{Bucket: "seen", Key: m, Value: []byte(strconv.Itoa(id))})
	}
	slices.SortFunc(changes, func(a, b store.Change) int { return cmp.Compare(a.Bucket+" "+a.Key, b.Bucket+" "+b.Key) })
	return id, changes
}

// simEffects are the records that the commit of a state puts, and with nothing as value, deletes.
func simEffects(id int) map[string]map[string]string {
	text := strconv.Itoa(id)
	return map[string]map[string]string{
		"job":       {"head": text},
		"run":       {"r" + strconv.Itoa(id%5): text, "r" + strconv.Itoa((id+2)%5): ""},
		"history/j": {strconv.Itoa(id % 7): text},
	}
}

// contents are the records of a bucket in a state.
func (j *simJudge) contents(id int, bucket string) map[string]string {
	all := make(map[string]string)
	decided := 0
	for ; id > 0 && (decided < 7 || bucket == "seen"); id = j.states[id].parent {
		if bucket == "seen" {
			for _, m := range j.states[id].messages {
				all[m] = strconv.Itoa(id)
			}
			continue
		}
		for k, v := range simEffects(id)[bucket] {
			if _, known := all[k]; !known {
				all[k] = v
				decided++
			}
		}
		if bucket == "job" || bucket == "run" && len(all) == 5 {
			break
		}
	}
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	return all
}

// committed judges the answer to a commit.
func (j *simJudge) committed(t *simTerm, id int, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := &j.states[id]
	switch {
	case err == nil:
		j.commits++
		switch {
		case j.descends(id, j.top):
			j.settle(id)
		case !j.descends(j.top, id):
			j.fail("commit %d of token %d is acknowledged, and the ledger goes on without it: %s", s.number, s.token, j.path(j.top))
		}
	case store.Definite(err) && !s.unknown:
		s.refused = true
		if s.sure {
			j.fail("commit %d of token %d is refused with %v, and is in the ledger", s.number, s.token, err)
		}
	default:
		s.unknown = true
	}
}

// settle makes a state one that nothing may lose.
func (j *simJudge) settle(id int) {
	for i := id; i != j.top; i = j.states[i].parent {
		s := &j.states[i]
		s.sure = true
		if s.refused {
			j.fail("commit %d of token %d was refused, and is in the ledger", s.number, s.token)
		}
		j.handled += len(s.messages)
		for _, m := range s.messages {
			for k := s.parent; k > 0; k = j.states[k].parent {
				if slices.Contains(j.states[k].messages, m) {
					j.fail("message %s is handled twice: in state %d and in %d", m, k, i)
				}
			}
		}
	}
	j.top = id
}

// descends reports whether a state is another one or follows from it.
func (j *simJudge) descends(id, from int) bool {
	for j.states[id].depth > j.states[from].depth {
		id = j.states[id].parent
	}
	return id == from
}

func (j *simJudge) path(id int) string {
	var text strings.Builder
	for n := 0; id > 0 && n < 6; id, n = j.states[id].parent, n+1 {
		text.WriteString(fmt.Sprintf(" < state %d (token %d, commit %d)", id, j.states[id].token, j.states[id].number))
	}
	return text.String()
}

// read judges what a leader has read of a bucket while its term lasted, and returns the state that it is in. A leader that
// has committed knows its state; one that has not, takes what it finds.
func (j *simJudge) read(t *simTerm, known int, bucket string, records map[string]string) (id int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if t.over() || j.loose && t.token != j.highest {
		return known
	}
	id = known
	if bucket == "job" {
		id, _ = strconv.Atoi(records["head"])
		if id >= len(j.states) {
			j.fail("%s reads a state that nobody has made: %s", t.who, records["head"])
			return known
		}
		if !j.descends(id, j.top) && !j.lost {
			j.fail("%s, with token %d, reads a ledger that lacks what was acknowledged or read before: %s, not %s", t.who, t.token, j.path(id), j.path(j.top))
			return id
		}
		if j.lost {
			j.lost, j.top = false, 0
			for i := range j.states {
				j.states[i].sure, j.states[i].refused = false, false
			}
		}
		j.settle(id)
	}
	if want := j.contents(id, bucket); !maps.Equal(records, want) {
		j.fail("%s, with token %d, reads of %s %v, not %v, in%s", t.who, t.token, bucket, records, want, j.path(id))
	}
	return id
}

// posted says that a message was taken.
func (j *simJudge) posted(id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, known := j.posts[id]; !known {
		j.posts[id] = time.Now()
	}
}

// inbox judges what a leader has read of the inbox, and returns those that its state has not seen.
func (j *simJudge) inbox(t *simTerm, since time.Time, state int, records map[string]string) (fresh []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := j.contents(state, "seen")
	if !t.over() && (!j.loose || t.token == j.highest) {
		for _, m := range slices.Sorted(maps.Keys(j.posts)) {
			if _, there := records[m]; !there && seen[m] == "" && j.posts[m].Before(since) {
				j.fail("%s, with token %d, does not find the message %s, which was taken", t.who, t.token, m)
			}
			if seen[m] != "" && j.states[j.top].depth >= j.states[state].depth {
				delete(j.posts, m)
			}
		}
	}
	for _, m := range slices.Sorted(maps.Keys(records)) {
		if seen[m] == "" {
			fresh = append(fresh, m)
		}
	}
	return fresh
}

// lives says that a session was granted until then.
func (j *simJudge) lives(replica string, until time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := j.sessions[replica]
	if s == nil || !time.Now().Before(s.until) {
		s = &simSession{since: time.Now()}
		j.sessions[replica] = s
	}
	s.until = until
}

// ended judges that a session is called ended.
func (j *simJudge) ended(replica string, since time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if s := j.sessions[replica]; s != nil && time.Now().Before(s.until) && s.since.Before(since) && !j.loose && !j.lost {
		j.fail("the session of %s is called ended %v before it is", replica, time.Until(s.until))
	}
	delete(j.sessions, replica)
}

// replicas judges who is said to live.
func (j *simJudge) replicas(who string, since time.Time, all []store.Replica) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.loose || j.lost {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(j.sessions)) {
		s := j.sessions[id]
		if !time.Now().Before(s.until) {
			delete(j.sessions, id)
			continue
		}
		if s.since.Before(since) && !slices.ContainsFunc(all, func(r store.Replica) bool { return r.ID == id }) {
			j.fail("%s is told of %d replicas without %s, whose session has another %v", who, len(all), id, time.Until(s.until))
		}
	}
}

// answered judges that all messages are handled that were taken more than a while ago.
func (j *simJudge) answered(while time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	seen := j.contents(j.top, "seen")
	for _, m := range slices.Sorted(maps.Keys(j.posts)) {
		if seen[m] == "" && time.Since(j.posts[m]) > while {
			j.fail("the message %s waits since %v", m, time.Since(j.posts[m]))
		}
	}
}
