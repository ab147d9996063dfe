package election

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v4"

	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// Causes of a term's end, read with context.Cause; ErrStop is for lead functions.
var (
	ErrLost       = store.ErrLost // the store says that the lease is not ours
	ErrExpired    = errors.New("election: lease could not be renewed in time")
	ErrResigned   = errors.New("election: resigned")
	ErrOverdue    = errors.New("election: work goes on after its lease has ended") // from Check
	ErrStop       = errors.New("election: stop")                                   // lead returns it to end Run with nil
	ErrNotRunning = errors.New("election: Run is not running")                     // from Hold
)

// The cool-down of a replica that has given up leadership, so that another one leads first.
const (
	coolDown     = time.Second // long enough for a follower to hear of the free lease and to take it
	longCoolDown = time.Minute
)

// lead is the work of a leader.
type lead func(context.Context, *Term) error

// Elector campaigns for a group; its methods are safe for concurrent use.
type Elector struct {
	leases store.Leases
	ledger store.Ledger // nil when leases keeps no sessions
	cfg    Config
	queue  queue
	wake   chan struct{} // the lease may be free
	keeps  sync.WaitGroup
	world  *world.World // of the last Run, and of New before the first

	// What one goroutine at a time uses: Run's, or that of a renewal while Run's is at work.
	pulse pulse
	cool  backoff.BackOff // grows with each term in a row that its work has ended; nil after another
	floor uint64          // the highest token seen
	told  store.Leader    // whom LeaderChanged has named last
	far   uint64          // token of the leader whose far expiry has been logged
	idle  time.Duration   // the session wanted while nothing holds it
	next  step
	taken func() bool   // somebody has got the lease before this replica's turn to ask; nil where it asks all the same
	spare time.Duration // how long the session outlasts that turn, less a lease
	owed  []store.Lease // given up, newest last, without an answer: the store may grant them still

	storeTime  time.Time     // the store's clock when it was heard of last; zero before
	storeHeard world.Instant // and when that was

	watching   context.Context // ends with the last campaign
	lead       lead
	subscribed bool
	exits      bool // lead has called runtime.Goexit

	mu       sync.Mutex
	running  bool
	open     bool            // Hold is possible
	used     bool            // id has been given to the store
	started  bool            // the store has answered for id: its session is only refreshed from now on
	renewing bool            // a term's renewals keep the session
	freed    chan struct{}   // the last hold has been released; nil while nobody waits for that
	base     context.Context // Run's, without its end
	id       string
	logger   *slog.Logger // names id
	session  *Session     // the current one
	holds    int          // of all sessions
	keeper   *keeper
	term     *Term     // until its lease is released
	overdue  *Term     // its work goes on past its lease
	due      time.Time // when the loop moves on at the latest; zero when that is up to others
}

// New returns an elector that campaigns once Run is called. Its errors are about cfg.
func New(leases store.Leases, cfg Config) (*Elector, error) {
	err := cfg.complete()
	if leases == nil {
		err = errors.Join(errors.New("election: no store"), err)
	}
	if err != nil {
		return nil, err
	}
	e := &Elector{leases: leases, cfg: cfg, wake: make(chan struct{}, 1)}
	e.ledger, _ = leases.(store.Ledger)
	e.cfg.Info = bytes.Clone(cfg.Info)
	e.cfg.Logger = cfg.Logger.With("group", cfg.Group)
	e.queue.log = e.cfg.Logger
	e.world = world.From(context.Background())
	e.draw()
	if cfg.Lease < shortLease {
		e.log().Warn("lease is short: brief pauses of a process or the network will end terms", "lease", cfg.Lease)
	}
	return e, nil
}

// Run campaigns, calls lead while this replica leads, and starts over. It returns nil once ctx has ended or lead has
// returned ErrStop, and an error only for a fault that no retry can heal (store.ErrPermanent); in either case the work
// has returned by then, and every Hold has been released. It calls lead on its own goroutine.
//
// The context of lead ends, with its cause, guard before anyone else can lead, and when ctx ends or Resign is called; in
// the latter two the lease goes on being renewed until lead has returned. An error, a panic or a runtime.Goexit of lead
// while its context lives ends the term and is followed by a cool-down that grows from one such end to the next; so does
// nil, which is a voluntary end. After a runtime.Goexit Run goes on as ever, but where it would return its goroutine ends.
//
// Run may be called again after it has returned; a second one at the same time is an error.
func (e *Elector) Run(ctx context.Context, lead func(context.Context, *Term) error) (err error) {
	var cancel context.CancelFunc
	apart(func() { cancel, err = e.begin(ctx, lead) })
	if err != nil {
		return err
	}
	defer apart(func() { e.end(cancel) })
	e.loop()
	return e.next.fault
}

// loop is the state machine: it campaigns, calls lead while it has a term, cools down where the term's end asks for it, and
// campaigns again. All else is done apart: there may be thousands of elections, each of which waits nearly all the time,
// and what talks to the store or to a log takes a deep stack, which this goroutine would keep.
func (e *Elector) loop() {
	exits := true
	defer func() {
		if exits {
			e.exits = true
			e.loop()
		}
	}()
	for !e.next.over {
		if e.next.pause > 0 {
			var hint <-chan struct{}
			if e.next.heeds {
				hint = e.wake
			}
			world.Rest(e.watching, e.next.pause, hint)
		}
		apart(func() { e.next = e.campaign() })
		switch t := e.next.term; {
		case t == nil:
		case e.exits:
			apart(func() { e.work(t) })
		default:
			e.work(t)
		}
	}
	exits = false
}

// step is what comes next: to call lead for a term, or to campaign after a pause, unless Run is over.
type step struct {
	term  *Term
	pause time.Duration
	heeds bool // a hint cuts the pause short
	over  bool
	fault error // with which Run is over; nil is none
}

// again returns the next attempt.
func (e *Elector) again(pause time.Duration) step {
	e.expect(pause)
	return step{pause: pause}
}

// sleep returns the next attempt, which a hint brings forward.
func (e *Elector) sleep(pause time.Duration) step {
	e.expect(pause)
	return step{pause: pause, heeds: true}
}

// apart runs f on a goroutine of its own and waits for it.
func apart(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	<-done
}

// rest returns how long to let another replica lead first, d or a little more.
func (e *Elector) rest(d time.Duration) time.Duration { return e.world.Between(d, d+d/4) }

// longerRest returns how long to rest after one more term that its work has ended.
func (e *Elector) longerRest() time.Duration {
	if e.cool == nil {
		e.cool = backoff.NewExponentialBackOff(backoff.WithInitialInterval(coolDown), backoff.WithMultiplier(2),
			backoff.WithMaxInterval(longCoolDown), backoff.WithMaxElapsedTime(0), backoff.WithRandomizationFactor(0))
	}
	return e.rest(e.cool.NextBackOff())
}

// begin prepares a Run; cancel ends what watches.
func (e *Elector) begin(ctx context.Context, lead lead) (cancel context.CancelFunc, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running {
		return nil, errors.New("election: Run is running already")
	}
	e.watching, cancel = context.WithCancel(ctx)
	e.subscribed, e.lead, e.next, e.exits = false, lead, step{}, false
	e.running, e.open = true, true
	e.base = context.WithoutCancel(ctx)
	w := world.From(ctx)
	e.pulse = pulse{world: w, trouble: trouble{log: e.log, call: "lease"}}
	e.cool = nil
	e.taken = nil
	e.told, e.far, e.idle = store.Leader{}, 0, min(3*e.cfg.Lease, store.MaxDuration)
	if e.used || e.world != w {
		e.world = w
		e.draw()
	}
	e.session = e.newSession()
	return cancel, nil
}

// end waits until nothing of a Run is left.
func (e *Elector) end(cancel context.CancelFunc) {
	cancel()
	for !e.close() {
		<-e.freed
		e.world.WaitTurn()
	}
	e.keeps.Wait()
	e.queue.wait()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.session.life.End(ErrNotRunning)
	e.running, e.due = false, time.Time{}
}

// close refuses further holds when none is out.
func (e *Elector) close() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.due = time.Time{}
	e.open = e.holds > 0
	if e.open && e.freed == nil {
		e.freed = make(chan struct{}, 1)
	}
	return !e.open
}

// draw takes a new ID; mu is held, save in New.
func (e *Elector) draw() {
	e.id = e.cfg.ID + "-" + e.world.Suffix()
	e.logger = e.cfg.Logger.With("replica", e.id)
	e.used, e.started = false, false
}

// Resign ends the current term with the cause ErrResigned, waits until its work has returned and the lease has been
// released, and lets another replica lead first: this one campaigns again after a cool-down of a second. It returns nil
// at once when this replica has no term, and the cause of ctx when that ends first; the term ends all the same. Lead
// itself must not call it: it would wait for itself.
func (e *Elector) Resign(ctx context.Context) error {
	e.mu.Lock()
	t := e.term
	if t == nil {
		e.mu.Unlock()
		return nil
	}
	if t.done == nil {
		t.done = make(chan struct{})
	}
	done := t.done
	e.mu.Unlock()
	t.cancel(ErrResigned)
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Term returns the current term, or nil while this replica does not lead.
func (e *Elector) Term() *Term {
	e.mu.Lock()
	t := e.term
	e.mu.Unlock()
	if t == nil || !t.Valid() {
		return nil
	}
	return t
}

// Leader asks the store who leads; store.ErrNoLeader when nobody does.
func (e *Elector) Leader(ctx context.Context) (store.Leader, error) {
	return e.leases.Leader(ctx, e.cfg.Group)
}

// ID returns the replica's unique ID. It changes when the replica needs another session: at a second Run, and when the
// one it had has ended.
func (e *Elector) ID() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.id
}
