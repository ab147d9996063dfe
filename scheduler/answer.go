package scheduler

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-singleton/singleton/election"
	"github.com/go-singleton/singleton/store"
)

// Answers to messages; a refusal says why after the word.
const (
	answerDone     = "done"
	answerAccepted = "accepted" // of a trigger whose run has not ended
	answerRefused  = "refused: "
)

// seenRecord is a message that has been acted on.
type seenRecord struct {
	Version int    `json:"v"`
	At      int64  `json:"at"`             // Unix seconds, the store's clock
	Verb    verb   `json:"verb,omitempty"` // of a request
	Answer  string `json:"answer,omitempty"`
	Run     *Entry `json:"run,omitempty"` // of a trigger: the run that was accepted, or the last attempt of one that has ended
}

// decodeSeen reads what became of a message; a store's data may come from anywhere.
func decodeSeen(value []byte) (*seenRecord, error) {
	r := new(seenRecord)
	if err := decode(value, r); err != nil {
		return nil, err
	}
	r.Answer = clip(r.Answer, maxDetail)
	if r.Run == nil {
		return r, nil
	}
	if err := r.Run.check(r.Run.Job); err != nil {
		return nil, err
	}
	r.Run.shorten()
	return r, nil
}

// final reports whether nothing more is to come.
func (r *seenRecord) final() bool { return r.Answer != answerAccepted }

// reply is what the record says to who has asked.
func (r *seenRecord) reply() (Entry, error) {
	var e Entry
	if r.Run != nil {
		e = *r.Run
	}
	if why, refused := strings.CutPrefix(r.Answer, answerRefused); refused {
		return e, fmt.Errorf("%w: %s", ErrRefused, why)
	}
	return e, nil
}

// note keeps that a message was acted on, in the commit that does so.
func (b *book) note(id string, rec seenRecord) {
	rec.Version, rec.At = formatVersion, b.term.StoreTime().Unix()
	b.seen[id] = rec.At
	b.put(bucketSeen, id, rec)
}

// answerRun tells who has asked for a manual run how it has ended.
func (b *book) answerRun(rec *runRecord) {
	answer := seenRecord{Verb: verbTrigger, Answer: answerDone, Run: rec.Last}
	if rec.Last == nil { // nobody can have recorded it
		answer.Answer = answerRefused + "its job was forgotten, or the record of it cannot be read"
	}
	b.note(rec.Request, answer)
}

// asked is a request in the inbox.
type asked struct {
	id    string
	order *order
}

// answer acts on the requests that were read from the inbox, in the order of their IDs. A message leaves the inbox in the
// commit that acts on it, so that none is lost and none counts twice.
func (l *leader) answer() error {
	b := l.book
	todo := l.requests
	l.requests = nil
	for _, a := range todo {
		if err := b.step(); err != nil {
			return err
		}
		if _, known := b.seen[a.id]; known {
			b.delete(store.InboxBucket, a.id)
			continue
		}
		answer := seenRecord{Verb: a.order.Verb, Answer: answerDone}
		log := b.log.With("request", string(a.order.Verb), "id", a.id, "author", a.order.Author)
		if a.order.Job != "" {
			log = log.With("job", a.order.Job)
		}
		s := l.standing(a.order)
		why := a.order.refusal(s)
		if why == "" {
			if why = a.order.vain(s); why != "" {
				l.outdate(s.job, a.order)
			}
		}
		if why != "" {
			answer.Answer = clip(answerRefused+why, maxDetail)
			log.Warn("request refused", "reason", why)
		} else {
			if err := l.obey(a, &answer); err != nil {
				return err
			}
			log.Info("request accepted")
		}
		b.delete(store.InboxBucket, a.id)
		b.note(a.id, answer)
	}
	return b.flush()
}

// standing gathers what decides on an order.
func (l *leader) standing(o *order) standing {
	b := l.book
	s := standing{now: l.at, store: l.term.StoreTime(), group: &b.pause, run: b.runs[o.Run]}
	if o.Job == "" {
		return s
	}
	s.job = b.jobs[o.Job]
	// Where manual runs may wait or overlap there can be thousands, and they decide on nothing.
	if j := s.job; o.Verb == verbForget || j != nil && j.def != nil && j.def.Overlap == OverlapSkip {
		s.runs = b.openRuns(o.Job)
	}
	return s
}

// obey does what was asked for. What it leaves in the batch is committed with the answer; what does not fit into one commit
// comes before it, and is done again by the next leader where this one dies in between.
func (l *leader) obey(a asked, answer *seenRecord) error {
	b, o, now := l.book, a.order, l.at
	j := b.jobs[o.Job]
	switch o.Verb {
	case verbTrigger:
		if j.def.Overlap == OverlapReplace {
			if err := l.replace(l.term.Context(), j, l.tickOf(o), now); err != nil {
				return err
			}
		}
		answer.Answer, answer.Run = answerAccepted, l.accept(j, a)
	case verbPause:
		l.steer(j, o)
	case verbResume:
		return l.resume(j, o)
	case verbCancel:
		rec := b.runs[o.Run]
		return l.cancelRun(l.term.Context(), b.jobs[rec.Job], rec, cancelMark{Cause: causeCancelled, By: o.Author}, now)
	case verbForget:
		return l.forget(j)
	case verbReset:
		l.pass(j, now, skipReset, now)
		l.revisit(j)
	case verbResign:
		b.batch.hooks = append(b.batch.hooks, hook{done: func() { resign(l.scheduler.elector) }, failed: func() {}})
	}
	return nil
}

// tickOf returns the instant that a trigger is as of.
func (l *leader) tickOf(o *order) time.Time {
	if o.Tick == 0 {
		return l.at.Truncate(time.Second)
	}
	return time.Unix(o.Tick, 0).UTC()
}

// accept lets a manual run wait for its start; it is open from now on. It returns what is known of it.
func (l *leader) accept(j *jobState, a asked) *Entry {
	b := l.book
	rec := &runRecord{
		Version: formatVersion,
		Job:     j.name,
		Tick:    l.tickOf(a.order).Unix(),
		Attempt: 1,
		Reason:  ReasonManual,
		Request: a.id,
		Author:  a.order.Author,
		Asked:   l.at.Unix(),
	}
	b.runs[rec.id()] = rec
	j.open++
	b.put(bucketRun, rec.id(), rec)
	e := entryOf(rec)
	return &e
}

// resume ends a pause: what has fallen due until now is passed over.
func (l *leader) resume(j *jobState, o *order) error {
	if j != nil {
		l.pass(j, l.at, skipPaused, l.at)
		l.steer(j, o)
		return nil
	}
	for _, j := range l.book.sorted() {
		if err := l.book.step(); err != nil {
			return err
		}
		l.pass(j, l.at, skipPaused, l.at)
	}
	if err := l.book.step(); err != nil {
		return err
	}
	l.steer(nil, o)
	return nil
}

// forget drops a job with all that is known of it. One that this binary has, with a record that cannot be read, starts anew.
func (l *leader) forget(j *jobState) error {
	if err := l.drop(j); err != nil {
		return err
	}
	if j.def != nil {
		l.adopted = 0
		l.scheduler.ring()
	}
	return nil
}

// resign ends the term, once the answer is in the store. It does not wait for that end, which waits for the loop.
func resign(e *election.Elector) {
	over, cancel := context.WithCancel(context.Background())
	cancel()
	_ = e.Resign(over)
}
