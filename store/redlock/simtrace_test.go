package redlock

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// simTrace is the text of all that has happened, line by line: it is hashed, and kept only where somebody wants to read it.
type simTrace struct {
	hash  uint64
	lines int
	buf   []byte
	keep  bool
	kept  []simLine
}

// simLine is one line; a quiet one is routine.
type simLine struct {
	at    time.Time
	text  string
	quiet bool
}

func newSimTrace(keep bool) *simTrace { return &simTrace{hash: 14695981039346656037, keep: keep} }

// note adds a routine line; only the root calls it.
func (t *simTrace) note(parts ...string) { t.add(true, parts...) }

// say notes what a reader wants to know.
func (t *simTrace) say(format string, args ...any) { t.add(false, fmt.Sprintf(format, args...)) }

func (t *simTrace) add(quiet bool, parts ...string) {
	t.lines++
	now := time.Now()
	t.buf = strconv.AppendInt(t.buf[:0], now.UnixNano(), 10)
	for _, p := range parts {
		t.buf = append(t.buf, ' ')
		t.buf = append(t.buf, p...)
	}
	for _, b := range t.buf {
		t.hash = (t.hash ^ uint64(b)) * 1099511628211
	}
	if t.keep {
		t.kept = append(t.kept, simLine{now, strings.Join(parts, " "), quiet})
	}
}

// tail returns the last lines that were kept, what is routine only where all is wanted.
func (t *simTrace) tail(most int, all bool) string {
	var lines []string
	for i := len(t.kept) - 1; i >= 0 && len(lines) < most; i-- {
		if l := t.kept[i]; all || !l.quiet {
			lines = append(lines, l.at.UTC().Format("15:04:05.000000 ")+l.text+"\n")
		}
	}
	var b strings.Builder
	for i := len(lines) - 1; i >= 0; i-- {
		b.WriteString(lines[i])
	}
	return b.String()
}
