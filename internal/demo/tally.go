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
		return nil, fmt.Errorf("demo: %w", err)
	}
	defer f.Close()
	if _, err := f.Seek(l.offset, io.SeekStart); err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	data, err := io.ReadAll(f)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	l.offset += int64(len(data))
	var fresh []ran
	for line := range strings.Lines(string(data)) {
		r := ran{at: now}
		if _, err := fmt.Sscanf(line, "%d %s\n", &r.tick, &r.who); err != nil {
			return nil, fmt.Errorf("demo: line %q of the job cannot be read: %w", line, err)
		}
		r.who = r.who[:max(0, strings.LastIndexByte(r.who, '-'))]
		l.count[r.tick]++
		fresh = append(fresh, r)
	}
	return fresh, nil
}

// tally counts every tick from the lines, against the schedule, and prints what it finds.
func (s *show) tally() error {
	out := s.cfg.Out
	if s.first == 0 {
		fmt.Fprintln(out, "\nnobody was elected: no tick was due")
		return ErrTicks
	}
	interrupted, err := s.interrupted()
	if err != nil {
		return err
	}
	var last int64
	for tick := range s.lines.count {
		last = max(last, tick)
	}
	var once, doubled, rerun, lost []string
	for tick := s.first; tick <= max(last, s.lines.until); tick++ {
		number := fmt.Sprint(tick - s.first + 1)
		switch n := s.lines.count[tick]; {
		case n == 1:
			once = append(once, number)
		case n == 0:
			lost = append(lost, number)
		case interrupted[tick]:
			rerun = append(rerun, number)
		default:
			doubled = append(doubled, number)
		}
	}
	fmt.Fprintf(out, "\n%d ticks: %d ran once, %d doubled, %d lost", len(once)+len(doubled)+len(rerun)+len(lost), len(once),
		len(doubled)+len(rerun), len(lost))
	fmt.Fprintln(out, "        counted from the lines the job wrote, not from the ledger")
	for _, l := range []struct {
		what  string
		ticks []string
	}{
		{"Lost", lost},
		{"Doubled without a reason", doubled},
		{"Run again because the first attempt was interrupted (history shows it)", rerun},
	} {
		if len(l.ticks) > 0 {
			fmt.Fprintf(out, "%s: %s\n", l.what, strings.Join(l.ticks, " "))
		}
	}
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
	if len(lost)+len(doubled) > 0 {
		return ErrTicks
	}
	return nil
}

// interrupted returns the ticks of which the history shows an interrupted attempt.
func (s *show) interrupted() (map[int64]bool, error) {
	in, err := scheduler.NewInspector(s.store, s.group)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	found := make(map[int64]bool)
	for e, err := range in.History(ctx, job) {
		if err != nil {
			return nil, fmt.Errorf("demo: history: %w", err)
		}
		if e.Outcome == scheduler.Interrupted {
			found[e.Tick.Unix()] = true
		}
	}
	return found, nil
}
