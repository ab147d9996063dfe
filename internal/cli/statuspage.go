package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/schedule"
	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
)

// statusPage is a status as people read it.
type statusPage struct {
	scheduler.Status
	now    time.Time
	zone   *time.Location
	whole  bool // how much is left of a lease is not known: it may be all of it
	footer bool // say what the times are, and what else there is: for people only
}

func (p *statusPage) print(w io.Writer) error {
	var head strings.Builder
	fmt.Fprintln(&head, line(p.leader()))
	fmt.Fprintln(&head, line(p.replicas()))
	if len(p.Jobs) == 0 {
		fmt.Fprintln(&head, "no jobs are known yet")
		_, err := io.WriteString(w, head.String())
		return err
	}
	fmt.Fprintf(&head, "%s\n\n", p.attention())
	if _, err := io.WriteString(w, head.String()); err != nil {
		return err
	}
	var t table
	t.add("JOB", "SCHEDULE", "NEXT", "LAST", "STATE")
	for _, j := range p.Jobs {
		t.add(j.Name, p.schedule(j), p.next(j), p.last(j), shorten(p.state(j), 60))
	}
	if err := t.print(w); err != nil || !p.footer {
		return err
	}
	_, err := fmt.Fprintln(w, footer(p.zone, "--json"))
	return err
}

// leaderless reports whether nobody leads and nobody has to: all jobs are those of `singleton once`.
func leaderless(st scheduler.Status) bool {
	scheduled := func(j scheduler.JobStatus) bool { return !j.Once }
	return st.Leader.Replica == "" && len(st.Jobs) > 0 && !slices.ContainsFunc(st.Jobs, scheduled)
}

func (p *statusPage) leader() string {
	l := p.Leader
	switch {
	case leaderless(p.Status):
		return p.Group + ": needs no leader, because singleton once starts its jobs"
	case l.Replica == "":
		return p.Group + ": NO LEADER"
	case p.whole:
		return fmt.Sprintf("%s: %s leads; at most %s left", p.Group, l.Replica, fine(l.Remaining))
	}
	renewed := ""
	if ago := p.Lease - l.Remaining; p.Lease > 0 && ago >= 0 {
		renewed = fmt.Sprintf("lease renewed %s ago, ", fine(ago))
	}
	return fmt.Sprintf("%s: %s leads; %s%s left", p.Group, l.Replica, renewed, fine(l.Remaining))
}

func (p *statusPage) replicas() string {
	names := make([]string, len(p.Replicas))
	for i, r := range p.Replicas {
		names[i] = r.ID
	}
	switch {
	case len(names) > 0:
		return many(len(names), "replica", "replicas") + ": " + strings.Join(names, ", ")
	case leaderless(p.Status):
		return "no replicas: nothing runs now"
	}
	return "no replicas: " + hint(p.Group)
}

// hint says what to do about a group of which nothing is known.
func hint(group string) string {
	return "start its replicas, such as singleton cron --group " + group + ", or look whether the name is right"
}

func (p *statusPage) attention() string {
	n := 0
	for _, j := range p.Jobs {
		if needsAttention(p.Status, j) {
			n++
		}
	}
	text, them := many(len(p.Jobs), "job", "jobs"), "them"
	if len(p.Jobs) == 1 {
		them = "it"
	}
	switch n {
	case 0:
	case 1:
		text = "1 of " + text + " needs attention"
	default:
		text = fmt.Sprintf("%d of %s need attention", n, text)
	}
	switch {
	case p.Leader.Replica == "" && !leaderless(p.Status):
		text += "; nobody fires " + them
	case n == 0:
		text += ", all is well"
	}
	return text
}

// needsAttention reports whether a person should look at a job. A run that was cancelled has been looked at, or was replaced
// as its job says; one that has another attempt has not failed yet.
func needsAttention(st scheduler.Status, j scheduler.JobStatus) bool {
	if j.Problem != "" || !j.Unowned.IsZero() || !j.Overdue.IsZero() {
		return true
	}
	return j.Last != nil && j.Last.Outcome != scheduler.Succeeded && j.Last.Outcome != scheduler.Cancelled &&
		!slices.ContainsFunc(st.Running, func(e scheduler.Entry) bool { return e.RunID == j.Last.RunID })
}

// describe says a schedule in words, and whether it could: foreign schedules have only their label.
func describe(spec, zone string) (words string, known bool) {
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return spec, false
	}
	for _, seconds := range []bool{false, true} {
		if e, err := schedule.Parse(spec, schedule.Options{Seconds: seconds, Zone: loc}); err == nil {
			return e.Describe(), true
		}
	}
	return spec, false
}

// schedule says when a job runs. Where that depends on its zone and the page has another one, it names it.
func (p *statusPage) schedule(j scheduler.JobStatus) string {
	words, known := describe(j.Spec, j.Zone)
	loc, err := time.LoadLocation(j.Zone)
	if !known || err != nil || sameZone(loc, p.zone, p.now) || !strings.ContainsAny(words, ":,") {
		return shorten(words, 48)
	}
	return fmt.Sprintf("%s (%s)", shorten(words, 48), j.Zone)
}

// sameZone reports whether two zones show the same time, now and in half a year.
func sameZone(a, b *time.Location, now time.Time) bool {
	for _, t := range []time.Time{now, now.AddDate(0, 6, 0)} {
		_, x := t.In(a).Zone()
		_, y := t.In(b).Zone()
		if x != y {
			return false
		}
	}
	return true
}

func (p *statusPage) next(j scheduler.JobStatus) string {
	switch in := j.Next.Sub(p.now); {
	case j.Next.IsZero() || !j.Unowned.IsZero() || p.Leader.Replica == "":
		return "-"
	case in > 24*time.Hour:
		return j.Next.In(p.zone).Format("Mon 2 Jan 15:04")
	case in < time.Second:
		return "now"
	default:
		return "in " + humane(in)
	}
}

// open returns the newest open run of a job, and how many there are.
func (p *statusPage) open(job string) (newest *scheduler.Entry, n int) {
	for i, e := range p.Running {
		if e.Job == job {
			n++
			newest = &p.Running[i]
		}
	}
	return newest, n
}

// clock says a time, and its day where that is not today.
func (p *statusPage) clock(t time.Time) string {
	t = t.In(p.zone)
	if d := day(t, p.now); d != "today" {
		return d + " " + t.Format(time.TimeOnly)
	}
	return t.Format(time.TimeOnly)
}

// alive reports whether a replica takes part: of one that does not, nothing runs any more.
func alive(replicas []store.Replica, id string) bool {
	return slices.ContainsFunc(replicas, func(r store.Replica) bool { return r.ID == id })
}

func (p *statusPage) last(j scheduler.JobStatus) string {
	if e, _ := p.open(j.Name); e != nil {
		if e.Replica == "" {
			return fmt.Sprintf("attempt %d is about to start", e.Attempt)
		}
		if !alive(p.Replicas, e.Replica) {
			return fmt.Sprintf("open on %s, which is gone", e.Replica)
		}
		return fmt.Sprintf("running for %s on %s", humane(p.now.Sub(e.Started)), e.Replica)
	}
	if j.Last == nil {
		return "-"
	}
	text := fmt.Sprintf("%s %s ago", j.Last.Outcome, humane(p.now.Sub(j.Last.Ended)))
	if d, ok := took(*j.Last); ok && j.Last.Outcome == scheduler.Succeeded {
		text += ", " + fine(d)
	}
	return text
}

func (p *statusPage) state(j scheduler.JobStatus) string {
	switch {
	case j.Problem != "":
		return "not scheduled: " + j.Problem
	case !j.Unowned.IsZero():
		return fmt.Sprintf("no leader has it, for %s", humane(p.now.Sub(j.Unowned)))
	}
	if j.Paused != nil {
		return paused(*j.Paused, p.zone)
	}
	if e, n := p.open(j.Name); n > 1 {
		return fmt.Sprintf("%d runs are open", n)
	} else if n == 1 {
		switch {
		case e.Replica != "" && !alive(p.Replicas, e.Replica):
			if p.Leader.Replica == "" {
				return "the next leader records how it ended"
			}
			return "the leader records how it ended"
		case e.Attempt > 1:
			return fmt.Sprintf("attempt %d", e.Attempt)
		}
		return ""
	}
	var parts []string
	if !j.Overdue.IsZero() {
		parts = append(parts, "overdue since "+p.clock(j.Overdue))
	}
	if l := j.Last; l != nil && l.Outcome != scheduler.Succeeded {
		if l.Detail != "" {
			parts = append(parts, shorten(l.Detail, 40))
		}
		if l.Attempt > 1 {
			parts = append(parts, fmt.Sprintf("attempt %d", l.Attempt))
		}
	}
	if s := j.Skipped; s != nil {
		parts = append(parts, fmt.Sprintf("then %s", skipped(*s)))
	}
	return strings.Join(parts, ", ")
}
