package demo

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-singleton/singleton/scheduler"
)

// ran is a line that the job has written.
type ran struct {
	tick int64
	who  string
	at   time.Time // when it was seen
}

func (r ran) due() time.Time      { return time.Unix(r.tick, 0) }
func (r ran) late() time.Duration { return max(0, r.at.Sub(r.due())) }

// lines reads the file that the job writes.
type lines struct {
	file   string
	offset int64
	count  map[int64]int
	until  int64 // the last tick that is expected
}

// read returns the whole lines that have come since.
func (l *lines) read(now time.Time) ([]ran, error) {
	if l.count == nil {
		l.count = make(map[int64]int)
	}
	f, err := os.Open(l.file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return nil, err
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	l.offset += int64(len(data))
	var fresh []ran
	for line := range strings.Lines(string(data)) {
		r := ran{at: now}
		if _, err := fmt.Sscanf(line, "%d %s\n", &r.tick, &r.who); err != nil {
			return nil, fmt.Errorf("line %q of the job cannot be read: %w", line, err)
		}
		r.who = r.who[:max(0, strings.LastIndexByte(r.who, '-'))]
		l.count[r.tick]++
		fresh = append(fresh, r)
	}
	return fresh, nil
}

// tally is what became of each tick; ticks are named by their number, from 1.
type tally struct{ once, lost, doubled, rerun []string }

// count judges the ticks from first to until, or to the last one that has run: each must have been run once. One of which
// the history shows an interrupted attempt may have been run again.
func count(first, until int64, runs map[int64]int, interrupted map[int64]bool) tally {
	for tick := range runs {
		until = max(until, tick)
	}
	var t tally
	for tick := first; tick <= until; tick++ {
		to := &t.once
		switch n := runs[tick]; {
		case n == 0:
			to = &t.lost
		case n > 1 && interrupted[tick]:
			to = &t.rerun
		case n > 1:
			to = &t.doubled
		}
		*to = append(*to, fmt.Sprint(tick-first+1))
	}
	return t
}

// right reports whether no tick was lost, and none doubled without an interruption.
func (t tally) right() bool { return len(t.lost)+len(t.doubled) == 0 }

func (t tally) print(out io.Writer) {
	twice := len(t.doubled) + len(t.rerun)
	fmt.Fprintf(out, "\n%d ticks: %d ran once, %d doubled, %d lost        counted from the lines the job wrote, not from the ledger\n",
		len(t.once)+twice+len(t.lost), len(t.once), twice, len(t.lost))
	for _, l := range []struct {
		what  string
		ticks []string
	}{
		{"Lost", t.lost},
		{"Doubled without a reason", t.doubled},
		{"Run again because the first attempt was interrupted, as the history shows", t.rerun},
	} {
		if len(l.ticks) > 0 {
			fmt.Fprintf(out, "%s: %s\n", l.what, strings.Join(l.ticks, " "))
		}
	}
}

// sum counts every tick from the lines, against the schedule, and prints what it finds.
func (s *show) sum() error {
	out := s.cfg.Out
	if s.first == 0 {
		fmt.Fprintln(out, "\nnobody was elected: no tick was due")
		return ErrTicks
	}
	interrupted, err := s.interrupted()
	if err != nil {
		return err
	}
	t := count(s.first, s.lines.until, s.lines.count, interrupted)
	t.print(out)
	var gaps []string
	for _, fault := range []string{killed, froze, left} {
		if g := s.gaps[fault]; len(g) > 0 {
			gaps = append(gaps, fmt.Sprintf("%s %s", fault, brief(slices.Max(g))))
		}
	}
	if len(gaps) > 0 {
		fmt.Fprintf(out, "Without a leader, at most: %s. A shorter --lease shortens the waiting after a crash.\n", strings.Join(gaps, ", "))
	}
	if s.cfg.Store == "" {
		fmt.Fprintln(out, "Try it on your own Redis: singleton demo --store redis://…")
	}
	if !t.right() {
		return ErrTicks
	}
	return nil
}

// interrupted returns the ticks of which the history shows an interrupted attempt.
func (s *show) interrupted() (map[int64]bool, error) {
	in, err := scheduler.NewInspector(s.store, s.group, "demo")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	found := make(map[int64]bool)
	for e, err := range in.History(ctx, job) {
		if err != nil {
			return nil, fmt.Errorf("the history cannot be read: %w", err)
		}
		if e.Outcome == scheduler.Interrupted {
			found[e.Tick.Unix()] = true
		}
	}
	return found, nil
}
