package scheduler

import (
	"cmp"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// report is the end of a run that the ledger may not know yet.
type report struct {
	entry   Entry
	message string    // ID of the message that tells it, drawn for the first post: the same each time, so that it counts once
	posted  time.Time // when it was put into the inbox; zero before
	release func()    // lets the session go; called once the end is in the store
}

func (r *report) key() claimKey {
	return claimKey{run: r.entry.RunID, token: r.entry.Token, number: r.entry.Number}
}

// finish turns an active run into a report.
func (r *runner) finish(key claimKey, entry Entry) {
	r.mu.Lock()
	a := r.active[key]
	delete(r.active, key)
	if !r.gaveUp {
		r.ended[key] = &report{entry: entry, release: a.release}
	}
	r.mu.Unlock()
	r.ring() // before the log, which may block
	level := slog.LevelInfo
	if entry.Outcome != Succeeded {
		level = slog.LevelWarn
	}
	log := r.log.With("run", entry.RunID, "job", entry.Job, "tick", entry.Tick, "attempt", entry.Attempt)
	if entry.Detail != "" {
		log = log.With("error", firstLine(entry.Detail))
	}
	log.Log(r.base, level, "run ended", "outcome", string(entry.Outcome), "took", entry.Ended.Sub(entry.Started))
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// refuse reports that a claim was never started, and makes sure that it never will be.
func (r *runner) refuse(rec runRecord, release func()) {
	entry := entryOf(&rec)
	entry.Ended = r.world.Wall().UTC()
	entry.Outcome = NotStarted
	r.mu.Lock()
	_, known := r.ended[rec.claim()]
	if known = known || r.gaveUp; !known {
		r.ended[rec.claim()] = &report{entry: entry, release: release}
	}
	r.mu.Unlock()
	if known {
		release()
	}
	r.ring()
}

func entryOf(rec *runRecord) Entry {
	return Entry{
		RunID:    rec.id(),
		Job:      rec.Job,
		Tick:     rec.tick(),
		LastTick: rec.tick(),
		Ticks:    1,
		Attempt:  rec.Attempt,
		Reason:   rec.Reason,
		Token:    rec.Token,
		Number:   rec.Number,
		Replica:  rec.Replica,
		Request:  rec.Request,
		Author:   rec.Author,
	}
}

// reports returns the ends that the ledger may not know, in a stable order.
func (r *runner) reports() []*report {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*report, 0, len(r.ended))
	for _, rep := range r.ended {
		all = append(all, rep)
	}
	slices.SortFunc(all, func(a, b *report) int {
		return cmp.Or(strings.Compare(a.entry.RunID, b.entry.RunID), cmp.Compare(a.entry.Attempt, b.entry.Attempt))
	})
	return all
}

// posted notes that an end lies in the inbox; the session may go.
func (r *runner) posted(rep *report) {
	r.mu.Lock()
	release := rep.release
	rep.posted, rep.release = time.Now(), func() {}
	r.mu.Unlock()
	release()
}

// settle forgets an end that the ledger has.
func (r *runner) settle(key claimKey) {
	release := func() {}
	r.mu.Lock()
	if rep := r.ended[key]; rep != nil {
		release = rep.release
		delete(r.ended, key)
		if len(r.past) == keepPast {
			r.past = slices.Delete(r.past, 0, keepPast/2)
		}
		r.past = append(r.past, &report{entry: rep.entry, release: func() {}})
	}
	r.mu.Unlock()
	release()
}

// keepPast is how many settled ends a replica remembers.
const keepPast = 1000

// again makes a settled end one to be told, because the ledger has lost it; false when there is none.
func (r *runner) again(key claimKey) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.past, func(rep *report) bool { return rep.key() == key })
	if i < 0 || r.gaveUp {
		return false
	}
	r.ended[key] = r.past[i]
	r.past = slices.Delete(r.past, i, i+1)
	r.ring()
	return true
}

// untold returns how many ends are not in the store.
func (r *runner) untold() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, rep := range r.ended {
		if rep.posted.IsZero() {
			n++
		}
	}
	return n
}
