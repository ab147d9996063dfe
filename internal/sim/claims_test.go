package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/go-singleton/singleton/store"
)

// run judges a claim: of an attempt that was never claimed before, the next one, and not after a success.
func (c *commit) run(ch store.Change) {
	rec, err := c.readRun.decode(ch.Value)
	if err != nil {
		c.fail("%s writes run %s: %v", c.name, ch.Key, err)
		return
	}
	if job, tick, err := runTick(ch.Key); err != nil || job != rec.Job || tick.Unix() != rec.Tick {
		c.fail("%s writes run %s as %+v", c.name, ch.Key, rec)
	}
	c.follows(ch.Key, rec)
	if manual(ch.Key) {
		c.once(ch.Key)
	}
	attempts := c.claims[ch.Key]
	switch {
	case rec.waits():
		if rec.Attempt != len(attempts)+1 {
			c.fail("%s lets %s wait for attempt %d after %d", c.name, ch.Key, rec.Attempt, len(attempts))
		}
		return
	case rec.Token != c.lease.Token || rec.Number != c.number:
		if rec.Attempt < 1 || rec.Attempt > len(attempts) {
			c.fail("%s claims %s under another name: %d %d", c.name, ch.Key, rec.Token, rec.Number)
		}
		return // a note on a claim that stands
	case rec.Attempt != len(attempts)+1:
		c.fail("%s claims attempt %d of %s after %d", c.name, rec.Attempt, ch.Key, len(attempts))
	case c.success[ch.Key]:
		c.fail("%s claims attempt %d of %s, which is known to have succeeded", c.name, rec.Attempt, ch.Key)
	case rec.Replica != c.lease.Replica:
		c.fail("%s by %s claims %s for %s", c.name, c.lease.Replica, ch.Key, rec.Replica)
	}
	c.claims[ch.Key] = append(attempts, rec.Replica)
	c.sessions[attemptName(ch.Key, rec.Attempt)] = c.session(rec.Replica)
	c.tell(fmt.Sprintf("%s (attempt %d, %s): claimed", brief(ch.Key), rec.Attempt, rec.Reason))
	if rec.Attempt == 1 && !manual(ch.Key) {
		c.unpaused(ch.Key, rec)
		if _, begins := c.after(rec.Job); begins {
			c.begun[rec.Job] = append(c.begun[rec.Job], rec.Tick)
		} else {
			c.taken[rec.Job] = append(c.taken[rec.Job], rec.Tick)
		}
	}
}

// follows judges what becomes of the record of a run: an attempt starts no earlier than it may, one that is to end is the
// last, and what stands of failures and of the next attempt's time stays.
func (c *commit) follows(id string, rec runRecord) {
	j := c.jobs[rec.Job]
	if j == nil {
		c.fail("%s claims %s of an unknown job", c.name, id)
		return
	}
	var old runRecord
	if value, ok := c.records["run"][id]; ok {
		var err error
		if old, err = c.readRun.decode(value); err != nil {
			c.fail("run %s: %v", id, err)
			return
		}
	}
	switch {
	case old.Version == 0:
		if due := j.due(rec.Tick); rec.Attempt == 1 && !manual(id) && rec.Started.Before(due) {
			c.fail("%s claims %s at %v, before it is due at %v", c.name, id, rec.Started, due)
		}
	case rec.Failures < old.Failures || rec.Interrupts < old.Interrupts || rec.Attempt < old.Attempt ||
		rec.Attempt > old.Attempt+1 && c.reloaded.IsZero(): // else a memory may know of later ones
		c.fail("%s makes %+v of %+v", c.name, rec, old)
	case old.Cancel != nil && (rec.Cancel == nil || rec.Attempt != old.Attempt):
		c.fail("%s lets %s go on, which is to end", c.name, id)
	case old.waits() && rec.waits() && rec.Attempt == old.Attempt && !rec.NotBefore.Equal(old.NotBefore):
		c.fail("%s moves attempt %d of %s from %v to %v", c.name, rec.Attempt, id, old.NotBefore, rec.NotBefore)
	case old.waits() && !rec.waits() && rec.Started.Before(old.NotBefore):
		c.fail("%s claims attempt %d of %s at %v, not before %v", c.name, rec.Attempt, id, rec.Started, old.NotBefore)
	case !old.waits() && rec.waits() && rec.Failures > 0 && rec.Failures >= j.failures:
		c.fail("%s lets %s wait after %d failures", c.name, id, rec.Failures)
	}
}

// close judges that the commit that closes a run says how it ended.
func (c *commit) close(ch store.Change) {
	value, ok := c.records["run"][ch.Key]
	if !ok {
		return
	}
	rec, err := c.readRun.decode(value)
	if err != nil {
		c.fail("run %s: %v", ch.Key, err)
		return
	}
	if rec.waits() {
		return // its last attempt stands in history
	}
	for _, other := range c.all {
		if other.Bucket != "history/"+rec.Job {
			continue
		}
		e, err := c.readEntry.decode(other.Value)
		if err == nil && e.RunID == ch.Key && e.Attempt == rec.Attempt && e.Token == rec.Token && e.Number == rec.Number {
			return
		}
	}
	c.fail("%s closes %s without an entry", c.name, ch.Key)
}

// overlaps judges that jobs that exclude it have one open run at most.
func (c *commit) overlaps() {
	open := make(map[string]string)
	for _, id := range slices.Sorted(maps.Keys(c.records["run"])) {
		job, _, _ := strings.Cut(id, "@")
		if rec, err := c.readRun.decode(c.records["run"][id]); manual(id) && (err != nil || rec.waits()) {
			continue // it waits for the end of another
		}
		if other, ok := open[job]; ok && c.jobs[job].exclusive {
			c.fail("%s leaves %s and %s open", c.name, other, id)
		}
		open[job] = id
	}
}
