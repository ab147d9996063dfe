package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// timeline prints what happens, one line each; runs of one replica that follow each other share a line.
type timeline struct {
	out   io.Writer
	began time.Time
	first int64     // the tick that is called 1
	led   time.Time // since when somebody leads
	row   []ran
}

// event prints what happened to a replica at at.
func (t *timeline) event(at time.Time, who, what, detail string) {
	t.flush()
	t.print(fmt.Sprintf("%5.1f s", max(0, at.Sub(t.began).Seconds())), who, what, detail)
}

func (t *timeline) print(when, who, what, detail string) {
	line := fmt.Sprintf("%8s  %-4s %-42s %s", when, who, strings.TrimRight(what, " "), detail)
	fmt.Fprintln(t.out, strings.TrimRight(line, " "))
}

// ran takes in a line of the job.
func (t *timeline) ran(r ran) {
	if n := len(t.row); n > 0 {
		if last := t.row[n-1]; last.who != r.who || t.caughtUp(last) != t.caughtUp(r) {
			t.flush()
		}
	}
	t.row = append(t.row, r)
	if len(t.row) == 10 {
		t.flush()
	}
}

// caughtUp reports whether a tick fell due before its replica led.
func (t *timeline) caughtUp(r ran) bool { return r.due().Before(t.led) }

// flush prints the runs that have been gathered.
func (t *timeline) flush() {
	if len(t.row) == 0 {
		return
	}
	var numbers, late []string
	var most time.Duration
	for _, r := range t.row {
		numbers = append(numbers, fmt.Sprint(r.tick-t.first+1))
		late = append(late, brief(r.late()))
		most = max(most, r.late())
	}
	first, last := t.row[0], t.row[len(t.row)-1]
	what, detail := "ran "+strings.Join(numbers, " "), "each within "+brief(most)
	if t.caughtUp(first) {
		what, detail = "caught up "+strings.Join(numbers, " "), strings.Join(late, ", ")+" late"
	}
	t.print(fmt.Sprintf("%5.1f s", max(0, last.at.Sub(t.began).Seconds())), first.who, what, detail)
	t.row = nil
}

// brief shows a duration with the precision that a person wants.
func brief(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Round(time.Millisecond).Milliseconds())
	case d < time.Minute && d%time.Second == 0:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	default:
		return d.Round(time.Second).String()
	}
}
