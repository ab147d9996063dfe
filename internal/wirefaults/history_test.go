package wirefaults

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/scheduler"
)

// jobs are due at every second: their due ticks are all seconds.
const (
	catching = "catching"
	skipping = "skipping"
)

var jobs = []scheduler.Job{
	{Name: catching, Spec: "* * * * * *", CatchUp: scheduler.CatchUpAll, CatchUpMax: 10_000, OnInterrupt: scheduler.InterruptRerun},
	{Name: skipping, Spec: "* * * * * *"},
}

// account is what a ledger says of one job.
type account struct {
	attempts  map[int64][]scheduler.Entry // by tick, in Unix seconds
	skips     map[int64][]scheduler.Entry
	open      map[int64]int // the attempt that is open
	watermark int64
}

// read reads a job's records out of the server, in no time at all: the root does it while everything else rests.
func (s *scene) read(job string) account {
	a := account{attempts: map[int64][]scheduler.Entry{}, skips: map[int64][]scheduler.Entry{}, open: map[int64]int{}}
	parse := func(text string, into any) {
		if err := json.Unmarshal([]byte(text), into); err != nil {
			s.fail("a record of %s cannot be read: %v: %q", job, err, text)
		}
	}
	var known struct {
		Watermark int64 `json:"watermark"`
	}
	parse(s.server.HGet(bucketKey+"job", job), &known)
	a.watermark = known.Watermark
	runs, _ := s.server.HKeys(bucketKey + "run")
	for _, id := range runs {
		if owner, at, _ := strings.Cut(id, "@"); owner == job {
			tick, err := time.Parse(time.RFC3339, at)
			if err != nil {
				s.fail("a run is called %s", id)
				continue
			}
			var record claimed
			parse(s.server.HGet(bucketKey+"run", id), &record)
			a.open[tick.Unix()] = record.Attempt
		}
	}
	slots, _ := s.server.HKeys(bucketKey + "history/" + job)
	for _, slot := range slots {
		var e scheduler.Entry
		parse(s.server.HGet(bucketKey+"history/"+job, slot), &e)
		if e.Outcome != scheduler.Skipped {
			a.attempts[e.Tick.Unix()] = append(a.attempts[e.Tick.Unix()], e)
			continue
		}
		if from, to := e.Tick.Unix(), e.LastTick.Unix(); to-from+1 != int64(e.Ticks) {
			s.fail("%s skips %d ticks from %v to %v", job, e.Ticks, e.Tick, e.LastTick)
		}
		for tick := e.Tick.Unix(); tick <= e.LastTick.Unix(); tick++ {
			a.skips[tick] = append(a.skips[tick], e)
		}
	}
	return a
}

// snapshot reads all jobs before the server loses its data.
func (s *scene) snapshot() {
	for _, j := range jobs {
		s.before[j.Name] = append(s.before[j.Name], s.read(j.Name))
	}
}

// reckon compares the history of all seconds with what was seen.
func (s *scene) reckon() {
	for _, j := range jobs {
		last := s.read(j.Name)
		if late := time.Now().Unix() - last.watermark; late > 3 {
			s.fail("%s is %d s behind", j.Name, late)
		}
		books := append(slices.Clone(s.before[j.Name]), last)
		for i, book := range books {
			s.audit(j.Name, book, i > 0)
		}
		for tick := s.first.Unix(); tick <= last.watermark; tick++ {
			if !slices.ContainsFunc(books, func(a account) bool {
				return len(a.attempts[tick])+len(a.skips[tick])+a.open[tick] > 0
			}) {
				s.fail("%s at %s is nowhere in the history", j.Name, time.Unix(tick, 0).UTC().Format(time.TimeOnly))
			}
		}
	}
	s.told()
}

// audit checks what one ledger says of each tick. In one that was made after a loss the ticks before it may be restored.
func (s *scene) audit(job string, a account, restored bool) {
	var token uint64
	for tick := s.first.Unix(); tick <= a.watermark; tick++ {
		at := time.Unix(tick, 0).UTC().Format(time.TimeOnly)
		entries, skips := a.attempts[tick], a.skips[tick]
		slices.SortFunc(entries, func(x, y scheduler.Entry) int { return x.Attempt - y.Attempt })
		if len(skips) > 1 || len(skips) == 1 && len(entries)+a.open[tick] > 0 && skips[0].Detail != "restored" {
			s.fail("%s at %s is accounted for twice: %+v %+v", job, at, entries, skips)
		}
		if len(skips) == 1 && !slices.Contains([]string{"overlap", "late", "restored"}, skips[0].Detail) {
			s.fail("%s at %s is skipped for no good reason: %+v", job, at, skips[0])
		}
		if len(skips) == 1 && job == catching && skips[0].Detail != "restored" {
			s.fail("%s at %s is skipped: %+v", job, at, skips[0])
		}
		for i, e := range entries {
			if i == 0 && e.Attempt != 1 && !restored || i > 0 && e.Attempt != entries[i-1].Attempt+1 {
				s.fail("%s at %s has the wrong attempts: %+v", job, at, entries)
			}
			if i > 0 {
				if before := entries[i-1].Outcome; before != scheduler.Interrupted && before != scheduler.NotStarted {
					s.fail("%s at %s has another attempt after it has %s", job, at, before)
				}
			}
		}
		first := slices.Concat(entries[:min(1, len(entries))], skips)
		for _, e := range first { // claims and skips are made in the order of the ticks
			if e.Attempt > 1 || e.Detail == "restored" {
				continue
			}
			if e.Token < token {
				s.fail("%s at %s was dealt with by the term %d; an earlier tick by %d", job, at, e.Token, token)
			}
			token = e.Token
		}
	}
}

// told compares what the history says of attempts with what their work knows.
func (s *scene) told() {
	s.mu.Lock()
	defer s.mu.Unlock()
	outcomes := make(map[string]scheduler.Outcome)
	open := make(map[string]bool)
	for _, j := range jobs {
		last := s.read(j.Name)
		for tick, number := range last.open {
			open[attempt(runOf(j.Name, tick), number)] = true
		}
		for _, book := range append(slices.Clone(s.before[j.Name]), last) {
			for _, entries := range book.attempts {
				for _, e := range entries {
					outcomes[attempt(e.RunID, e.Attempt)] = e.Outcome
				}
			}
		}
	}
	for key, outcome := range outcomes {
		e := s.started[key]
		switch {
		case outcome == scheduler.NotStarted && e != nil:
			s.failed("%s has started; history says %s", key, outcome)
		case outcome == scheduler.Succeeded && (e == nil || !e.ended || e.err != nil),
			outcome == scheduler.Failed && (e == nil || !e.ended || e.err == nil):
			s.failed("%s: history says %s; its work knows %+v", key, outcome, e)
		}
	}
	for key := range s.started {
		if outcomes[key] == "" && !open[key] {
			s.failed("%s has started and is not in the history", key)
		}
	}
}

func runOf(job string, tick int64) string {
	return job + "@" + time.Unix(tick, 0).UTC().Format(time.RFC3339)
}
