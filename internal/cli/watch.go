package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-singleton/singleton/scheduler"
)

// watching is a status that is looked at again and again.
type watching struct {
	app   *app
	query *asking
	every time.Duration
	whole bool              // as that of a page
	known map[string]string // facts that were printed
	text  string            // the object that was printed last, with --json
}

// watch shows the status until a signal or the end of ctx: on a terminal in place, else what has changed, line by line.
func (a *app) watch(ctx context.Context, q *asking, every time.Duration) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	st, inspector, err := a.inspect(ctx, &q.target, "")
	if err != nil {
		return err
	}
	defer st.leave()
	w := &watching{app: a, query: q, every: every, whole: q.whole(a), known: make(map[string]string)}
	again := time.NewTicker(every)
	defer again.Stop()
	for {
		look, cancel := context.WithTimeout(ctx, readLimit)
		status, err := inspector.Status(look)
		cancel()
		if ctx.Err() != nil {
			return nil
		}
		trouble := ""
		if err != nil {
			trouble = "the store does not answer: " + err.Error()
		}
		if err := w.show(status, trouble); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-again.C:
		}
	}
}

// show prints one look at the group, or the trouble that kept it from looking.
func (w *watching) show(st scheduler.Status, trouble string) error {
	a := w.app
	now := a.now()
	switch {
	case w.query.json && trouble != "":
		return nil // the next one that is answered is printed
	case w.query.json:
		return w.object(st)
	case a.terminal:
		var page bytes.Buffer
		page.WriteString("\x1b[H\x1b[J") // home, and clear what is below
		if trouble != "" {
			fmt.Fprintln(&page, line(trouble))
		} else if err := (&statusPage{Status: st, now: now, zone: w.query.zone(a), whole: w.whole, footer: true}).print(&page); err != nil {
			return err
		}
		_, err := a.stdout.Write(page.Bytes())
		return err
	}
	facts := []fact{{"store", "the store answers"}}
	if trouble != "" {
		facts[0].text = trouble
	} else {
		facts = append(facts, factsOf(st)...)
		facts = append(facts, w.gone(facts)...)
	}
	for _, f := range facts {
		if w.known[f.about] == f.text {
			continue
		}
		first := len(w.known) == 0
		w.known[f.about] = f.text
		if first && f.about == "store" {
			continue
		}
		text := fmt.Sprintf("%s %s", now.In(w.query.zone(a)).Format(time.TimeOnly), line(f.text))
		if _, err := fmt.Fprintln(a.stdout, text); err != nil {
			return err
		}
	}
	return nil
}

// object prints a status as JSON where it differs from the last one by more than the time.
func (w *watching) object(st scheduler.Status) error {
	v := viewStatus(st, w.app.now())
	stable := v
	stable.Time = time.Time{}
	if v.Leader != nil {
		leader := *v.Leader
		leader.Remaining = 0
		stable.Leader = &leader
	}
	text, err := json.Marshal(stable)
	if err != nil || string(text) == w.text {
		return err
	}
	w.text = string(text)
	return w.app.printJSON(v)
}

// fact is something about a group that may change, in words without the time that passes.
type fact struct{ about, text string }

func factsOf(st scheduler.Status) []fact {
	leader := "nobody leads"
	if st.Leader.Replica != "" {
		leader = st.Leader.Replica + " leads"
	}
	names := make([]string, len(st.Replicas))
	for i, r := range st.Replicas {
		names[i] = r.ID
	}
	replicas := "no replicas"
	if len(names) > 0 {
		replicas = many(len(names), "replica", "replicas") + ": " + strings.Join(names, ", ")
	}
	facts := []fact{{"leader", leader}, {"replicas", replicas}}
	for _, j := range st.Jobs {
		about := "job " + j.Name
		facts = append(facts, fact{about, j.Name + ": " + standing(j)})
		if e := j.Last; e != nil {
			facts = append(facts, fact{about + " last", fmt.Sprintf("%s: attempt %d on %s %s", e.RunID, e.Attempt, e.Replica, outcome(*e))})
		}
		if e := j.Skipped; e != nil {
			facts = append(facts, fact{about + " skipped", fmt.Sprintf("%s: %s", j.Name, skipped(*e))})
		}
	}
	for _, e := range st.Running {
		text := fmt.Sprintf("%s: attempt %d waits for its start", e.RunID, e.Attempt)
		if e.Replica != "" {
			text = fmt.Sprintf("%s: attempt %d runs on %s", e.RunID, e.Attempt, e.Replica)
		}
		facts = append(facts, fact{"run " + e.RunID, text})
	}
	return facts
}

// standing says what is to be known of a job whatever its runs do.
func standing(j scheduler.JobStatus) string {
	switch {
	case j.Problem != "":
		return "not scheduled: " + j.Problem
	case !j.Unowned.IsZero():
		return "no leader has it"
	case j.Paused != nil:
		return paused(*j.Paused, time.UTC)
	case !j.Overdue.IsZero():
		return "overdue since " + j.Overdue.Format(time.RFC3339)
	}
	return "scheduled"
}

// gone forgets what is not said any more, and says so of jobs.
func (w *watching) gone(facts []fact) (more []fact) {
	var abouts []string
	for about := range w.known {
		abouts = append(abouts, about)
	}
	slices.Sort(abouts)
	for _, about := range abouts {
		if slices.ContainsFunc(facts, func(f fact) bool { return f.about == about }) {
			continue
		}
		name, isJob := strings.CutPrefix(about, "job ")
		if isJob && !strings.Contains(name, " ") && w.known[about] != name+": gone" {
			more = append(more, fact{about, name + ": gone"})
		} else if !isJob || strings.Contains(name, " ") {
			delete(w.known, about)
		} else {
			more = append(more, fact{about, w.known[about]})
		}
	}
	return more
}

// paused says why a job is paused, and until when.
func paused(p scheduler.Pause, zone *time.Location) string {
	text := "paused"
	if p.Author != "" {
		text += " by " + p.Author
	}
	if !p.Until.IsZero() {
		text += " until " + p.Until.In(zone).Format("2 Jan 15:04:05")
	}
	if p.Reason != "" {
		text += ": " + p.Reason
	}
	return text
}
