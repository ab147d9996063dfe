package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/scheduler"
	"github.com/go-singleton/singleton/store"
	"github.com/spf13/cobra"
)

// historyFlags are the flags of history.
type historyFlags struct {
	asking
	failed, all bool
	limit       int
	outcomes    []string
	since       string
}

func (a *app) newHistoryCommand() *cobra.Command {
	f := new(historyFlags)
	cmd := &cobra.Command{
		Use:   "history --group NAME [JOB]",
		Short: "Show what became of each tick",
		Long: `Shows how attempts have ended and which ticks were skipped, and why, of one job or of all. What has ended last stands
first, whatever its tick: a long run stands above ticks that came after it. As many entries of each job are kept as cron's
--history says.`,
		Example: `  singleton history --group billing report
  singleton history --group billing --failed --all
  singleton history --group billing --json | jq 'select(.late_seconds > 1)'`,
		Args:              arguments(0, 1, "JOB"),
		ValidArgsFunction: a.completeJobs,
		RunE: func(cmd *cobra.Command, args []string) error {
			job := ""
			if len(args) > 0 {
				job = args[0]
				if store.CheckName("job", job) != nil {
					return usagef("the argument is no job name: use 1 to 128 letters, digits, '.', '_' and '-'")
				}
			}
			return a.history(cmd.Context(), f, job)
		},
	}
	f.register(cmd, "one JSON object a line, for each entry")
	flags := cmd.Flags()
	toggle{&f.failed}.register(flags, "failed", "only attempts that did not succeed")
	f.limit = 50
	flags.Var(number{&f.limit}, "limit", "most entries to print, the newest")
	flags.StringSliceVar(&f.outcomes, "outcome", nil, "only entries with this `OUTCOME`, or one of several divided by commas: "+
		"succeeded, failed, \"timed out\", cancelled, interrupted, \"not started\" or skipped")
	flags.StringVar(&f.since, "since", "", "only what has ended since that `TIME`: 18:00, 2026-12-24T18:00, or with an offset; "+
		"or for so long, such as 36h")
	toggle{&f.all}.register(flags, "all", "print all entries, whatever --limit")
	return cmd
}

func (a *app) history(ctx context.Context, f *historyFlags, job string) error {
	if f.limit < 1 {
		return usagef("--limit %d is less than 1; --all prints all", f.limit)
	}
	filter, err := a.filter(f, job)
	if err != nil {
		return err
	}
	page := historyPage{group: f.group, job: job, now: a.now(), zone: f.zone(a), footer: a.terminal, columns: a.columns}
	err = a.ask(ctx, &f.asking, func(ctx context.Context, i *scheduler.Inspector) error {
		for e, err := range i.Find(ctx, filter) {
			if err != nil {
				return err
			}
			if f.failed && !failed(e) {
				continue
			}
			page.found++
			if f.all || len(page.entries) < f.limit {
				page.entries = append(page.entries, e)
			}
		}
		if page.found > 0 || job != "" {
			return nil
		}
		st, err := i.Status(ctx)
		page.unknown = len(st.Jobs) == 0
		return err
	})
	switch {
	case errors.Is(err, scheduler.ErrUnknownJob):
		return fmt.Errorf("group %s has no job %s; singleton status --group %s lists its jobs", f.group, job, f.group)
	case err != nil && page.found == 0:
		return err
	}
	// What can be read is shown, also when an error at the end says that something could not be.
	return cmp.Or(a.printHistory(&page, f.json), err)
}

// filter says which entries are wanted, of those that --failed leaves.
func (a *app) filter(f *historyFlags, job string) (scheduler.Filter, error) {
	filter := scheduler.Filter{Job: job}
	known := []scheduler.Outcome{scheduler.Succeeded, scheduler.Failed, scheduler.TimedOut, scheduler.Cancelled, scheduler.Interrupted,
		scheduler.NotStarted, scheduler.Skipped}
	for _, text := range f.outcomes {
		o := scheduler.Outcome(strings.ReplaceAll(text, "-", " "))
		if !slices.Contains(known, o) {
			return filter, usagef("--outcome: unknown outcome %.40q; one of succeeded, failed, timed-out, cancelled, interrupted, not-started, skipped", text)
		}
		filter.Outcomes = append(filter.Outcomes, o)
	}
	if f.since == "" {
		return filter, nil
	}
	now := a.now()
	if d, err := time.ParseDuration(f.since); err == nil {
		if d <= 0 {
			return filter, usagef("--since %s: give a duration of more than 0", compact(d))
		}
		filter.Since = now.Add(-d)
		return filter, nil
	}
	since, err := a.instant("since", f.since)
	if err != nil {
		return filter, usagef("%w, nor a duration such as 36h", err)
	}
	if since.After(now) && since.Before(now.Add(24*time.Hour)) { // a time of the day, which is one of the last
		since = since.AddDate(0, 0, -1)
	}
	filter.Since = since
	return filter, nil
}

func (a *app) printHistory(page *historyPage, asJSON bool) error {
	if !asJSON {
		return page.print(a.stdout)
	}
	for _, e := range page.entries {
		if err := a.printJSON(viewEntry(e)); err != nil {
			return err
		}
	}
	return nil
}

// failed reports whether an entry is an attempt that did not succeed.
func failed(e scheduler.Entry) bool {
	return e.Outcome != scheduler.Succeeded && e.Outcome != scheduler.Skipped
}

// historyPage is a history as people read it.
type historyPage struct {
	group   string
	unknown bool   // the group has no jobs
	job     string // empty for all
	entries []scheduler.Entry
	found   int // entries before the limit
	now     time.Time
	zone    *time.Location
	footer  bool // as that of a status
	columns int  // that a line may have; 0 is any number
}

func (p *historyPage) print(w io.Writer) error {
	if p.unknown {
		_, err := fmt.Fprintf(w, "no entries, and no jobs: %s\n", hint(p.group))
		return err
	}
	if len(p.entries) == 0 {
		_, err := fmt.Fprintln(w, "no entries")
		return err
	}
	var t table
	head := []string{"TICK (last ended first)", "ATTEMPT", "WHY", "LATE", "TOOK", "OUTCOME", "REPLICA"}
	if p.footer { // which says it
		head[0] = "TICK"
	}
	t.add(p.row("JOB", head)...)
	width, shown := 0, ""
	for _, e := range p.entries {
		width = max(width, len(day(e.Tick.In(p.zone), p.now)))
	}
	for _, e := range p.entries {
		cells, date := p.cells(e), day(e.Tick.In(p.zone), p.now)
		if date == shown {
			date = ""
		} else {
			shown = date
		}
		cells[0] = fmt.Sprintf("%-*s %s", width, date, cells[0])
		t.add(p.row(e.Job, cells)...)
	}
	p.fit(&t)
	if err := t.print(w); err != nil || !p.footer {
		return err
	}
	_, err := fmt.Fprintf(w, "%d of %s, last ended first; --all, --failed\n%s\n", len(p.entries), many(p.found, "entry", "entries"),
		footer(p.zone, "--json"))
	return err
}

// fit makes lines as short as they have to be. What is cut off, or left out, --json has.
func (p *historyPage) fit(t *table) {
	if p.columns == 0 {
		return
	}
	tick, outcome := 0, 5
	if p.job == "" {
		outcome++
	}
	replica := outcome + 1
	var whole table
	for _, row := range t.rows {
		whole.rows = append(whole.rows, slices.Clone(row))
	}
	if t.fit(p.columns, limit{outcome, 40}, limit{tick, 20}, limit{outcome, 16}) {
		return
	}
	*t = whole
	t.drop(replica)
	t.fit(p.columns, limit{tick, 20}, limit{1, 8}) // the job, or the attempt, which is shorter
}

// row puts the job after the tick where the page is about all jobs.
func (p *historyPage) row(job string, cells []string) []string {
	if p.job != "" {
		return cells
	}
	return append([]string{cells[0], job}, cells[1:]...)
}

// cells returns an entry without its day and job.
func (p *historyPage) cells(e scheduler.Entry) []string {
	first, last := e.Tick.In(p.zone), e.LastTick.In(p.zone)
	if e.Outcome == scheduler.Skipped {
		tick := first.Format(time.TimeOnly)
		switch {
		case last.Equal(first):
		case first.Format(time.DateOnly) == last.Format(time.DateOnly):
			tick += "–" + last.Format(time.TimeOnly)
		default:
			tick += "–" + day(last, p.now) + " " + last.Format(time.TimeOnly)
		}
		return []string{tick, "-", "-", "", "", shorten(skipped(e), 50), ""}
	}
	lateness, length := "", ""
	if d, ok := late(e); ok {
		lateness = fine(d)
	}
	if d, ok := took(e); ok {
		length = fine(d)
	}
	return []string{
		first.Format(time.TimeOnly), fmt.Sprint(e.Attempt), string(e.Reason), lateness, length, shorten(outcome(e), 60), e.Replica,
	}
}

// outcome says how an attempt ended, and why.
func outcome(e scheduler.Entry) string {
	text := string(e.Outcome)
	switch {
	case strings.HasPrefix(e.Detail, text): // "timed out after 10 m; ..."
		text = shorten(e.Detail, 60)
	case e.Detail != "":
		text += ": " + shorten(e.Detail, 60)
	}
	if e.Note != "" {
		text += " (" + shorten(e.Note, 50) + ")"
	}
	return text
}
