package election_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store/memstore"
)

func TestResignLetsAnotherLeadFirst(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, s, election.Config{}, func(ctx context.Context, term *election.Term) error {
			<-ctx.Done()
			if context.Cause(ctx) == election.ErrResigned {
				time.Sleep(2 * lease)
				if !term.Valid() {
					t.Error("the lease is not renewed while the work goes on")
				}
			}
			return nil
		})
		synctest.Wait()
		other := run(t, s, election.Config{}, untilEnd)
		pass(time.Second)
		start := time.Now()
		if err := r.Resign(t.Context()); err != nil || time.Since(start) != 2*lease {
			t.Errorf("Resign returned %v after %v", err, time.Since(start))
		}
		synctest.Wait()
		if r.leads() || !other.leads() {
			t.Error("nobody else leads when Resign returns")
		}
		if err := r.Resign(t.Context()); err != nil {
			t.Errorf("a follower resigns: %v", err)
		}
		other.stop(nil)
		await(t, 2*time.Second, "leads when the other has stopped", r.leads) // after its cool-down
	})
}

func TestResignOfTheOnlyReplicaLeadsAgainAfterACoolDown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := run(t, memstore.New(), election.Config{}, untilEnd)
		for range 5 { // the cool-down does not grow
			await(t, 2*time.Second, "leads", r.leads)
			if err := r.Resign(t.Context()); err != nil {
				t.Fatal(err)
			}
			pass(900 * time.Millisecond)
			if r.leads() {
				t.Error("it does not wait for another")
			}
		}
	})
}

func TestResignGivesUpWaitingWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T) {
		r := run(t, memstore.New(), election.Config{}, func(ctx context.Context, _ *election.Term) error {
			<-ctx.Done()
			time.Sleep(time.Minute)
			return nil
		})
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := r.Resign(ctx); err != context.DeadlineExceeded {
			t.Errorf("Resign returned %v", err)
		}
	})
}
