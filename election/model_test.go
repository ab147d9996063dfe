package election_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
	"github.com/go-singleton/singleton/store/memstore"
)

// model is a group under random faults, with what must be true of it.
type model struct {
	t      *testing.T
	seed   uint64
	store  *memstore.Store
	chance *chance

	mu       sync.Mutex
	live     map[*election.Term]string // terms whose work has not returned, and who leads them
	sessions map[*election.Session]bool
	token    uint64 // of the last term
	terms    int
	faults   map[string]int
}

// chance is a source of random draws for several goroutines.
type chance struct {
	mu sync.Mutex
	r  *rand.Rand
}

func newChance(a, b uint64) *chance { return &chance{r: rand.New(rand.NewPCG(a, b))} }

func (c *chance) uint64() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.r.Uint64()
}

// under reports true with a probability of percent.
func (c *chance) under(percent uint64) bool { return c.uint64()%100 < percent }

func (c *chance) upTo(d time.Duration) time.Duration {
	return time.Duration(c.uint64() % uint64(d))
}

func (m *model) fail(format string, args ...any) {
	m.t.Helper()
	m.t.Errorf("seed %d, %v: %s", m.seed, time.Now().Format("04:05.000"), fmt.Sprintf(format, args...))
}

// check compares what replicas believe with each other and with the store.
func (m *model) check() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	leaders := 0
	for term, name := range m.live {
		if !term.Valid() {
			continue
		}
		leaders++
		if l, err := m.store.Leader(m.t.Context(), "g"); err != nil || l.Token != term.Token() {
			m.fail("%s leads with token %d; the store says %+v, %v", name, term.Token(), l, err)
		}
		if l, _ := m.store.Leader(m.t.Context(), "g"); l.Remaining < term.Remaining() {
			m.fail("%s believes in %v, the store in %v", name, term.Remaining(), l.Remaining)
		}
	}
	if leaders > 1 {
		m.fail("%d leaders", leaders)
	}
	for s := range m.sessions {
		if s.Valid() && !alive(m.t, m.store, s.ID()) {
			m.fail("session %s is over in the store", s.ID())
		}
	}
}

// fault draws what happens to a call.
func (m *model) fault(ttl time.Duration) fault {
	var kind string
	var f fault
	switch p := m.chance.uint64() % 100; {
	case p < 6:
		kind, f = "request lost", fault{lost: true, reset: m.chance.under(50)}
	case p < 12:
		kind, f = "reply lost", fault{mute: true, reset: m.chance.under(50)}
	case p < 18:
		kind, f = "request late", fault{request: m.chance.upTo(ttl)}
	case p < 22:
		kind, f = "reply late", fault{reply: m.chance.upTo(ttl)}
	case p < 24:
		kind, f = "both late", fault{request: m.chance.upTo(2 * ttl), reply: m.chance.upTo(ttl)}
	default:
		kind, f = "none", fault{request: m.chance.upTo(ttl / 100), reply: m.chance.upTo(ttl / 100)}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.faults[kind]++
	return f
}

// member is one replica of the model.
type member struct {
	*election.Elector
	m     *model
	name  string
	ttl   time.Duration
	wire  *wire
	ahead atomic.Int64 // of the wall clock
	cut   atomic.Bool

	mu     sync.Mutex
	told   store.Leader
	leader *election.Term // elected and not lost
}

func (m *model) member(name string, ttl time.Duration) *member {
	r := &member{m: m, name: name, ttl: ttl, wire: newWire(m.store)}
	r.wire.follow(func(string) fault {
		if r.cut.Load() {
			return fault{lost: true, reset: m.chance.under(50)}
		}
		return m.fault(ttl)
	})
	var err error
	r.Elector, err = election.New(r.wire, election.Config{Group: "g", ID: name, Lease: ttl, Callbacks: election.Callbacks{
		Elected: func(t *election.Term) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.leader != nil {
				m.fail("%s elected twice", name)
			}
			r.leader = t
		},
		Lost: func(t *election.Term, cause error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.leader != t || cause == nil {
				m.fail("%s lost %d, was elected %v: %v", name, t.Token(), r.leader, cause)
			}
			r.leader = nil
		},
		LeaderChanged: func(l store.Leader) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if l.Replica == r.told.Replica && l.Token == r.told.Token {
				m.fail("%s told twice of %+v", name, l)
			}
			r.told = l
		},
	}})
	if err != nil {
		m.t.Fatal(err)
	}
	return r
}

// live takes part until ctx ends, stopping and starting again now and then.
func (r *member) live(ctx context.Context) {
	w := &world.World{
		Wall:   func() time.Time { return time.Now().Add(time.Duration(r.ahead.Load())) },
		Random: r.m.chance.uint64,
		ID:     uuid.NewString,
		Secret: uuid.NewString,
	}
	for ctx.Err() == nil {
		once, stop := context.WithTimeout(world.With(ctx, w), r.m.chance.upTo(40*r.ttl))
		if err := r.Run(once, r.lead); err != nil {
			r.m.fail("Run returned %v", err)
		}
		stop()
		r.mu.Lock()
		r.told = store.Leader{Replica: "unknown"}
		if r.leader != nil {
			r.m.fail("Run of %s returned before the term was lost", r.name)
		}
		r.mu.Unlock()
	}
}

func (r *member) lead(ctx context.Context, term *election.Term) error {
	m := r.m
	m.mu.Lock()
	if term.Token() <= m.token {
		m.fail("token %d after %d", term.Token(), m.token)
	}
	m.token = term.Token()
	m.terms++
	m.live[term] = r.name
	m.mu.Unlock()
	m.check()
	defer func() {
		m.mu.Lock()
		delete(m.live, term)
		m.mu.Unlock()
	}()
	if m.chance.under(50) {
		go r.hold(m.chance.upTo(5 * r.ttl)) // it outlives the term
	}
	end := time.Now().Add(m.chance.upTo(20 * r.ttl))
	for time.Now().Before(end) && ctx.Err() == nil {
		m.check()
		if !rest(ctx, m.chance.upTo(r.ttl/10)) && m.chance.under(30) {
			time.Sleep(m.chance.upTo(2 * r.ttl)) // it ignores its context
		}
	}
	m.check()
	switch p := m.chance.uint64() % 100; {
	case ctx.Err() != nil && p < 90:
		return context.Cause(ctx)
	case p < 40:
		return errors.New("broken")
	case p < 50:
		panic("broken")
	}
	return nil
}

// hold holds the session for d.
func (r *member) hold(d time.Duration) {
	s, release, err := r.Hold()
	if err != nil {
		return
	}
	r.m.mu.Lock()
	r.m.sessions[s] = true
	r.m.mu.Unlock()
	rest(s.Context(), d)
	r.m.check()
	r.m.mu.Lock()
	delete(r.m.sessions, s)
	r.m.mu.Unlock()
	release()
}

// trouble does to members what no call can: cuts, jumps of their wall clocks, resignations.
func (m *model) trouble(ctx context.Context, members []*member) {
	for ctx.Err() == nil {
		r := members[m.chance.uint64()%uint64(len(members))]
		switch p := m.chance.uint64() % 100; {
		case p < 30:
			r.cut.Store(true)
		case p < 60:
			r.cut.Store(false)
		case p < 70:
			r.ahead.Add(int64(m.chance.upTo(2 * r.ttl)))
		case p < 80:
			r.ahead.Add(-int64(m.chance.upTo(2 * r.ttl)))
		}
		if m.chance.under(30) {
			once, stop := context.WithTimeout(ctx, r.ttl)
			_ = r.Resign(once)
			stop()
		}
		if m.chance.under(30) {
			go r.hold(m.chance.upTo(3 * r.ttl))
		}
		rest(ctx, m.chance.upTo(2*r.ttl))
	}
}

func TestE1AtMostOneLeadsUnderRandomFaults(t *testing.T) {
	for seed := range uint64(50) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &model{
					t: t, seed: seed, store: memstore.New(), chance: newChance(seed, 1),
					live: map[*election.Term]string{}, sessions: map[*election.Session]bool{}, faults: map[string]int{},
				}
				ttl := []time.Duration{500 * time.Millisecond, 2 * time.Second, 5 * time.Second, 15 * time.Second}[seed%4]
				ctx, stop := context.WithTimeout(t.Context(), max(10*time.Minute, 200*ttl))
				defer stop()
				var members []*member
				var all sync.WaitGroup
				for i := range 5 {
					r := m.member(string(rune('a'+i)), ttl+time.Duration(i)*ttl/10)
					members = append(members, r)
					all.Go(func() { r.live(ctx) })
				}
				all.Go(func() { m.trouble(ctx, members) })
				for ctx.Err() == nil {
					m.check()
					time.Sleep(ttl / 40)
				}
				all.Wait()
				for _, r := range members {
					r.wire.late.Wait()
				}
				synctest.Wait()
				// A run that proves nothing fails.
				if m.terms < 10 || len(m.faults) < 6 {
					t.Errorf("%d terms, faults %v", m.terms, m.faults)
				}
			})
		})
	}
}
