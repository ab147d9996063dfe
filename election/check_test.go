package election_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store/memstore"
)

func TestCheckReportsALoopThatStandsStill(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		r := run(t, deaf{s, time.Now().Add(time.Second)}, election.Config{}, untilEnd)
		for range 10 {
			pass(time.Second)
			if err := r.Check(); err != nil {
				t.Fatal(err)
			}
		}
		pass(time.Minute)
		if err := r.Check(); err == nil || errors.Is(err, election.ErrOverdue) {
			t.Errorf("Check says %v", err)
		}
	})
}

func TestCheckDoesNotMindTheStore(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := memstore.New()
		leader, follower := run(t, s, election.Config{}, untilEnd), run(t, s, election.Config{}, untilEnd)
		for _, f := range []fault{{}, {lost: true}, {lost: true, reset: true}, {mute: true}, {}} {
			for _, r := range []*replica{leader, follower} {
				r.wire.follow(func(string) fault { return f })
			}
			for range 600 {
				pass(time.Second)
				if err := errors.Join(leader.Check(), follower.Check()); err != nil {
					t.Fatalf("%+v: %v", f, err)
				}
			}
		}
	})
}
