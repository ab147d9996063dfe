package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/internal/line"
	"github.com/go-singleton/singleton/internal/world"
	"github.com/go-singleton/singleton/store"
)

// declined are two replicas without a Scheduler, of which one leads and answers.
type declined struct {
	*cluster
	electors []*election.Elector

	mu     sync.Mutex
	tokens []uint64 // of the terms
	errs   []error  // of Decline
}

// withoutSchedulers runs a test with them, in a bubble.
func withoutSchedulers(t *testing.T, test func(*declined)) {
	inBubble(t, func(t *testing.T, c *cluster) {
		d := &declined{cluster: c}
		var running sync.WaitGroup
		defer running.Wait()
		for i := range 2 {
			name := fmt.Sprintf("r%d", i+1)
			st := &line.Line{Store: c.store, Replica: name, Carrier: c.script}
			log := slog.New(slog.NewTextHandler(c, nil))
			e, err := election.New(st, election.Config{Group: "g", ID: name, Lease: 5 * time.Second, Logger: log})
			if err != nil {
				t.Fatal(err)
			}
			d.electors = append(d.electors, e)
			w := world.Seeded(uint64(i+1), name, func() time.Duration { return 0 })
			ctx, stop := context.WithCancel(world.With(t.Context(), w))
			defer stop()
			running.Go(func() {
				if err := e.Run(ctx, d.lead(st, e, log)); err != nil {
					t.Error(err)
				}
			})
			pass(time.Second)
		}
		test(d)
	})
}

func (d *declined) lead(st store.Store, e *election.Elector, log *slog.Logger) func(context.Context, *election.Term) error {
	return func(ctx context.Context, term *election.Term) error {
		d.mu.Lock()
		d.tokens = append(d.tokens, term.Token())
		d.mu.Unlock()
		err := Decline(ctx, st, e, term, log)
		d.mu.Lock()
		d.errs = append(d.errs, err)
		d.mu.Unlock()
		<-ctx.Done()
		return context.Cause(ctx)
	}
}

// terms returns how many there were.
func (d *declined) terms() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.tokens)
}

// quick fails when the answer takes a second.
func (d *declined) quick(a *asker, r *Request, answer string) {
	d.t.Helper()
	asked := time.Now()
	a.want(r, answer)
	if waited := time.Since(asked); waited >= time.Second {
		d.t.Errorf("the answer took %v", waited)
	}
}

func TestLeaderWithoutSchedulerResignsAndRefusesAllElse(t *testing.T) {
	withoutSchedulers(t, func(d *declined) {
		ann := d.asker("ann")
		for _, r := range []*Request{
			ann.trigger("a"), ann.pause("a", Pause{}), ann.resume(""), ann.forget("a"), ann.reset("a"), ann.cancel("a@2000-01-01T00:00:00Z"),
		} {
			d.quick(ann, r, "refused: "+withoutScheduler)
		}
		d.quick(ann, ann.resign(), "done")
		pass(500 * time.Millisecond)
		if leader, err := d.store.Leader(d.t.Context(), "g"); err != nil || d.terms() != 2 || !strings.HasPrefix(leader.Replica, "r2-") {
			d.t.Errorf("%d terms, %+v leads, %v", d.terms(), leader, err)
		}
		d.quick(ann, ann.trigger("a"), "refused: "+withoutScheduler) // the next one answers, too
		if n := len(d.records(store.InboxBucket)); n != 0 {
			d.t.Errorf("%d messages are left", n)
		}
	})
}

// A request counts once, whatever becomes of calls, and however often it arrives.
func TestLeaderWithoutSchedulerResignsOncePerRequest(t *testing.T) {
	for _, harm := range []struct {
		op   string
		fate fate
	}{
		{"commit", fate{mute: true}}, {"commit", fate{lost: true}}, {"commit", fate{err: errReset}}, {"read", fate{err: errReset}},
		{"watch", fate{err: errReset}}, {"post", fate{again: 3 * time.Second}},
	} {
		t.Run(fmt.Sprintf("%s %+v", harm.op, harm.fate), func(t *testing.T) {
			withoutSchedulers(t, func(d *declined) {
				ann, harmed := d.asker("ann"), false
				d.script.follow(func(call call) fate {
					if harmed || call.op != harm.op || (call.replica == "ann") != (harm.op == "post") {
						return fate{}
					}
					harmed = true
					return harm.fate
				})
				ann.want(ann.resign(), "done")
				pass(10 * time.Second)
				if d.terms() != 2 || !harmed {
					d.t.Errorf("%d terms, harmed %v\n%s", d.terms(), harmed, d.log())
				}
				for _, err := range d.errs {
					if err != nil {
						d.t.Error(err)
					}
				}
			})
		})
	}
}

func TestB54LeaderWithoutSchedulerRefusesWhatIsOld(t *testing.T) {
	withoutSchedulers(t, func(d *declined) {
		o := order{Verb: verbResign, Author: "ann", Posted: time.Now().Add(-time.Hour).UnixMilli()}
		ann := d.asker("ann")
		if err := d.store.Post(d.t.Context(), "g", "old", encode(message{Version: formatVersion, Kind: kindRequest, Request: &o})); err != nil {
			d.t.Fatal(err)
		}
		if got := ann.told(ann.Request("old")); !strings.HasPrefix(got, "refused: it is 1h0m") {
			d.t.Errorf("the answer is %q", got)
		}
		if d.terms() != 1 {
			d.t.Error("the leader has resigned")
		}
	})
}

// What is no request is for a Scheduler, and old answers are dropped with the next one.
func TestLeaderWithoutSchedulerLeavesNothingAndLosesNothing(t *testing.T) {
	withoutSchedulers(t, func(d *declined) {
		end := someEntry
		end.Replica = "r9"
		if err := d.store.Post(d.t.Context(), "g", "0", encode(message{Version: formatVersion, Kind: kindEnd, End: &end})); err != nil {
			d.t.Fatal(err)
		}
		ann := d.asker("ann")
		for range 3 {
			d.quick(ann, ann.trigger("a"), "refused: "+withoutScheduler)
		}
		pass(2 * time.Hour)
		d.quick(ann, ann.trigger("a"), "refused: "+withoutScheduler)
		if seen, inbox := d.records(bucketSeen), d.records(store.InboxBucket); len(seen) != 1 || len(inbox) != 1 {
			d.t.Errorf("%v is seen, %v waits", seen, inbox)
		}
	})
}

func TestDeclineSaysWhatNoRetryHeals(t *testing.T) {
	withoutSchedulers(t, func(d *declined) {
		denied := store.Permanent("grant it", errors.New("no permission"))
		d.script.follow(func(call call) fate {
			if call.op == "commit" {
				return fate{err: denied}
			}
			return fate{}
		})
		ann := d.asker("ann")
		ann.trigger("a")
		pass(time.Second)
		if len(d.errs) != 1 || !errors.Is(d.errs[0], store.ErrPermanent) {
			d.t.Errorf("%v", d.errs)
		}
	})
}
