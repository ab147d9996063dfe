package histories

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// generous is more than a call on a sound network takes.
const generous = 10 * time.Second

// paused is one schedule on a sound network: client 1 leads, looks whether it does, and stands still before it writes,
// until client 2 leads and has written; then it goes on.
func paused(t *testing.T, put func(*client) operation) (history, operation) {
	b, r := onRedis(t), newRecorder()
	old, young := newClient(t, b, r, 1, 300*time.Millisecond, 1), newClient(t, b, r, 2, time.Minute, 1)
	if o := old.acquire(generous); o.outcome != done {
		t.Fatalf("%v", o)
	}
	old.leader(generous)
	for young.acquire(generous).outcome != done { // asking goes on for as long as the old lease lasts
		if !pause(t.Context(), 5*time.Millisecond) {
			t.Fatal("the test ended")
		}
	}
	put(young)
	young.read(generous)
	late := put(old)
	young.read(generous)
	return r.history(), late
}

// TestUnguardedLockFailsUnderAPause shows what the fencing token is for: the same schedule on the same leases, with
// writes that the store checks and with writes that it does not.
func TestUnguardedLockFailsUnderAPause(t *testing.T) {
	for _, c := range []struct {
		name    string
		put     func(*client) operation
		late    outcome
		verdict porcupine.CheckResult
	}{
		{"unguarded", func(c *client) operation { return c.write(generous) }, done, porcupine.Illegal},
		{"fenced", func(c *client) operation { return c.commit(generous) }, lost, porcupine.Ok},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h, late := paused(t, c.put)
			if late.outcome != c.late {
				t.Errorf("the late write was answered %s, want %s", late.outcome, c.late)
			}
			if verdict := h.judge(); verdict != c.verdict {
				t.Errorf("the checker says %v, want %v\n%s", verdict, c.verdict, h.lines())
			}
		})
	}
}
