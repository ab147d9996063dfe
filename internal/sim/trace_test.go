package sim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// trace is the text of all that has happened, line by line: it is hashed, and kept only where somebody wants to read it.
type trace struct {
	hash  uint64
	lines int
	buf   []byte
	keep  bool
	kept  []traceLine
	terms map[uint64]int // tokens are long; terms are numbered

	mu   sync.Mutex
	logs []string // of the step that goes on
}

// traceLine is one line; a quiet one is routine.
type traceLine struct {
	at    time.Time
	text  string
	quiet bool
}

func newTrace(keep bool) *trace {
	return &trace{hash: 14695981039346656037, keep: keep, terms: make(map[uint64]int)}
}

// note adds a line; only the root calls it.
func (t *trace) note(quiet bool, parts ...string) {
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
		t.kept = append(t.kept, traceLine{now, strings.Join(parts, " "), quiet})
	}
}

// say notes what a reader wants to know.
func (t *trace) say(format string, args ...any) { t.note(false, fmt.Sprintf(format, args...)) }

// term names a token.
func (t *trace) term(token uint64) string {
	if token == 0 {
		return "no term"
	}
	if n, known := t.terms[token]; known {
		return "term " + strconv.Itoa(n)
	}
	return "token " + strconv.FormatUint(token, 10)
}

// elected numbers a term.
func (t *trace) elected(token uint64) {
	if _, known := t.terms[token]; !known {
		t.terms[token] = len(t.terms) + 1
	}
}

// flush notes what has been logged in this step, in an order that does not depend on chance.
func (t *trace) flush() {
	t.mu.Lock()
	logs := t.logs
	t.logs = nil
	t.mu.Unlock()
	slices.Sort(logs)
	for _, l := range logs {
		t.note(true, l)
		who, text, _ := strings.Cut(l, " ")
		for _, message := range notable {
			if i := strings.Index(text, " "+message); i >= 0 {
				_, cause, _ := strings.Cut(text[i:], " cause=")
				t.note(false, who, "says:", message+because(cause))
			}
		}
	}
}

// tail returns what was kept of the time since from, one line each, with the time in the layout; what is routine only where
// all is wanted.
func (t *trace) tail(from time.Time, layout string, all bool) string {
	var b strings.Builder
	for _, l := range t.kept {
		if !l.at.Before(from) && (all || !l.quiet) {
			fmt.Fprintf(&b, "%s %s\n", l.at.UTC().Format(layout), l.text)
		}
	}
	return b.String()
}

// steady cuts from a text what differs from run to run: the stack of a panic.
func steady(s string) string {
	i := strings.Index(s, "goroutine ")
	if i < 0 || !strings.Contains(s[i:], "[running") {
		return s
	}
	if end := strings.IndexByte(s[i:], '"'); end >= 0 { // inside of a record
		return s[:i] + steady(s[i+end:])
	}
	return s[:i]
}

// notable are the beginnings of log messages that a reader is shown.
var notable = []string{"term has ended", "wall clock has gone back", "no ledger found"}

// logger is a slog.Handler that writes into the trace.
type logger struct {
	trace *trace
	head  string // of each line
}

func (t *trace) logger(name string) *slog.Logger { return slog.New(logger{t, name}) }

func (l logger) Enabled(context.Context, slog.Level) bool { return true }
func (l logger) WithGroup(string) slog.Handler            { return l }

func (l logger) WithAttrs(attrs []slog.Attr) slog.Handler {
	b := []byte(l.head)
	for _, a := range attrs {
		b = appendAttr(b, a)
	}
	return logger{l.trace, string(b)}
}

func (l logger) Handle(_ context.Context, r slog.Record) error {
	b := make([]byte, 0, 160)
	b = append(b, l.head...)
	b = append(b, ' ')
	b = append(b, r.Level.String()...)
	b = append(b, ' ')
	b = append(b, r.Message...)
	r.Attrs(func(a slog.Attr) bool {
		b = appendAttr(b, a)
		return true
	})
	l.trace.mu.Lock()
	defer l.trace.mu.Unlock()
	l.trace.logs = append(l.trace.logs, string(b))
	return nil
}

func appendAttr(b []byte, a slog.Attr) []byte {
	if a.Key == "group" {
		return b
	}
	b = append(b, ' ')
	b = append(b, a.Key...)
	b = append(b, '=')
	switch a.Value.Kind() {
	case slog.KindString:
		return append(b, steady(a.Value.String())...)
	case slog.KindInt64:
		return strconv.AppendInt(b, a.Value.Int64(), 10)
	case slog.KindUint64:
		return strconv.AppendUint(b, a.Value.Uint64(), 10)
	case slog.KindTime:
		return a.Value.Time().AppendFormat(b, time.RFC3339Nano)
	}
	return append(b, steady(a.Value.String())...)
}
