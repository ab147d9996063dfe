package storetest

import (
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/go-singleton/singleton/store"
)

// model drives three replicas by a seed over a store whose calls suffer faults, and knows what must be true after each
// answer.
type model struct {
	*env
	group  string
	faulty *Faulty
	random *rand.Rand

	replicas []*modelReplica
	token    uint64            // the highest that was granted
	position [2]uint64         // the highest that was seen
	kept     map[string]string // records of answered commits: key, value
	absent   map[string]bool   // records of commits that were surely not done
	nonces   int
}

type modelReplica struct {
	id     string
	nonce  string      // of the campaign or term; "" for none
	lease  store.Lease // zero while it is not known
	number uint64      // of the last commit that was answered
	open   bool        // a commit is without an answer
}

func newModel(e *env, group string, seed uint64) *model {
	m := &model{
		env: e, group: group, faulty: NewFaulty(e.s), random: rand.New(rand.NewPCG(seed, 1)),
		kept: map[string]string{}, absent: map[string]bool{},
	}
	m.faulty.Random(seed, 0.3)
	for _, id := range []string{"a", "b", "c"} {
		m.replicas = append(m.replicas, &modelReplica{id: id})
	}
	return m
}

func (m *model) run(steps int) {
	m.Helper()
	for range steps {
		r := m.replicas[m.random.IntN(len(m.replicas))]
		switch m.random.IntN(6) {
		case 0, 1:
			m.campaign(r)
		case 2, 3:
			m.commitNext(r)
		case 4:
			m.renewLease(r)
		case 5:
			if m.random.IntN(3) == 0 {
				m.giveUp(r)
			}
		}
		m.look()
	}
	m.faulty.Deliver()
	m.look()
	got := map[string]string{}
	for record, err := range m.s.Read(m.ctx, m.group, nil, "job") {
		m.must(err)
		got[record.Key] = string(record.Value)
	}
	for key, value := range m.kept {
		if got[key] != value {
			m.Fatalf("commit %s was answered, its record is %q", key, got[key])
		}
	}
	for key := range m.absent {
		if got[key] != "" {
			m.Fatalf("commit %s was surely not done, and is there", key)
		}
	}
	if len(m.kept) == 0 {
		m.Fatal("no commit was answered: the run shows nothing")
	}
}

func (m *model) campaign(r *modelReplica) {
	m.Helper()
	if r.lease.Token != 0 {
		return
	}
	if r.nonce == "" {
		m.nonces++
		r.nonce = fmt.Sprintf("n%d", m.nonces)
	}
	l, err := m.faulty.Acquire(m.ctx, m.group, candidate(r.id, r.nonce))
	switch {
	case err == nil:
		if l.Token <= m.token {
			m.Fatalf("%s was granted token %d after %d", r.id, l.Token, m.token)
		}
		m.token, r.lease, r.number, r.open = l.Token, l, 0, false
	case store.Definite(err):
		if _, held := errors.AsType[*store.HeldError](err); !held {
			m.Fatalf("acquire by %s: %v", r.id, err)
		}
		// An earlier send may still arrive: the campaign is given up as the rules say.
		m.giveUp(r)
	}
}

func (m *model) commitNext(r *modelReplica) {
	m.Helper()
	if r.lease.Token == 0 {
		return
	}
	number := r.number + 1
	key := fmt.Sprintf("%d-%d", r.lease.Token, number)
	err := m.faulty.Commit(m.ctx, r.lease, number, []store.Change{put("job", key, r.id), put("job", "last", key)})
	switch {
	case err == nil:
		m.kept[key], r.number, r.open = r.id, number, false
	case errors.Is(err, store.ErrLost):
		if !r.open {
			m.absent[key] = true
		}
		r.lease, r.nonce = store.Lease{}, ""
	case store.Definite(err):
		m.Fatalf("commit %s: %v", key, err)
	default:
		r.open = true
	}
}

func (m *model) renewLease(r *modelReplica) {
	m.Helper()
	if r.lease.Token == 0 {
		return
	}
	_, err := m.faulty.Renew(m.ctx, r.lease)
	switch {
	case errors.Is(err, store.ErrLost):
		r.lease, r.nonce = store.Lease{}, ""
	case store.Definite(err):
		m.Fatalf("renew by %s: %v", r.id, err)
	}
}

// giveUp releases, once or until it is answered; what was released is campaigned for no more.
func (m *model) giveUp(r *modelReplica) {
	m.Helper()
	if r.nonce == "" {
		return
	}
	l := store.Lease{Group: m.group, Replica: r.id, Nonce: r.nonce}
	r.lease, r.nonce = store.Lease{}, ""
	for {
		err := m.faulty.Release(m.ctx, l)
		if err == nil {
			return
		}
		if store.Definite(err) || m.ctx.Err() != nil {
			m.Fatalf("release by %s: %v", r.id, err)
		}
	}
}

// look checks what anyone can see at any time.
func (m *model) look() {
	m.Helper()
	token, number, err := m.s.Position(m.ctx, m.group)
	m.must(err)
	if token < m.position[0] || token == m.position[0] && number < m.position[1] {
		m.Fatalf("the position went from %v back to %d %d", m.position, token, number)
	}
	m.position = [2]uint64{token, number}
}
