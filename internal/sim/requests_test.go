package sim

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// answered judges, some time after all faults, that each request that the store has taken, and has not lost since, has an
// answer.
func (s *scene) answered() {
	for _, id := range slices.Sorted(maps.Keys(s.operator.taken)) {
		if at := s.operator.taken[id]; !s.lost.IsZero() && at.Before(s.lost.Add(time.Minute)) {
			continue
		}
		value, known := s.ledger.records["seen"][id]
		if !known {
			s.fail("request %s has no answer", id)
			continue
		}
		s.seen["answers"]++
		rec, err := decode[seenRecord](value)
		_, refused := strings.CutPrefix(rec.Answer, "refused: ")
		switch {
		case err != nil:
			s.fail("answer to %s: %v", id, err)
		case refused:
			s.seen["refusals"]++
		case rec.Answer == "done" || rec.Answer == "accepted" && s.ledger.open(id):
		default:
			s.fail("the answer to request %s is %q, and its run is not open", id, rec.Answer)
		}
	}
}

// open reports whether the manual run of a request is open.
func (l *ledger) open(request string) bool {
	for id := range l.records["run"] {
		if strings.HasSuffix(id, "+"+request) {
			return true
		}
	}
	return false
}

// once judges that a request has one run at most.
func (c *commit) once(run string) {
	_, request, _ := strings.Cut(run, "+")
	if other, known := c.byRequest[request]; known && other != run {
		c.fail("%s lets request %s run twice: as %s and %s", c.name, request, other, run)
	}
	c.byRequest[request] = run
}

// unpaused judges that a tick may be claimed: neither its job is paused, nor the group.
func (c *commit) unpaused(run string, rec runRecord) {
	due := rec.Tick // at the latest
	for _, b := range c.jobs[rec.Job].builds {
		if b.job.Jitter > 0 {
			due = max(due, rec.Tick+b.pattern.every)
		}
	}
	var all []steering
	if job, _, known := c.before(rec.Job); known {
		all = append(all, job.Steering)
	}
	if value, ok := c.records["ledger"]["group"]; ok {
		g, err := decode[groupRecord](value)
		if err != nil {
			c.fail("record of the group: %v", err)
		}
		all = append(all, g.Steering)
	}
	for _, s := range all {
		if s.Paused && (s.Until == 0 || due < s.Until) {
			c.fail("%s claims %s of a job that is paused: %+v", c.name, run, s)
		}
	}
}
