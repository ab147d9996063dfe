package scheduler

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/store"
)

// chaosRun is a job's work being done.
type chaosRun struct {
	node  *node
	run   Run
	ctx   context.Context
	ended bool
	err   error
}

// work is what every job does: it takes a while that follows from the seed, and mostly heeds its context.
func (c *chaos) work(ctx context.Context, n *node, run Run) error {
	e := &chaosRun{node: n, run: run, ctx: ctx}
	if !c.enter(e) {
		return errGone
	}
	h := fnv.New64a()
	fmt.Fprint(h, c.seed, run.ID(), run.Attempt)
	draw := h.Sum64()
	long := time.Duration(draw % uint64(400*time.Millisecond))
	switch {
	case draw>>32%40 == 0:
		long = time.Duration(draw % uint64(12*time.Second))
	case draw>>32%10 == 0:
		long = time.Duration(draw % uint64(2500*time.Millisecond))
	}
	var err error
	timer := time.NewTimer(long)
	defer timer.Stop()
	select {
	case <-timer.C:
		if draw>>40%8 == 0 {
			err = errors.New("failed")
		}
	case <-ctx.Done():
		err = context.Cause(ctx)
		if draw>>44%10 == 0 { // it does not heed
			select {
			case <-timer.C:
				err = nil
			case <-n.dead:
			}
		}
	case <-n.dead:
		err = errGone
	}
	for {
		wait := n.stands()
		if wait <= 0 {
			break
		}
		select {
		case <-time.After(wait + time.Duration(draw%uint64(time.Millisecond))): // one after the other, so that it can be replayed
		case <-n.dead:
			return errGone
		}
	}
	if draw>>50%64 == 0 && err == nil {
		defer func() { panic("a job's bug") }()
		err = errors.New("panic")
	}
	c.leave(e, err)
	return err
}

func name(run Run) string { return fmt.Sprintf("%s#%d", run.ID(), run.Attempt) }

// enter notes the start of a run and checks that it may start.
func (c *chaos) enter(e *chaosRun) bool {
	var problems []string
	c.mu.Lock()
	if e.node.killed {
		c.mu.Unlock()
		return false
	}
	key := name(e.run)
	if old := c.started[key]; old != nil {
		problems = append(problems, fmt.Sprintf("%s starts on %s and has started on %s", key, e.node.name, old.node.name))
	}
	if err := c.mirror.claimed(e.run); err != nil && (c.lost.IsZero() || time.Since(c.lost) > time.Second) {
		problems = append(problems, fmt.Sprintf("%s starts on %s without its claim: %v", key, e.node.name, err))
	}
	if c.mirror.jobs[e.run.Job].exclusive {
		for _, other := range c.active {
			if other.run.Job == e.run.Job && !other.sessionOver() {
				problems = append(problems, fmt.Sprintf("%s starts on %s while %s goes on on %s",
					key, e.node.name, name(other.run), other.node.name))
			}
		}
	}
	if ahead := time.Until(e.run.Tick); ahead > maxAhead {
		problems = append(problems, fmt.Sprintf("%s starts %v too early", key, ahead))
	}
	c.started[key], c.active[key] = e, e
	c.mu.Unlock()
	for _, p := range problems {
		c.fail("%s", p)
	}
	return true
}

func (c *chaos) leave(e *chaosRun, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e.ended, e.err = true, err
	delete(c.active, name(e.run))
}

// sessionOver reports whether the run's session is over, or its Run has given it up.
func (e *chaosRun) sessionOver() bool {
	return !e.run.Valid() || errors.Is(context.Cause(e.ctx), ErrStopping) && e.node.over()
}

// watch checks again and again that no run is alive whose session is over.
func (c *chaos) watch() {
	replicas, _ := c.store.Replicas(context.Background(), "g")
	c.mu.Lock()
	var problems []string
	for _, key := range slices.Sorted(maps.Keys(c.active)) {
		if !c.lost.IsZero() && time.Since(c.lost) < 3*time.Second {
			break // the replicas learn of the end of their sessions when they refresh them
		}
		e := c.active[key]
		alive := slices.ContainsFunc(replicas, func(r store.Replica) bool { return r.ID == e.run.Replica })
		if !alive && (e.ctx.Err() == nil || e.run.Valid()) {
			problems = append(problems, fmt.Sprintf("%s on %s is alive, its session %s is not", key, e.node.name, e.run.Replica))
		}
	}
	c.mu.Unlock()
	for _, p := range problems {
		c.fail("%s", p)
	}
	c.bus.after(50*time.Millisecond, "watch", c.watch)
}

// settled checks that, some time after all faults, every job is up to date.
func (c *chaos) settled() {
	now := time.Now().Unix()
	for _, j := range c.jobs {
		mark, ok := c.mirror.watermark(j.Name)
		if !ok {
			c.fail("job %s is not in the ledger", j.Name)
		} else if late := now - mark; late > 40 {
			c.fail("job %s is %ds behind", j.Name, late)
		}
	}
}

// reckon compares the history, as everyone may read it, with what was seen.
func (c *chaos) reckon() {
	in, err := NewInspector(c.store, "g")
	if err != nil {
		c.t.Fatal(err)
	}
	told := make(map[string]Entry)
	for e, err := range in.History(context.Background(), "") {
		if err != nil {
			c.fail("history: %v", err)
			return
		}
		if e.Outcome == Skipped {
			continue
		}
		key := fmt.Sprintf("%s#%d", e.RunID, e.Attempt)
		if _, ok := told[key]; ok {
			c.fail("%s stands twice in history", key)
		}
		told[key] = e
		started := c.started[key]
		switch e.Outcome {
		case NotStarted:
			if started != nil {
				c.fail("%s has started, history says: %s", key, e.Outcome)
			}
		case Succeeded, Failed, TimedOut:
			switch {
			case started == nil || !started.ended:
				c.fail("%s has not ended, history says: %s", key, e.Outcome)
			case (started.err == nil) != (e.Outcome == Succeeded):
				c.fail("%s ended with %v, history says: %s", key, started.err, e.Outcome)
			}
		}
	}
	for run, attempts := range c.mirror.claims {
		for attempt := range attempts {
			key := fmt.Sprintf("%s#%d", run, attempt)
			_, open := c.mirror.records[bucketRun][run]
			e, ok := told[key]
			if c.lossy {
				continue
			}
			if !ok && (!open || attempt < len(attempts)) {
				c.fail("%s was claimed and is neither open nor in history", key)
			}
			if e.Outcome == Interrupted && c.reruns[e.Job] && !open && attempt == len(attempts) &&
				!strings.Contains(e.Detail+e.Note, "not run again") && !c.mirror.known[run] {
				c.fail("%s is not run again: %+v", key, e)
			}
			if ok && attempt > 1 {
				before := told[fmt.Sprintf("%s#%d", run, attempt-1)]
				if before.Outcome != Interrupted && before.Outcome != NotStarted {
					c.fail("%s follows an attempt that has %s: %+v", key, before.Outcome, e)
				}
			}
		}
	}
	for key := range c.started {
		run, _, _ := strings.Cut(key, "#")
		if c.mirror.claims[run] == nil {
			c.fail("%s was never claimed", key)
		}
	}
}
