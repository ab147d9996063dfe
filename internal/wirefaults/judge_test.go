package wirefaults

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/scheduler"
)

// The group, and where its data are.
const (
	group       = "g"
	leaseKey    = "singleton:{g}:lease"
	fenceKey    = "singleton:{g}:fence"
	sessionsKey = "singleton:{g}:sessions"
	bucketKey   = "singleton:{g}:r:"
)

// forgetful is how long after a loss of data two may lead, and runs go on whose sessions are gone: until renewals are
// answered, or given up.
const forgetful = lease + time.Second

// term is one that a process was told of.
type term struct {
	*election.Term
	process *process
}

func (t term) valid() bool { return !t.process.killed() && t.Valid() }

// elected notes a term.
func (s *scene) elected(p *process, t *election.Term) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.terms {
		if other.Token() >= t.Token() {
			s.failed("%s has the token %d; %s had %d before", p.name, t.Token(), other.process.name, other.Token())
		}
	}
	s.terms = append(s.terms, term{t, p})
	s.single()
}

// single checks that at most one term is valid; mu is held.
func (s *scene) single() {
	if s.forgot() {
		return
	}
	var valid []string
	for _, t := range s.terms[max(0, len(s.terms)-8):] {
		if t.valid() {
			valid = append(valid, fmt.Sprint(t.process.name, " ", t.Token()))
		}
	}
	if len(valid) > 1 {
		s.failed("several terms are valid: %v", valid)
	}
}

func (s *scene) forgot() bool { return !s.lost.IsZero() && time.Since(s.lost) < forgetful }

// look compares what the processes believe with what the server holds; only the root looks, when all else has come to rest.
func (s *scene) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looks++
	s.single()
	if fence, err := strconv.ParseUint(s.server.HGet(fenceKey, "token"), 10, 64); err == nil {
		if fence < s.fence {
			s.failed("the token in the server fell from %d to %d", s.fence, fence)
		}
		s.fence = fence
	}
	if s.forgot() {
		return
	}
	if t, ok := s.valid(); ok {
		value, _ := s.server.Get(leaseKey)
		if owner, _, _ := strings.Cut(value, " "); owner != strconv.FormatUint(t.Token(), 10) {
			s.failed("%s believes in its term %d; the lease in the server is %q", t.process.name, t.Token(), value)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.active)) {
		e := s.active[key]
		if end, err := s.server.ZScore(sessionsKey, e.run.Replica); err == nil && int64(end) >= time.Now().UnixMilli() {
			continue
		}
		if e.run.Valid() || e.ctx.Err() == nil {
			s.failed("%s on %s goes on; its session %s is over", key, e.process.name, e.run.Replica)
		}
	}
}

// valid returns the term that is valid; mu is held.
func (s *scene) valid() (term, bool) {
	for _, t := range slices.Backward(s.terms) {
		if t.valid() {
			return t, true
		}
	}
	return term{}, false
}

func name(r scheduler.Run) string { return attempt(r.ID(), r.Attempt) }

func attempt(run string, number int) string { return fmt.Sprintf("%s#%d", run, number) }

// claimed is the part of an open run's record that the judge reads.
type claimed struct {
	Attempt int    `json:"attempt"`
	Replica string `json:"replica"`
}

// enter notes the start of a run and checks that it may start.
func (s *scene) enter(e *execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := name(e.run)
	if old := s.started[key]; old != nil {
		s.failed("%s starts on %s and has started on %s", key, e.process.name, old.process.name)
	}
	var record claimed
	value := s.server.HGet(bucketKey+"run", e.run.ID())
	err := json.Unmarshal([]byte(value), &record)
	if !s.forgot() && (err != nil || record.Attempt != e.run.Attempt || record.Replica != e.run.Replica) {
		s.failed("%s starts on %s without its claim: %q", key, e.run.Replica, value)
	}
	if e.run.Job == skipping {
		for other, a := range s.active {
			given := errors.Is(context.Cause(a.ctx), scheduler.ErrStopping) // up, by a replica whose grace is over
			if a.run.Job == skipping && a.run.Valid() && !given && !s.forgot() {
				s.failed("%s starts on %s while %s goes on", key, e.process.name, other)
			}
		}
	}
	if time.Now().Before(e.run.Tick) {
		s.failed("%s starts too early", key)
	}
	s.started[key], s.active[key] = e, e
}

func (s *scene) leave(e *execution, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.ended, e.err = true, err
	delete(s.active, name(e.run))
}
